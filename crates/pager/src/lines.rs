//! `ethermem profile --lines`: records the lines that a program's caches fetch and write back.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitStatus;

use ethermem_lines::lackey::{Event, Text};
use ethermem_lines::{Hierarchy, LINE_BYTES, Levels, PAGE_BYTES, Traffic};
use ethermem_trace::{LineAccess, LineSummary, LineWriteError, LineWriter, OutputError};
use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::profile::{ended, shown};
use crate::tracer::trace;

/// Options of recording lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineOptions {
    /// The caches in front of the memory.
    pub levels: Levels,
    /// Largest number of accesses in the trace; the run goes on and counts the rest.
    pub records_max: u64,
    /// Instructions at the start whose accesses are not in the trace; they fill the caches.
    pub skip_instructions: u64,
}

/// Result of a run. All counts but that of the trace are of the whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LineProfile {
    /// The command, quoted for a shell.
    pub command: String,
    /// How the program ended.
    pub ended: String,
    /// Caches: the processor's first level, its second, and the last.
    pub caches: [String; 3],
    /// Number of instructions.
    pub instructions: u64,
    /// Loads of lines.
    pub loads: u64,
    /// Stores to lines.
    pub stores: u64,
    /// Loads and stores that each cache had.
    pub hits: [u64; 3],
    /// Lines that were read from memory for loads.
    pub load_misses: u64,
    /// Lines that were read from memory for stores.
    pub store_misses: u64,
    /// Dirty lines that were written to memory.
    pub write_backs: u64,
    /// Dirty lines in the caches at the end, which are not written.
    pub dirty_lines: u64,
    /// Lines read from memory, for a thousand instructions.
    pub misses_per_1000_instructions: f64,
    /// Bytes of different lines that were accessed.
    pub touched_line_bytes: u64,
    /// Bytes of different pages that were accessed.
    pub touched_page_bytes: u64,
    /// Number of accesses in the trace.
    pub recorded_accesses: u64,
    /// Number of accesses to memory that are not in the trace: before its start, or past its most.
    pub unrecorded_accesses: u64,
    /// Lines of the tracer's text that are not of the trace, such as its warnings.
    pub other_lines: u64,
}

/// The reason why there is no profile of lines.
#[derive(Debug, thiserror::Error)]
pub enum LineProfileError {
    /// The program did not run.
    #[error(transparent)]
    Run(#[from] Error),
    /// The trace could not be written.
    #[error("{error}")]
    Trace {
        /// The cause.
        error: LineWriteError,
        /// Exit status of the program, if it began.
        status: Option<ExitStatus>,
    },
}

/// The trace of a run, as far as it is recorded.
struct Recording {
    writer: LineWriter,
    failed: Option<LineWriteError>,
    options: LineOptions,
    instructions: u64,
    recorded: u64,
    unrecorded: u64,
}

impl Recording {
    fn new(path: &Path, options: LineOptions) -> Result<Recording, OutputError> {
        let writer = LineWriter::create(path)?;
        let failed = None;
        Ok(Recording { writer, failed, options, instructions: 0, recorded: 0, unrecorded: 0 })
    }

    fn record(&mut self, traffic: Traffic) {
        let LineOptions { records_max, skip_instructions, .. } = self.options;
        let is_wanted = self.instructions > skip_instructions && self.recorded < records_max;
        if !is_wanted || self.failed.is_some() {
            self.unrecorded += 1;
            return;
        }
        let (instructions, address) = (self.instructions, traffic.line * LINE_BYTES);
        match self.writer.push(LineAccess { instructions, address, kind: traffic.kind }) {
            Ok(()) => self.recorded += 1,
            Err(LineWriteError::Unusable(_)) => self.unrecorded += 1,
            Err(error) => self.failed = Some(error),
        }
    }
}

/// Runs `command` under valgrind, and writes the accesses that its caches leave to `path`.
///
/// # Errors
///
/// When valgrind is not installed, the program does not run, or the trace cannot be written.
pub fn profile_lines(
    command: &[OsString],
    options: LineOptions,
    path: &Path,
) -> Result<(LineProfile, ExitStatus), LineProfileError> {
    let unwritten = |status| move |error| LineProfileError::Trace { error, status };
    let recording = Recording::new(path, options).map_err(LineWriteError::from);
    let mut recording = recording.map_err(unwritten(None))?;
    let mut hierarchy = Hierarchy::new(&options.levels);
    let (mut text, mut other_lines) = (Text::default(), 0);
    let mut each = |event| match event {
        Event::Instruction => recording.instructions += 1,
        Event::Access { address, bytes, loads, stores } => {
            for (happens, is_store) in [(loads, false), (stores, true)] {
                if happens {
                    let mut out = |traffic| recording.record(traffic);
                    hierarchy.access(address, bytes, is_store, &mut out);
                }
            }
        }
        Event::Other => other_lines += 1,
    };
    let status = trace(command, &mut |piece| text.feed(piece, &mut each))?;
    let unwritten = unwritten(Some(status));
    if let Some(error) = recording.failed {
        return Err(unwritten(error));
    }
    let profile = summarize(command, status, &hierarchy, &recording, other_lines);
    let summary = LineSummary {
        command: profile.command.clone(),
        ended: ended(status),
        levels: options.levels,
        instructions: profile.instructions,
        loads: profile.loads,
        stores: profile.stores,
        unrecorded_accesses: profile.unrecorded_accesses,
    };
    recording.writer.finish(&summary).map_err(unwritten)?;
    Ok((profile, status))
}

fn summarize(
    command: &[OsString],
    status: ExitStatus,
    hierarchy: &Hierarchy,
    recording: &Recording,
    other_lines: u64,
) -> LineProfile {
    let counts = hierarchy.counts();
    let misses = counts.load_misses + counts.store_misses;
    let thousands = recording.instructions.max(1) as f64 / 1000.0;
    LineProfile {
        command: shown(command),
        ended: ended(status).to_string(),
        caches: recording.options.levels.0.map(|level| level.to_string()),
        instructions: recording.instructions,
        loads: counts.loads,
        stores: counts.stores,
        hits: counts.hits,
        load_misses: counts.load_misses,
        store_misses: counts.store_misses,
        write_backs: counts.write_backs,
        dirty_lines: hierarchy.dirty_lines(),
        misses_per_1000_instructions: misses as f64 / thousands,
        touched_line_bytes: hierarchy.touched_lines() * LINE_BYTES,
        touched_page_bytes: hierarchy.touched_pages() * PAGE_BYTES,
        recorded_accesses: recording.recorded,
        unrecorded_accesses: recording.unrecorded,
        other_lines,
    }
}
