//! A program's accesses to remote memory, as a trace.

use std::path::PathBuf;
use std::process::ExitStatus;

use ethermem_pager::{Profile, measure_peak, profile};
use ethermem_sim::output::{TableStyle, TextTable};

use super::{Program, Share, left_out, size};
use crate::error::Error;

/// A program to profile, and the options.
#[derive(Clone, Debug)]
pub struct Request {
    /// Program to run.
    pub program: Program,
    /// Private memory of the program that stays local.
    pub local: Share,
    /// Peak memory of the program in bytes; if `None`, a first run measures it.
    pub peak_bytes: Option<u64>,
    /// File of the trace.
    pub out: PathBuf,
}

impl Request {
    /// Runs the program and writes its trace. Returns the program's status.
    ///
    /// # Errors
    ///
    /// When the first run fails, when the program's memory cannot be served, or when the trace
    /// cannot be written.
    pub fn run(&self) -> Result<(Profile, ExitStatus), Error> {
        let Program { words, prefetch } = &self.program;
        let local_bytes = match (self.local, self.peak_bytes) {
            (Share::Bytes(bytes), _) => bytes,
            (Share::Of(share), Some(peak)) => (peak as f64 * share) as u64,
            (Share::Of(share), None) => {
                let (peak, outcome) = measure_peak(words)?;
                if !outcome.status.success() {
                    return Err(Error::Ended(outcome.status));
                }
                (peak as f64 * share) as u64
            }
        };
        Ok(profile(words, local_bytes, *prefetch, &self.out)?)
    }
}

/// The profile for people.
#[must_use]
pub fn table(profile: &Profile, style: TableStyle) -> String {
    let counts = &profile.counts;
    let pages = [
        ("pages read for a waiting thread", counts.read_pages),
        ("pages read along with them", counts.prefetched_pages),
        ("pages written", counts.written_pages),
        ("pages that came back before they left", counts.rescued_pages),
    ];
    let mut rows = vec![
        vec!["duration".to_owned(), format!("{:.3} s", profile.duration_ns as f64 / 1e9)],
        vec!["held at most".to_owned(), size(profile.peak_bytes)],
        vec!["local at most".to_owned(), size(profile.local_peak_bytes)],
        vec!["remote reads".to_owned(), format!("{:.0} /s", profile.reads_per_second)],
        vec!["to and from remote memory".to_owned(), format!("{:.3} Gb/s", profile.swap_gbps)],
    ];
    rows.extend(pages.map(|(name, count)| vec![name.to_owned(), count.to_string()]));
    rows.extend(left_out(&profile.by_itself));
    TextTable {
        header: &["remote memory", "of this run"],
        text_columns: &[0],
        optional_columns: &[],
        rows,
    }
    .render(style)
}
