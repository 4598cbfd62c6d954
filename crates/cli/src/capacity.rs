//! `ethermem capacity`: the load that each fabric sustains, and its latency below that load.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::capacity::{Outcome, Request, Sizes, workload};
use ethermem_experiments::selection::fabric;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Setting;

use crate::failure::Failure;
use crate::output::Format;
use crate::terminal::runner;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem capacity --fabrics edm,homa,cxl --workloads 64,4096\n  \
    ethermem capacity --out out/capacity\n  \
    ethermem capacity --workloads hadoop --fabrics edm,homa\n  \
    ethermem capacity --workloads 64 --set fabric.packet.forwarding_ns=100 --format json\n\
    \n\
    A bisection finds the load that a fabric sustains, so that its backlog does not grow.\n\
    Latencies follow at equal goodput (15, 30 and 60 % of the link rate, as data) and at equal\n\
    share of that capacity (50 and 80 %). A cell is blank if the fabric does not sustain the\n\
    load. The network has 32 nodes, every node to every node, half reads and half writes,\n\
    unless --set changes it.")]
pub(crate) struct Arguments {
    /// Fabrics, in the order of the results; `ethermem fabrics` lists them [default: all]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Bytes of a message, or the name of an application [default: 64,1024,4096]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = workload)]
    workloads: Vec<Sizes>,

    /// Set a key of the scenario that describes the network: fabric.nodes=144
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Seed of every run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of searches that run concurrently; results are equal for every number [default: the
    /// machine's number of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Write a page of tables and figures into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request {
        fabrics: arguments.fabrics.clone(),
        workloads: arguments.workloads.clone(),
        settings: arguments.settings.clone(),
        seed: arguments.seed,
        out: arguments.out.clone(),
    };
    let mut outcome = request.run(&runner(arguments.threads))?;
    arguments.format.print(&outcome, Outcome::text)?;
    arguments.format.name_page(outcome.write()?.as_deref())
}
