//! Arguments that select messages and their network.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::selection::{Selection, trace_format};
use ethermem_sim::scenario::Setting;
use ethermem_sim::workload::TraceFormat;

use crate::files::Files;

/// Messages to run, and their network.
#[derive(Args, Clone, Debug)]
pub(crate) struct SelectionArguments {
    /// Scenario: a TOML file; docs/reference/scenario.md lists its keys
    #[arg(value_name = "SCENARIO", required_unless_present = "trace")]
    scenario: Option<PathBuf>,

    /// Run the messages of this trace instead of the scenario's; without a scenario everything else
    /// has its default
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,

    /// Format of the trace [default: from its extension, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", requires = "trace", value_parser = trace_format)]
    trace_format: Option<TraceFormat>,

    /// Seed of every random draw, 0 to 2^64 - 1 [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Override a key of the scenario: fabric.edm.chunk_bytes=128. A word needs no quotes, an empty
    /// value removes the key, and files are relative to the scenario's folder. Repeat it for more
    /// keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,
}

impl SelectionArguments {
    /// The files that are read.
    pub(crate) fn files(&self) -> Files {
        let files = Files::default().reading("the scenario", self.scenario.as_deref());
        files.reading("also --trace", self.trace.as_deref())
    }

    pub(crate) fn request(&self) -> Selection {
        Selection {
            scenario: self.scenario.clone(),
            trace: self.trace.clone(),
            trace_format: self.trace_format,
            seed: self.seed,
            settings: self.settings.clone(),
        }
    }
}
