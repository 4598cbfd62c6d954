//! `ethermem replay-lines`.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::lines::{RECORDS, Request, cache, instructions_per_ns};
use ethermem_experiments::selection::{fabric, link_gbps};
use ethermem_lines::prefetch::PrefetchKind;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Setting;
use ethermem_study::lines::LineOutcome;

use crate::failure::Failure;
use crate::output::RowFormat;
use crate::terminal::runner;
use crate::value::{Named, one_of};

const PREFETCH: [Named<PrefetchKind>; 4] = [
    (PrefetchKind::None.name(), "No line", PrefetchKind::None),
    (
        PrefetchKind::NextLine.name(),
        "The next line, after a miss and the first use of a prefetched line",
        PrefetchKind::NextLine,
    ),
    (
        PrefetchKind::Stride.name(),
        "The next line of a row of equal distances in a page",
        PrefetchKind::Stride,
    ),
    (
        PrefetchKind::BestOffset.name(),
        "The line at an offset that is learned: Michaud, HPCA 2016",
        PrefetchKind::BestOffset,
    ),
];

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem replay-lines lines.parquet\n  \
    ethermem replay-lines lines.parquet --fabric cxl-ethernet --cache 0,32KiB --prefetch none\n  \
    ethermem replay-lines lines.parquet --warmup 50000 --records 200000 --format csv\n\
    \n\
    Traces are those of `ethermem profile --lines`: docs/reference/trace.md. A load waits for its\n\
    line; fetches for stores, write-backs and prefetches do not hold the program up. Each message\n\
    runs on the fabric. Slowdown is the ratio to the same program whose loads take 94 ns, as\n\
    from a host's own DDR. docs/how-to/replay-lines.md explains the numbers.")]
pub(crate) struct Arguments {
    /// Trace of cache lines
    #[arg(value_name = "TRACE")]
    trace: PathBuf,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',',
          default_value = "cxl-ethernet,cxl,edm", value_parser = fabric)]
    fabric: Vec<&'static FabricEntry>,

    /// Sizes of the cache at the compute node; 0 for none
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',',
          default_value = "0,32KiB,1MiB,16MiB", value_parser = cache)]
    cache: Vec<u64>,

    /// Prefetchers in front of that cache
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',',
          default_value = "none,next-line,stride,best-offset", value_parser = one_of(&PREFETCH))]
    prefetch: Vec<PrefetchKind>,

    /// Most accesses that are replayed, from the start of the trace
    #[arg(long, value_name = "COUNT", default_value = "100000",
          value_parser = clap::value_parser!(u64).range(RECORDS))]
    records: u64,

    /// Accesses at the start that fill the cache and are left out of the results
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    warmup: u64,

    /// Instructions in a nanosecond while the processor's own caches hit
    #[arg(long, value_name = "NUMBER", default_value = "3", value_parser = instructions_per_ns)]
    instructions_per_ns: f64,

    /// Data rate of the links in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, value_name = "GBPS", default_value = "100", value_parser = link_gbps)]
    link_gbps: u64,

    /// Set a key of the scenario that describes the network: fabric.cxl_ethernet.cxl_ip=hard
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Seed of every run
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// Number of runs at a time; results are equal for every number [default: the machine's number
    /// of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: RowFormat,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = Request {
        trace: arguments.trace.clone(),
        fabrics: arguments.fabric.clone(),
        caches: arguments.cache.clone(),
        prefetch: arguments.prefetch.clone(),
        records: arguments.records,
        warmup: arguments.warmup,
        instructions_per_ns: arguments.instructions_per_ns,
        link_gbps: arguments.link_gbps,
        seed: arguments.seed,
        settings: arguments.settings.clone(),
    };
    let outcomes = request.run(&runner(arguments.threads))?;
    arguments.format.print(&outcomes[..], LineOutcome::table, LineOutcome::csv)
}
