//! Files in and out, handled in one way everywhere. An output file is there whole or not at all. An
//! input file that cannot be used is refused in one line: what was found, where, and what it must
//! be.
//!
//! What this crate does not do: know what is in a file. A format belongs to the crate that reads
//! it.

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
    /// The path that was to be written.
    pub path: PathBuf,
    /// Why the file could not be written.
    #[source]
    pub reason: std::io::Error,
}

impl OutputError {
    /// An error that says why `path` could not be written.
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
