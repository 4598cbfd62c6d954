//! The lines that a program's caches read from memory and write to it, as a trace.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::process::ExitStatus;

use ethermem_pager::{LineOptions, LineProfile, profile_lines};
use ethermem_sim::output::{TableStyle, TextTable};

use super::size;
use crate::error::Error;

/// Allowed number of accesses of a trace.
pub const RECORDS: RangeInclusive<u64> = 1..=1_000_000_000;

/// A program whose lines are recorded, and the options.
#[derive(Clone, Debug)]
pub struct Request {
    /// Program and arguments.
    pub program: Vec<OsString>,
    /// Caches, and the part of the run that is recorded.
    pub options: LineOptions,
    /// File of the trace.
    pub out: PathBuf,
}

impl Request {
    /// Runs the program and writes its trace. Returns the program's status.
    ///
    /// # Errors
    ///
    /// When valgrind is missing, the program does not run, or the trace cannot be written.
    pub fn run(&self) -> Result<(LineProfile, ExitStatus), Error> {
        Ok(profile_lines(&self.program, self.options, &self.out)?)
    }
}

/// The profile for people.
#[must_use]
pub fn table(profile: &LineProfile, style: TableStyle) -> String {
    let [l1, l2, llc] = &profile.caches;
    let [l1_hits, l2_hits, llc_hits] = profile.hits;
    let counts = [
        ("instructions".to_owned(), profile.instructions),
        ("loads of lines".to_owned(), profile.loads),
        ("stores to lines".to_owned(), profile.stores),
        (format!("hits in the first level, {l1}"), l1_hits),
        (format!("hits in the second level, {l2}"), l2_hits),
        (format!("hits in the last level, {llc}"), llc_hits),
        ("lines read from memory for loads".to_owned(), profile.load_misses),
        ("lines read from memory for stores".to_owned(), profile.store_misses),
        ("lines written to memory".to_owned(), profile.write_backs),
        ("dirty lines in caches at the end".to_owned(), profile.dirty_lines),
        ("accesses in the trace".to_owned(), profile.recorded_accesses),
        ("accesses to memory left out of it".to_owned(), profile.unrecorded_accesses),
    ];
    let mut rows: Vec<Vec<String>> =
        counts.into_iter().map(|(name, count)| vec![name, count.to_string()]).collect();
    let per_1000 = format!("{:.3}", profile.misses_per_1000_instructions);
    rows.push(vec!["lines read for 1000 instructions".to_owned(), per_1000]);
    rows.push(vec!["different lines".to_owned(), size(profile.touched_line_bytes)]);
    rows.push(vec!["different pages".to_owned(), size(profile.touched_page_bytes)]);
    let header = &["lines", "of this run"];
    TextTable { header, text_columns: &[0], optional_columns: &[], rows }.render(style)
}
