//! `ethermem sim`.

use std::path::PathBuf;

use clap::Args;
use ethermem_sim::output::{MessageWriter, Timeline, runs_table};
use ethermem_sim::registry::{self, FabricEntry};

use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Progress;
use crate::runner::Job;
use crate::selection::{Selection, fabric};

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem sim scenarios/microbenchmark-64b.toml\n  \
    ethermem sim scenarios/app-hadoop.toml --set fabric.edm.policy=fcfs --format json\n  \
    ethermem sim --trace messages.parquet --fabric raw-ethernet --messages ended.parquet\n\
    \n\
    Slowdown is a message's time over the time it takes alone in the same fabric. Latencies are\n\
    in ns, from arrival to end. docs/reference/output.md explains every number.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// Fabric to run on; `ethermem fabrics` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME", value_parser = fabric)]
    fabric: Option<&'static FabricEntry>,

    /// Write every message to this Parquet file
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,

    /// Draw messages, links and grants on this timeline, for ui.perfetto.dev; 1 us there is 1 ns
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let selected = arguments.selection.read()?;
    let scenario = &selected.scenario;
    let fabric = arguments.fabric.unwrap_or_else(|| {
        registry::find(&scenario.fabric_kind).expect("a scenario names a fabric of the registry")
    });
    let messages = arguments.messages.as_deref().map(MessageWriter::create).transpose()?;
    let timeline = arguments
        .perfetto
        .as_deref()
        .map(|path| Timeline::create(path, &selected.name, Timeline::EVENTS_MAX_DEFAULT))
        .transpose()?;
    let job = Job::typed(&selected, fabric);
    let progress = Progress::of_messages(scenario.messages());
    let result = job.run(messages, timeline, &progress);
    progress.clear();
    let result = result?;
    arguments.format.print(&result, |result, style| runs_table(std::slice::from_ref(result), style))
}
