//! `ethermem replay`.

mod recorded;
mod setup;

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::replay::Request;
use ethermem_experiments::selection::{fabric, link_gbps};
use ethermem_sim::registry::FabricEntry;
use ethermem_study::Outcome;

use self::recorded::RecordedArguments;
pub(crate) use self::setup::SetupArguments;

use crate::failure::Failure;
use crate::files::Files;
use crate::output::RowFormat;
use crate::terminal::runner;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem replay redis.parquet --fabric edm,pfabric\n  \
    ethermem replay redis.parquet spark.parquet --fabric tcp --scope rack --link-gbps 40\n  \
    ethermem replay redis.parquet --fabric edm --out result.parquet --format json\n  \
    ethermem replay server.parquet client.parquet --cluster 12 --disk-trace server \\\n    \
    --disk-trace client --network-trace server.pcap --network-trace client.pcap \\\n    \
    --address 10.0.0.1 --address 10.0.0.2\n\
    \n\
    Traces are those of page accesses: docs/reference/trace.md. Each traced machine is split into\n\
    a compute, a memory and a disk blade, its memory is spread over the memory blades of its\n\
    cluster, and the network holds as many clusters as it has room for: OSDI 2016, section 4.\n\
    Arrivals do not wait for what came before, so a link can be asked for more than it carries;\n\
    the result then says so. docs/how-to/replay-a-trace.md explains the numbers.")]
pub(crate) struct Arguments {
    /// Page traces, one per machine; if there are fewer than machines in a cluster, they are
    /// assigned in turn. `none` for a machine of which only disks or the network were traced
    #[arg(value_name = "TRACE", required = true)]
    traces: Vec<PathBuf>,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', default_value = "edm",
          value_parser = fabric)]
    fabric: Vec<&'static FabricEntry>,

    #[command(flatten)]
    setup: SetupArguments,

    /// Data rate of every node's link in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, alias = "gbps", value_name = "GBPS", default_value = "100",
          value_parser = link_gbps)]
    link_gbps: u64,

    /// Number of fabrics that run concurrently; results are equal for every number [default: the
    /// machine's number of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    recorded: RecordedArguments,

    /// Write the completion time of every access to this Parquet file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: RowFormat,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = Files::default().writing("--out", arguments.out.as_deref());
    let read = |files: Files, path: &PathBuf| files.reading("a trace", Some(path));
    arguments.recorded.reading(arguments.traces.iter().fold(files, read)).check()?;
    let request = Request {
        traces: arguments.traces.clone(),
        fabrics: arguments.fabric.clone(),
        setup: arguments.setup.request(),
        recorded: arguments.recorded.request(),
        link_gbps: arguments.link_gbps,
        out: arguments.out.clone(),
    };
    let outcomes = request.run(&runner(arguments.threads))?;
    arguments.format.print(&outcomes[..], Outcome::table, Outcome::csv)
}
