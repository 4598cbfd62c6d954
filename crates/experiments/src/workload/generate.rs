//! The messages of a scenario, written as a trace.

use std::path::PathBuf;

use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_sim::run::messages;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::{InputError, TraceFormat, write_trace};
use ethermem_sim::{Message, MessageSource, SourceError};

use crate::error::Error;
use crate::face::Expected;
use crate::runner::{Runner, Share};

/// Messages to write, and the destination.
#[derive(Clone, Debug)]
pub struct Request {
    /// The scenario's file.
    pub scenario: PathBuf,
    /// Seed of every random draw; the scenario's if `None`.
    pub seed: Option<u64>,
    /// Keys that override the scenario's.
    pub settings: Vec<Setting>,
    /// File for the trace.
    pub out: PathBuf,
    /// Format of the trace; `None` selects it by the file's extension.
    pub trace_format: Option<TraceFormat>,
}

impl Request {
    /// Writes the trace, and returns its number of messages.
    ///
    /// # Errors
    ///
    /// When the scenario or the file cannot be used, or when the caller interrupts.
    pub fn run(&self, runner: &Runner<'_>) -> Result<u64, Error> {
        let out = &self.out;
        let format = self.trace_format.or_else(|| TraceFormat::of_path(out)).ok_or_else(|| {
            let problem = "its extension names no format: must be .csv, .parquet, or any with \
                           --trace-format";
            InputError::file(out, problem)
        })?;
        let changes = Changes { settings: self.settings.clone(), trace: None };
        let mut scenario = Scenario::load_with(&self.scenario, &changes, FABRIC_NAMES)?;
        if let Some(seed) = self.seed {
            scenario.run.seed = seed;
        }
        let total = scenario.messages();
        let progress = runner.face.progress(Expected::Messages(total));
        let mut source = Watched {
            source: messages(&scenario)?,
            drawn: 0,
            share: Share::of(&*progress, total.unwrap_or(0), total),
            runner,
        };
        let written = write_trace(&mut source, out, format);
        if runner.is_interrupted() {
            return Err(Error::Interrupted(format!("after {} messages", source.drawn)));
        }
        Ok(written?)
    }
}

/// A source that shows its progress, and ends with an error when it is interrupted.
struct Watched<'p> {
    source: Box<dyn MessageSource>,
    drawn: u64,
    share: Share<'p>,
    runner: &'p Runner<'p>,
}

/// Number of messages between two updates of the progress.
const LOOK: u64 = 1 << 12;

impl MessageSource for Watched<'_> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        self.drawn += 1;
        if self.drawn.is_multiple_of(LOOK) {
            self.share.ended(self.drawn);
            if self.runner.is_interrupted() {
                return Err(SourceError("interrupted".to_owned()));
            }
        }
        self.source.next_message()
    }

    fn messages_total(&self) -> Option<u64> {
        self.source.messages_total()
    }
}
