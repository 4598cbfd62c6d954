//! `ethermem compare`: one workload, or the points of a comparison, on several fabrics.

mod points;
mod published;

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ethermem_sim::fabrics::FabricEntry;
use ethermem_sim::output::runs_table;

use crate::failure::Failure;
use crate::output::Format;
use crate::progress::Progress;
use crate::runner::{Job, run_all, threads_default};
use crate::selection::{Selection, fabric};

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem compare scenarios/app-spark.toml --fabrics edm,raw-ethernet,ideal\n  \
    ethermem compare --trace messages.parquet --fabrics edm,raw-ethernet --format json\n  \
    ethermem compare scenarios/figure8a.toml\n\
    \n\
    Every fabric gets the same messages at the same times: load is what they put on the links of\n\
    the scenario's own fabric. A scenario with a table [compare] holds several points and their\n\
    fabrics; docs/how-to/compare-fabrics.md says how to write one.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them [default:
    /// those of the scenario's table compare]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Fabrics to run at once; the results are the same bytes, whatever it is [default: as many as
    /// the machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How a scenario's points are measured
    #[arg(long, value_name = "METHOD", default_value = "steady")]
    method: Method,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Refused: a timeline is of one run
    #[arg(long, value_name = "FILE", hide = true)]
    perfetto: Option<PathBuf>,

    /// Refused: messages are those of one run
    #[arg(long, value_name = "FILE", hide = true)]
    messages: Option<PathBuf>,
}

/// How the points of a scenario are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    /// A steady state, every message run to its end, over its time alone
    Steady,
    /// As the published values were made, by the scenario's table compare.published
    Published,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for (flag, file) in [("perfetto", &arguments.perfetto), ("messages", &arguments.messages)] {
        if file.is_some() {
            let instead = format!("use `ethermem sim` with --fabric NAME --{flag} FILE");
            return Err(Failure::input(format!("--{flag} is of one fabric: {instead}")));
        }
    }
    if let Some((name, comparison)) = arguments.selection.comparison()? {
        return match arguments.method {
            Method::Steady => points::run(arguments, &name, &comparison),
            Method::Published => published::run(arguments, &name, &comparison),
        };
    }
    if arguments.method == Method::Published {
        let problem = "allowed with a scenario that has a table [compare.published]";
        return Err(Failure::input(format!("--method published: {problem}")));
    }
    if arguments.fabrics.is_empty() {
        let problem = "--fabrics is not set, and the scenario has no table [compare]: allowed are \
                       names such as edm,raw-ethernet";
        return Err(Failure::input(problem));
    }
    let selected = arguments.selection.read()?;
    let scenario = &selected.scenario;
    let jobs: Vec<Job<'_>> =
        arguments.fabrics.iter().map(|fabric| Job::typed(&selected, fabric)).collect();
    let runs = jobs.len() as u64;
    let progress = Progress::of_messages(scenario.messages().map(|messages| messages * runs));
    let results = run_all(&jobs, arguments.threads(), &progress);
    progress.clear();
    let results = results?;
    arguments.format.print(&results, |results, style| runs_table(results, style))
}

impl Arguments {
    fn threads(&self) -> usize {
        self.threads.map_or_else(threads_default, usize::from)
    }
}
