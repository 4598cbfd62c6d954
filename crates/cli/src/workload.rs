//! `ethermem workload`: messages of workloads, before any network carries them.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ethermem_experiments::selection::trace_format;
use ethermem_experiments::workload::{generate, list, show, table};
use ethermem_sim::scenario::Setting;
use ethermem_sim::workload::TraceFormat;

use crate::failure::Failure;
use crate::files::Files;
use crate::output::{Format, print};
use crate::terminal::runner;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the built-in size distributions
    List(ListArguments),
    /// Show sizes, tail, blocks per message and arrival rate of a workload
    Show(ShowArguments),
    /// Write the messages of a scenario to a trace file
    Generate(GenerateArguments),
}

#[derive(Args)]
pub(crate) struct ListArguments {
    /// Format of the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem workload show memcached\n  \
    ethermem workload show scenarios/app-hadoop.toml --set workload.load=0.8\n  \
    ethermem workload show sizes.csv --set fabric.link_gbps=400 --format json\n\
    \n\
    Blocks are of 64 bits, means over all messages, on the uplink and the downlink of the compute\n\
    node and of the memory node. The arrival rate is that of the whole network, at the load of\n\
    the scenario on its own fabric.")]
pub(crate) struct ShowArguments {
    /// Name from `ethermem workload list`, a scenario (.toml), or a file of sizes with the columns
    /// `size_bytes,cumulative_probability`
    #[arg(value_name = "NAME|FILE")]
    workload: String,

    /// Override a key of the scenario, or of a default one: workload.load=0.4
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem workload generate scenarios/app-spark.toml --out spark.parquet\n  \
    ethermem workload generate scenarios/app-spark.toml --out spark.txt \\\n      \
      --trace-format edm-artifact\n\
    \n\
    Arrivals are those of the scenario's load on its own fabric.")]
pub(crate) struct GenerateArguments {
    /// Scenario: a TOML file
    #[arg(value_name = "SCENARIO")]
    scenario: PathBuf,

    /// Seed of every random draw [default: the scenario's]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Override a key of the scenario: workload.messages=2000
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// File of the trace
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Format of the trace [default: from the file's extension, .csv or .parquet]
    #[arg(long, value_name = "FORMAT", value_parser = trace_format)]
    trace_format: Option<TraceFormat>,
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => arguments.format.print(&list()[..], table),
        Command::Show(ShowArguments { workload, settings, format }) => {
            let (workload, settings) = (workload.clone(), settings.clone());
            format.print(&show::Request { workload, settings }.run()?, show::Shown::table)
        }
        Command::Generate(arguments) => write(arguments),
    }
}

fn write(arguments: &GenerateArguments) -> Result<(), Failure> {
    let files = Files::default().reading("the scenario", Some(&arguments.scenario));
    files.writing("--out", Some(&arguments.out)).check()?;
    let request = generate::Request {
        scenario: arguments.scenario.clone(),
        seed: arguments.seed,
        settings: arguments.settings.clone(),
        out: arguments.out.clone(),
        trace_format: arguments.trace_format,
    };
    let written = request.run(&runner(None))?;
    print(&format!("wrote {written} messages to {}\n", arguments.out.display()))
}
