//! Files in and out, the same way everywhere: an output is there whole or not at all, and an input
//! that cannot be used is one line that says what, where and what is allowed.
//!
//! What this crate does not do: say what is in a file. Formats belong to who reads them.

mod atomic;
mod columns;
mod contain;
mod error;
mod folder;
mod input;
mod rows;

use std::path::{Path, PathBuf};

pub use atomic::AtomicFile;
pub use columns::{reason, write_column};
pub use error::{InputError, found};
pub use folder::MadeFolder;
pub use input::{INTEGERS, ParquetInput};
pub use rows::{BatchError, RowReader, Rows, read_integers, read_values, same_length, unsigned};

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
    /// `path`, and why it is not there.
    #[must_use]
    pub fn new(path: &Path, reason: std::io::Error) -> OutputError {
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
