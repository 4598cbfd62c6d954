//! `ethermem compare`: one workload, or the points of a comparison, on several fabrics.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::compare::{Method, Outcome, Request};
use ethermem_experiments::selection::fabric;
use ethermem_sim::registry::FabricEntry;

use crate::failure::Failure;
use crate::output::Format;
use crate::selection::SelectionArguments;
use crate::terminal::runner;
use crate::value::{Named, one_of};

const METHODS: [Named<Method>; 2] = [
    ("steady", "Every message run to its end, over its time alone", Method::Steady),
    (
        "published",
        "As the published values were made, by the scenario's table compare.published",
        Method::Published,
    ),
];

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem compare scenarios/app-spark.toml --fabrics edm,raw-ethernet,ideal\n  \
    ethermem compare --trace messages.parquet --fabrics edm,raw-ethernet --format json\n  \
    ethermem compare scenarios/figure8a.toml\n  \
    ethermem compare scenarios/figure8b.toml --method published --out out/figure8b\n\
    \n\
    Every fabric gets the same messages at the same times: load is what they put on the links of\n\
    the scenario's own fabric. A scenario with a table [compare] holds several points and their\n\
    fabrics; docs/how-to/compare-fabrics.md says how to write one. --out writes index.html, one\n\
    page that needs no other file, and results.json, what --format json prints; both are whole or\n\
    not there.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: SelectionArguments,

    /// Fabrics to run on, in the order of the results; `ethermem fabrics` lists them [default:
    /// those of the scenario's table compare]
    #[arg(long, value_name = "NAME,NAME", value_delimiter = ',', value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Number of fabrics that run concurrently; results are equal for every number [default: the
    /// machine's number of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Method of measuring a scenario's points
    #[arg(long, value_name = "METHOD", default_value = "steady",
          value_parser = one_of(&METHODS))]
    method: Method,

    /// Run only this experiment of the scenario's table compare; repeat it for more [default: all]
    #[arg(long = "experiment", value_name = "NAME")]
    experiments: Vec<String>,

    /// Write a page of tables and figures into this folder
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,

    /// Refused, because a timeline shows one run
    #[arg(long, value_name = "FILE", hide = true)]
    perfetto: Option<PathBuf>,

    /// Refused, because messages belong to one run
    #[arg(long, value_name = "FILE", hide = true)]
    messages: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    for (flag, file) in [("perfetto", &arguments.perfetto), ("messages", &arguments.messages)] {
        if file.is_some() {
            let instead = format!("use `ethermem sim` with --fabric NAME --{flag} FILE");
            return Err(Failure::input(format!("--{flag} is of one fabric: {instead}")));
        }
    }
    arguments.selection.files().writing_page("--out", arguments.out.as_deref()).check()?;
    let request = Request {
        selection: arguments.selection.request(),
        fabrics: arguments.fabrics.clone(),
        method: arguments.method,
        experiments: arguments.experiments.clone(),
        out: arguments.out.clone(),
    };
    let mut outcome = request.run(&runner(arguments.threads))?;
    arguments.format.print(&outcome, Outcome::text)?;
    arguments.format.name_page(outcome.write()?.as_deref())
}
