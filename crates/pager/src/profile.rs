//! `ethermem profile`: records a program's accesses to remote memory.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use ethermem_trace::{Access, AccessKind, Ended, Summary, WriteError, Writer};
use ethermem_units::{Bytes, Ns};
use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use crate::counts::Counts;
use crate::error::Error;
use crate::pager::Local;
use crate::protocol::PAGE_BYTES;
use crate::record::{Nothing, Recorder};
use crate::run::{Options, Outcome, run};

/// Interval of the working set's samples; long runs use a multiple.
const INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVALS: usize = 600;

/// Distinct remote pages that a program touched in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// End of the interval in milliseconds since the start of the run.
    pub end_ms: u64,
    /// Number of pages.
    pub pages: u64,
}

/// Result of a profiled run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// The command, quoted for a shell.
    pub command: String,
    /// How the program ended.
    pub ended: String,
    /// Duration in nanoseconds.
    pub duration_ns: u64,
    /// Private memory that may be local, in bytes.
    pub local_bytes: u64,
    /// Largest amount that was local, in bytes.
    pub local_peak_bytes: u64,
    /// Largest amount that the program held, locally and remotely, in bytes.
    pub peak_bytes: u64,
    /// Remote reads per second that a thread waited for.
    pub reads_per_second: f64,
    /// Traffic to and from remote memory, in Gb/s.
    pub swap_gbps: f64,
    /// Number of remote accesses that are missing from the trace.
    pub unrecorded_accesses: u64,
    /// All counters.
    pub counts: Counts,
    /// As [`Outcome::by_itself`].
    #[serde(default)]
    pub by_itself: Vec<String>,
    /// The working set over time.
    pub working_set: Vec<Interval>,
}

/// The reason why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The program did not run.
    #[error(transparent)]
    Run(#[from] Error),
    /// The trace could not be written.
    #[error("{error}")]
    Trace {
        /// The cause.
        error: WriteError,
        /// Exit status of the program, if it began.
        status: Option<ExitStatus>,
    },
}

struct Recording {
    writer: Writer,
    failed: Option<WriteError>,
    unrecorded: u64,
    prefetched: u64,
    interval: Duration,
    seen: FxHashSet<(u32, u64)>,
    working_set: Vec<Interval>,
}

impl Recording {
    fn new(path: &Path) -> Result<Recording, WriteError> {
        Ok(Recording {
            writer: Writer::create(path, Bytes(PAGE_BYTES as u64))?,
            failed: None,
            unrecorded: 0,
            prefetched: 0,
            interval: INTERVAL,
            seen: FxHashSet::default(),
            working_set: Vec::new(),
        })
    }

    /// Ends the intervals that end before `time`.
    fn pass(&mut self, time: Duration) {
        while time >= self.end() {
            let end_ms = self.end().as_millis() as u64;
            self.working_set.push(Interval { end_ms, pages: self.seen.len() as u64 });
            self.seen.clear();
            if self.working_set.len() == MOST_INTERVALS {
                // Two intervals become one; the larger count is a lower bound of their union.
                let halves = self.working_set.chunks_exact(2);
                self.working_set = halves
                    .map(|pair| Interval { pages: pair[0].pages.max(pair[1].pages), ..pair[1] })
                    .collect();
                self.interval *= 2;
            }
        }
    }

    fn end(&self) -> Duration {
        self.interval * (self.working_set.len() as u32 + 1)
    }
}

impl Recorder for Recording {
    fn access(&mut self, access: &Access) {
        if self.failed.is_some() {
            return;
        }
        match self.writer.push(access) {
            Ok(()) => self.prefetched += u64::from(access.prefetched),
            Err(error @ WriteError::Output(_)) => self.failed = Some(error),
            Err(_) => self.unrecorded += 1,
        }
        if access.kind == AccessKind::Read {
            self.pass(Duration::from_nanos(access.time.0));
            let pages = (0..access.bytes.0).step_by(PAGE_BYTES);
            self.seen.extend(pages.map(|offset| (access.process, access.address + offset)));
        }
    }

    fn delayed(&mut self, _: Duration, _: Duration) {}
}

/// Runs a program with all memory local, and returns its peak memory in bytes and its outcome.
///
/// # Errors
///
/// As [`run()`].
pub fn measure_peak(command: &[OsString]) -> Result<(u64, Outcome), Error> {
    let options = Options::new(Local::All);
    let outcome = run(command, &options, &mut Nothing)?;
    Ok((outcome.counts.held_pages * PAGE_BYTES as u64, outcome))
}

/// Runs `command` with `local_bytes` of its memory local, and writes its remote accesses to
/// `trace`.
///
/// # Errors
///
/// When the program does not run or the trace cannot be written.
pub fn profile(
    command: &[OsString],
    local_bytes: u64,
    prefetch: bool,
    trace: &Path,
) -> Result<(Profile, ExitStatus), ProfileError> {
    let unwritten = |status| move |error| ProfileError::Trace { error, status };
    let mut recording = Recording::new(trace).map_err(unwritten(None))?;
    let options = Options { prefetch, ..Options::new(Local::Bytes(local_bytes)) };
    let outcome = run(command, &options, &mut recording)?;
    let unwritten = unwritten(Some(outcome.status));
    if let Some(error) = recording.failed {
        return Err(unwritten(error));
    }
    recording.pass(outcome.elapsed);
    let profile = summarize(command, local_bytes, &outcome, &mut recording);
    let prefetched = recording.prefetched;
    let summary = Summary {
        local: Bytes(profile.local_peak_bytes),
        peak: Bytes(profile.peak_bytes),
        duration: Ns(profile.duration_ns),
        command: profile.command.clone(),
        ended: ended(outcome.status),
        prefetched_accesses: Some(prefetched),
        unrecorded_accesses: profile.unrecorded_accesses,
    };
    recording.writer.finish(&summary).map_err(unwritten)?;
    Ok((profile, outcome.status))
}

fn summarize(
    command: &[OsString],
    local_bytes: u64,
    outcome: &Outcome,
    recording: &mut Recording,
) -> Profile {
    let (counts, seconds) = (outcome.counts, outcome.elapsed.as_secs_f64());
    let page_bytes = PAGE_BYTES as u64;
    let moved = counts.read_pages + counts.prefetched_pages + counts.written_pages;
    Profile {
        command: shown(command),
        ended: ended(outcome.status).to_string(),
        duration_ns: u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX),
        local_bytes,
        local_peak_bytes: counts.peak_pages * page_bytes,
        peak_bytes: counts.held_pages * page_bytes,
        reads_per_second: counts.read_pages as f64 / seconds,
        swap_gbps: (moved * page_bytes * 8) as f64 / seconds / 1e9,
        unrecorded_accesses: recording.unrecorded,
        counts,
        by_itself: outcome.by_itself.clone(),
        working_set: std::mem::take(&mut recording.working_set),
    }
}

pub(crate) fn ended(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Exit(status.code().unwrap_or(1)),
    }
}

/// A command, quoted for a shell.
#[must_use]
pub fn shown(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    shlex::try_join(words.iter().map(|word| &**word)).unwrap_or_else(|_| words.join(" "))
}
