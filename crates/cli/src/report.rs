//! `ethermem report`: the main job.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::report::{self, FigureEntry};

use crate::failure::Failure;
use crate::output::{print, table_style};
use crate::terminal::runner;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem report\n  \
    ethermem report --quick --out out/quick\n  \
    ethermem report --figure slowdown-by-load --figure policy --out out/two\n\
    \n\
    Writes index.html, one page that needs no other file, and results.json, every run with the\n\
    command that repeats it. Both are whole or not there.")]
pub(crate) struct Arguments {
    /// Folder of the report
    #[arg(long, value_name = "FOLDER", default_value = report::OUT_DEFAULT)]
    out: PathBuf,

    /// Make only this figure; repeat it for more [default: all]
    #[arg(long = "figure", value_name = "NAME", value_parser = report::figure)]
    figures: Vec<&'static FigureEntry>,

    /// Run few messages: shows in a second that everything works, but shows no tails
    #[arg(long)]
    quick: bool,

    /// Seed of every run [default: the scenarios', 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Number of concurrent runs; results are equal for every number [default: the machine's number
    /// of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let request = report::Request {
        out: arguments.out.clone(),
        figures: arguments.figures.clone(),
        quick: arguments.quick,
        seed: arguments.seed,
    };
    let report = request.run(&runner(arguments.threads))?;
    print(&report.table(table_style()))?;
    print(&format!("wrote {}\n", report.path.display()))
}
