//! `ethermem workload generate`.

use std::path::PathBuf;

use clap::Args;
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_sim::run::messages;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::{InputError, TraceFormat, write_trace};
use ethermem_sim::{Message, MessageSource, SourceError};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::print;
use crate::progress::{Progress, Share};
use crate::selection::trace_format;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem workload generate scenarios/app-spark.toml --out spark.parquet\n  \
    ethermem workload generate scenarios/app-spark.toml --out spark.txt \\\n      \
      --trace-format edm-artifact\n\
    \n\
    Arrivals are those of the scenario's load on its own fabric.")]
pub(crate) struct Arguments {
    /// Scenario: a TOML file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// Seed of every random draw [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Set a key of the scenario, as if its file said so: workload.messages=2000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// File of the trace
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// How to write it [default: by the extension of the file, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", value_parser = trace_format)]
    trace_format: Option<TraceFormat>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let out = &arguments.out;
    let format = arguments.trace_format.or_else(|| TraceFormat::of_path(out)).ok_or_else(|| {
        let problem = "its extension names no format: allowed are .csv, .parquet, or any with \
                       --trace-format";
        InputError::file(out, problem)
    })?;
    let changes = Changes { settings: arguments.settings.clone(), trace: None };
    let mut scenario = Scenario::load_with(&arguments.scenario, &changes, FABRIC_NAMES)?;
    if let Some(seed) = arguments.seed {
        scenario.run.seed = seed;
    }
    let total = scenario.messages();
    let progress = Progress::of_messages(total);
    let mut source = Watched {
        source: messages(&scenario)?,
        drawn: 0,
        share: Share::of(&progress, total.unwrap_or(0), total),
    };
    let written = write_trace(&mut source, out, format);
    progress.clear();
    if interrupt::is_set() {
        return Err(Failure::Interrupted(format!("after {} messages", source.drawn)));
    }
    print(&format!("wrote {} messages to {}\n", written?, out.display()))
}

/// A source that shows how far it is, and ends with an error when it is interrupted.
struct Watched<'p> {
    source: Box<dyn MessageSource>,
    drawn: u64,
    share: Share<'p>,
}

/// Messages between two looks around.
const LOOK: u64 = 1 << 12;

impl MessageSource for Watched<'_> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        self.drawn += 1;
        if self.drawn.is_multiple_of(LOOK) {
            self.share.ended(self.drawn);
            if interrupt::is_set() {
                return Err(SourceError("interrupted".to_owned()));
            }
        }
        self.source.next_message()
    }

    fn messages_total(&self) -> Option<u64> {
        self.source.messages_total()
    }
}
