//! What a run leaves behind: a table, JSON, Parquet of every message, a timeline for Perfetto.
//!
//! A file appears under its name when it is whole, or not at all.

mod atomic_file;
mod messages;
mod table;
mod timeline;

use std::path::{Path, PathBuf};

use serde::Serialize;

pub use atomic_file::AtomicFile;
pub use messages::MessageWriter;
pub use table::{TableStyle, TextTable, runs_table};
pub use timeline::{Arg, Timeline, TimelineSummary, TrackId};

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

/// A result, or several, as indented JSON with a final line break. Keys keep the order of fields.
///
/// # Panics
/// Never for the types of this crate: their keys are all strings.
#[must_use]
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> String {
    let mut json = serde_json::to_string_pretty(value).expect("keys are strings");
    json.push('\n');
    json
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

#[cfg(test)]
mod tests;
