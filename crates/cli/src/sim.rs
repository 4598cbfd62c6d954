//! `ethermem sim`.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::selection::fabric;
use ethermem_experiments::simulate::Request;
use ethermem_sim::output::runs_table;
use ethermem_sim::registry::FabricEntry;

use crate::failure::Failure;
use crate::output::Format;
use crate::selection::SelectionArguments;
use crate::terminal::runner;

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
    selection: SelectionArguments,

    /// Fabric to run on; `ethermem fabrics` lists them [default: the scenario's]
    #[arg(long, value_name = "NAME", value_parser = fabric)]
    fabric: Option<&'static FabricEntry>,

    /// Write every message to this Parquet file
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,

    /// Write a timeline of messages, links and grants to this file, for ui.perfetto.dev; 1 us there
    /// is 1 ns
    #[arg(long, value_name = "FILE")]
    perfetto: Option<PathBuf>,

    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = arguments.selection.files();
    files
        .writing("--messages", arguments.messages.as_deref())
        .writing("--perfetto", arguments.perfetto.as_deref())
        .check()?;
    let request = Request {
        selection: arguments.selection.request(),
        fabric: arguments.fabric,
        messages: arguments.messages.clone(),
        perfetto: arguments.perfetto.clone(),
    };
    let result = request.run(&runner(None))?;
    arguments.format.print(&result, |result, style| runs_table(std::slice::from_ref(result), style))
}
