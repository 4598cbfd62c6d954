//! Files that are there whole or not at all.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::error::InputError;

/// A file being written: beside its place until [`AtomicFile::finish`] moves it there, gone when it
/// is dropped before. What is no regular file, such as a pipe, is written directly.
pub struct AtomicFile {
    path: PathBuf,
    output: BufWriter<Output>,
}

enum Output {
    Beside(NamedTempFile),
    Direct(File),
}

impl AtomicFile {
    /// Begins the file `path`.
    ///
    /// # Errors
    /// [`InputError`] that names `path` and why it cannot be written there.
    pub fn create(path: &Path) -> Result<AtomicFile, InputError> {
        let output = Output::create(path).map_err(|error| unwritable(path, &error))?;
        Ok(AtomicFile {
            path: path.to_owned(),
            output: BufWriter::new(output),
        })
    }

    /// Moves the file to its place, over any that is there.
    ///
    /// # Errors
    /// [`InputError`] when what is left could not be written; the file is then not there.
    pub fn finish(self) -> Result<(), InputError> {
        let output = self
            .output
            .into_inner()
            .map_err(io::IntoInnerError::into_error);
        let finished = output.and_then(|output| match output {
            Output::Beside(file) => {
                file.as_file().sync_all()?;
                file.persist(&self.path)
                    .map(drop)
                    .map_err(|error| error.error)
            }
            Output::Direct(mut file) => file.flush(),
        });
        finished.map_err(|error| unwritable(&self.path, &error))
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.output.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.output.flush()
    }
}

impl Output {
    fn create(path: &Path) -> io::Result<Output> {
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            return OpenOptions::new()
                .write(true)
                .open(path)
                .map(Output::Direct);
        }
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        let mut builder = tempfile::Builder::new();
        builder.prefix(".ethermem-").suffix(".part");
        #[cfg(unix)]
        {
            // What any new file gets: the process's mask takes away what others may not do.
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(std::fs::Permissions::from_mode(0o666));
        }
        let file = builder.tempfile_in(folder);
        file.map(Output::Beside)
            .map_err(|error| system_error(&error).unwrap_or(error))
    }
}

/// The system's error in one of `tempfile`, which adds the name of a file nobody asked for.
fn system_error(error: &io::Error) -> Option<io::Error> {
    let inner: &io::Error = error.get_ref()?.source()?.downcast_ref()?;
    inner.raw_os_error().map(io::Error::from_raw_os_error)
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Output::Beside(file) => file.write(bytes),
            Output::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Output::Beside(file) => file.flush(),
            Output::Direct(file) => file.flush(),
        }
    }
}

fn unwritable(path: &Path, error: &io::Error) -> InputError {
    InputError::io(path, "be written", error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).expect("a folder");
        entries
            .map(|e| {
                e.expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect()
    }

    #[test]
    fn a_file_appears_when_it_is_finished() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        std::fs::write(&path, "old").expect("written");
        let mut file = AtomicFile::create(&path).expect("created");
        file.write_all(b"new").expect("written");
        file.flush().expect("flushed");
        assert_eq!(std::fs::read(&path).expect("read"), b"old");
        file.finish().expect("finished");
        assert_eq!(std::fs::read(&path).expect("read"), b"new");
        assert_eq!(names(folder.path()), ["a.csv"]);
    }

    #[test]
    fn a_file_that_is_not_finished_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut file = AtomicFile::create(&folder.path().join("a.csv")).expect("created");
        file.write_all(b"half").expect("written");
        drop(file);
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named_by_the_file() {
        let error = AtomicFile::create(Path::new("no/such/a.csv"))
            .err()
            .expect("no folder");
        let expected = "no/such/a.csv: cannot be written: No such file or directory";
        assert_eq!(error.to_string(), expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported() {
        let mut file = AtomicFile::create(Path::new("/dev/full")).expect("created");
        file.write_all(b"more than fits").expect("buffered");
        let error = file.finish().expect_err("the device is full");
        let expected = "/dev/full: cannot be written: No space left on device";
        assert_eq!(error.to_string(), expected);
    }
}
