//! One run of a scenario or a trace.

use std::path::PathBuf;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{MessageWriter, Timeline};
use ethermem_sim::registry::{self, FabricEntry};

use crate::error::Error;
use crate::runner::{Job, Runner};
use crate::selection::Selection;

/// Which messages run on which fabric, and the files that the run writes.
#[derive(Clone)]
pub struct Request {
    /// The messages, and the network of the scenario.
    pub selection: Selection,
    /// The fabric; the scenario's where it is `None`.
    pub fabric: Option<&'static FabricEntry>,
    /// Parquet file of every message.
    pub messages: Option<PathBuf>,
    /// Timeline of messages, links and grants.
    pub perfetto: Option<PathBuf>,
}

impl Request {
    /// Runs every message to its end.
    ///
    /// # Errors
    ///
    /// When the selection or a file cannot be used, or when the run fails or is interrupted.
    pub fn run(&self, runner: &Runner<'_>) -> Result<RunResult, Error> {
        let selected = self.selection.read(runner.face)?;
        let fabric = self.fabric.unwrap_or_else(|| {
            let kind = &selected.scenario.fabric_kind;
            registry::find(kind).expect("a scenario names a fabric of the registry")
        });
        let messages = self.messages.as_deref().map(MessageWriter::create).transpose()?;
        let timeline = self
            .perfetto
            .as_deref()
            .map(|path| Timeline::create(path, &selected.name, Timeline::EVENTS_MAX_DEFAULT))
            .transpose()?;
        runner.run_one(&Job::of(&selected, fabric, runner), messages, timeline)
    }
}
