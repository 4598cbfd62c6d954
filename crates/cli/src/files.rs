//! The files of one command: an output must be no other output, and no input.
//!
//! Every output replaces its file, so that the last one would silently destroy the others.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Files that a folder's page consists of.
const PAGE: [&str; 2] = ["index.html", "results.json"];

/// The files that a command is about to read and write.
#[derive(Default)]
pub(crate) struct Files {
    inputs: Vec<Named>,
    outputs: Vec<Named>,
}

/// A file, and what the command line calls it.
struct Named {
    name: String,
    path: PathBuf,
}

/// What two paths of one file have in common.
#[derive(PartialEq, Eq)]
enum Place {
    /// Device and inode of an existing file, whatever links lead to it.
    There(u64, u64),
    /// The whole path of a file that is not there yet.
    New(PathBuf),
}

impl Files {
    /// Adds an input, with the words that follow "is" in an error.
    pub(crate) fn reading(mut self, name: &str, path: Option<&Path>) -> Files {
        let named = |path: &Path| Named { name: name.to_owned(), path: path.to_owned() };
        self.inputs.extend(path.map(named));
        self
    }

    /// Adds an output by its flag.
    pub(crate) fn writing(mut self, flag: &str, path: Option<&Path>) -> Files {
        let named = |path: &Path| Named { name: flag.to_owned(), path: path.to_owned() };
        self.outputs.extend(path.map(named));
        self
    }

    /// Adds the files of a page by the flag of its folder.
    pub(crate) fn writing_page(self, flag: &str, folder: Option<&Path>) -> Files {
        let name = format!("a page of {flag}");
        let files = PAGE.iter().filter_map(|file| folder.map(|folder| folder.join(file)));
        files.fold(self, |files, path| files.writing(&name, Some(&path)))
    }

    /// Refuses an output that is an input or another output. Devices and pipes have nothing to
    /// lose, and may be given twice.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (at, output) in self.outputs.iter().enumerate() {
            let Some(place) = place(&output.path) else { continue };
            let is_it = |other: &&Named| self::place(&other.path).as_ref() == Some(&place);
            // An input that is not there is a built-in file, which nothing replaces.
            let is_there = matches!(place, Place::There(..));
            let input = self.inputs.iter().filter(|_| is_there).find(is_it);
            let other = || self.outputs[at + 1..].iter().find(is_it);
            let Some(is) = (input.map(|input| input.name.clone()))
                .or_else(|| other().map(|other| format!("also {}", other.name)))
            else {
                continue;
            };
            let (name, path) = (&output.name, output.path.display());
            return Err(Failure::input(format!("{name} {path}: is {is}: must be another file")));
        }
        Ok(())
    }
}

/// The place of a file; `None` for what is no regular file, and for a path without a name.
fn place(path: &Path) -> Option<Place> {
    if let Ok(metadata) = fs::metadata(path) {
        return metadata.is_file().then(|| Place::There(metadata.dev(), metadata.ino()));
    }
    let name = path.file_name()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    // The folder of a page may be missing, too.
    let folder = folder.canonicalize().or_else(|_| std::path::absolute(folder)).ok()?;
    Some(Place::New(folder.join(name)))
}
