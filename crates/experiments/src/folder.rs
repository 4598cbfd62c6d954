//! The folder of a page, made before the runs so that a bad one is found at once.

use std::fs;
use std::path::{Path, PathBuf};

use ethermem_sim::output::{AtomicFile, OutputError, to_json, write_file};
use ethermem_sim::report::{Origin, ReportInput, write_report};
use serde::Serialize;

use crate::runner::{Runner, threads_default};

/// A folder for a page, with the folders that were made for it. When it is dropped, those that are
/// still empty are removed.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    made: Vec<PathBuf>,
}

impl Folder {
    /// Makes `path` and checks that a file can be written there.
    pub(crate) fn prepare(path: &Path) -> Result<Folder, OutputError> {
        let missing = path.ancestors().take_while(|folder| !folder.exists());
        let made = missing.filter(|folder| !folder.as_os_str().is_empty());
        let folder = Folder { path: path.to_owned(), made: made.map(Path::to_owned).collect() };
        fs::create_dir_all(path).map_err(|reason| OutputError { path: path.to_owned(), reason })?;
        drop(AtomicFile::create(&path.join("index.html"))?);
        Ok(folder)
    }

    /// Writes the results as JSON and the page, and returns the page's path.
    pub(crate) fn write<T: Serialize + ?Sized>(
        mut self,
        results: &T,
        page: &ReportInput,
    ) -> Result<PathBuf, OutputError> {
        write_file(&self.path.join("results.json"), to_json(results).as_bytes())?;
        let page = write_report(&self.path, page)?;
        self.made.clear();
        Ok(page)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // The innermost folder first. A folder that is not empty, or not there, stays as it is.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// Where the numbers of a page come from that `command` repeats.
pub(crate) fn origin(runner: &Runner<'_>, command: String, seed: u64) -> Origin {
    Origin {
        command,
        seed,
        commit: runner.commit.map(str::to_owned),
        machine: format!("{}, {} threads", std::env::consts::ARCH, threads_default()),
        versions: vec![("ethermem".to_owned(), env!("CARGO_PKG_VERSION").to_owned())],
    }
}
