//! Files that a run or a generator writes: whole under their name, or not there at all.

mod atomic;
mod columns;

use std::path::{Path, PathBuf};

pub use atomic::AtomicFile;
pub(crate) use columns::{reason, write_column};

/// A file that could not be written: one line that names the file and the reason.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {reason}", path.display())]
pub struct OutputError {
    /// The file asked for.
    pub path: PathBuf,
    /// Why it is not there.
    #[source]
    pub reason: std::io::Error,
}

impl OutputError {
    pub(crate) fn new(path: &Path, reason: std::io::Error) -> OutputError {
        OutputError { path: path.to_owned(), reason }
    }
}

/// Writes `contents` to `path` as a whole or not at all.
///
/// # Errors
/// [`OutputError`] when the folder is missing or the file cannot be written.
pub fn write_file(path: &Path, contents: &[u8]) -> Result<(), OutputError> {
    let mut file = AtomicFile::create(path)?;
    std::io::Write::write_all(&mut file, contents)
        .map_err(|reason| OutputError::new(path, reason))?;
    file.commit()
}
