//! One run of a scenario or a trace.

use std::path::PathBuf;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{MessageWriter, Timeline};
use ethermem_sim::registry::{self, FabricEntry};

use crate::error::Error;
use crate::runner::{Job, Runner};
use crate::selection::Selection;

/// Messages, fabric, and output files.
#[derive(Clone)]
pub struct Request {
    /// The messages, and the network of the scenario.
    pub selection: Selection,
    /// Fabric; the scenario's if `None`.
    pub fabric: Option<&'static FabricEntry>,
    /// Parquet file for every message.
    pub messages: Option<PathBuf>,
    /// Timeline file of messages, links and grants.
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
