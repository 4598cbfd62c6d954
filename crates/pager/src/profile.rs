//! `ethermem profile`: what a program asks of remote memory, written down.

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

/// The working set is told for intervals of this length, or longer ones in long runs.
const INTERVAL: Duration = Duration::from_millis(100);
const MOST_INTERVALS: usize = 600;

/// Different remote pages that a program touched in an interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interval {
    /// When it ended, since the start of the run.
    pub end_ms: u64,
    /// How many pages.
    pub pages: u64,
}

/// What a run was.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profile {
    /// As a shell reads it.
    pub command: String,
    /// How the program ended.
    pub ended: String,
    /// How long it ran.
    pub duration_ns: u64,
    /// Private memory that might be local.
    pub local_bytes: u64,
    /// Most that was local.
    pub local_peak_bytes: u64,
    /// Most that the program held, locally and remotely.
    pub peak_bytes: u64,
    /// Remote reads that a thread waited for, in each second.
    pub reads_per_second: f64,
    /// What went to and from remote memory, in gigabits of each second.
    pub swap_gbps: f64,
    /// Remote accesses that are not in the trace.
    pub unrecorded_accesses: u64,
    /// All counts.
    pub counts: Counts,
    /// As [`Outcome::by_itself`].
    #[serde(default)]
    pub by_itself: Vec<String>,
    /// The working set over time.
    pub working_set: Vec<Interval>,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// The program did not run.
    #[error(transparent)]
    Run(#[from] Error),
    /// The trace could not be written.
    #[error("{error}")]
    Trace {
        /// Why not.
        error: WriteError,
        /// How the program ended, if it began.
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
                // Two become one; the larger is a lower bound of what both saw.
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

/// The most that a program holds, and how it ran, when all of its memory is local.
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

fn ended(status: ExitStatus) -> Ended {
    use std::os::unix::process::ExitStatusExt;
    match status.signal() {
        Some(signal) => Ended::Signal(signal),
        None => Ended::Exit(status.code().unwrap_or(1)),
    }
}

/// A command as a shell reads it.
#[must_use]
pub fn shown(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    shlex::try_join(words.iter().map(|word| &**word)).unwrap_or_else(|_| words.join(" "))
}
