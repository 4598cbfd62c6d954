//! The output of a run: a table, JSON, Parquet of every message, a timeline for Perfetto.
//!
//! A file takes its name when it is whole; otherwise no file is left.

mod messages;
mod table;
mod timeline;

use serde::Serialize;

pub use ethermem_files::{AtomicFile, MadeFolder, OutputError, write_file};
pub use messages::{MessageWriter, PROGRAM_METADATA, STEADY_METADATA};
pub use table::{TableStyle, TextTable, runs_table};
pub use timeline::{Arg, Timeline, TimelineSummary, TrackId};

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

#[cfg(test)]
mod tests;
