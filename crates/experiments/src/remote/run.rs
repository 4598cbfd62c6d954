//! A program with a part of its memory in a pool.

use std::process::ExitStatus;

use ethermem::Pool;
use ethermem_pager::{Counts, Nothing, Options, Placement, run as run_program};
use ethermem_sim::output::{TableStyle, TextTable};
use serde::Serialize;

use super::{Program, Share, left_out, size};
use crate::error::Error;

/// A share is at least this much: what an interpreter holds before it does anything would otherwise
/// be remote for the most part.
const SHARE_LEAST_BYTES: u64 = 16 << 20;

/// A program to run, and the place of its memory.
#[derive(Clone, Debug)]
pub struct Request {
    /// Program to run.
    pub program: Program,
    /// URL of the pool for memory that is not local; `None` for the memory of this process.
    pub pool: Option<String>,
    /// Private memory of the program that stays local.
    pub local: Share,
    /// Where pager and program run.
    pub placement: Placement,
}

/// Counters of the run.
#[derive(Debug, Serialize)]
pub struct Report {
    duration_ns: u64,
    pages: Counts,
    by_itself: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<String>,
}

impl Request {
    /// Runs the program to its end. Returns the program's status.
    ///
    /// # Errors
    ///
    /// When the pool cannot be opened, or when the program's memory cannot be served.
    pub fn run(&self) -> Result<(Report, ExitStatus), Error> {
        ethermem_pager::hold_signals()?;
        let pool = self.pool.as_deref().map(Pool::open).transpose()?;
        if pool.as_ref().is_some_and(Pool::is_simulated) {
            let allowed =
                "a program runs in real time; `ethermem emulate` gives it a network's delays";
            return Err(Error::Request(format!("--pool: a simulated pool: {allowed}")));
        }
        let choice = pool.as_ref().and_then(Pool::choice).map(str::to_owned);
        let Program { words, prefetch } = &self.program;
        let local = self.local.at_the_time(SHARE_LEAST_BYTES);
        let placement = self.placement;
        let options = Options { prefetch: *prefetch, pool, placement, ..Options::new(local) };
        let outcome = run_program(words, &options, &mut Nothing)?;
        let duration_ns = u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX);
        let (pages, by_itself) = (outcome.counts, outcome.by_itself);
        Ok((Report { duration_ns, pages, by_itself, choice }, outcome.status))
    }
}

impl Report {
    /// The counters as a table for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        let counts = &self.pages;
        let mut rows = vec![
            vec!["held at most".to_owned(), size(counts.held_pages * 4096)],
            vec!["local at most".to_owned(), size(counts.peak_pages * 4096)],
            vec!["files and shared memory beside".to_owned(), size(counts.beside_pages * 4096)],
            vec!["pages read for a waiting thread".to_owned(), counts.read_pages.to_string()],
            vec!["pages read along with them".to_owned(), counts.prefetched_pages.to_string()],
            vec!["pages written".to_owned(), counts.written_pages.to_string()],
        ];
        if counts.together_ns > 0 {
            let percent = 100.0 * counts.together_ns as f64 / self.duration_ns as f64;
            let cell = format!("{percent:.0} % of the time");
            rows.push(vec!["on one processor with the pager".to_owned(), cell]);
        }
        rows.extend(left_out(&self.by_itself));
        rows.extend(self.choice.iter().map(|choice| vec!["the node".to_owned(), choice.clone()]));
        let header = ["remote memory", "of this run"];
        TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows }.render(style)
    }
}
