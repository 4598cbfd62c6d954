//! `ethermem sweep`.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::sweep::Request;
use ethermem_sim::scenario::Setting;

use crate::failure::Failure;
use crate::files::Files;
use crate::interrupt;
use crate::output::Format;
use crate::terminal::runner;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem sweep sweeps/load.toml --out load.parquet\n  \
    ethermem sweep sweeps/load.toml --out few.parquet --set workload.messages=2000\n  \
    ethermem sweep sweeps/load.toml --out load.parquet --threads 2 --format json\n\
    \n\
    Finished points are kept in FILE.journal. After Ctrl-C, a kill or a full disk the same\n\
    command goes on: only missing points run. docs/how-to/sweep.md says how to write a sweep.")]
pub(crate) struct Arguments {
    /// Sweep: a TOML file that names a scenario, the keys to vary, fabrics and seeds
    #[arg(value_name = "SWEEP")]
    sweep: PathBuf,

    /// Parquet file of the results, a row per point; beside it FILE.journal keeps finished points
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Override a key of the scenario for all points: workload.messages=1000. Repeat it for more
    /// keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Number of concurrent points; results are equal for every number [default: the machine's
    /// number of hardware threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// Format of the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let files = Files::default().reading("the sweep", Some(&arguments.sweep));
    files.writing("--out", Some(&arguments.out)).check()?;
    let request = Request {
        sweep: arguments.sweep.clone(),
        settings: arguments.settings.clone(),
        out: arguments.out.clone(),
    };
    let runner = runner(arguments.threads);
    let sweep = request.open(&runner)?;
    interrupt::leaves(format!(
        "finished points are kept in {}: the same command goes on",
        sweep.journal().display()
    ));
    let outcome = sweep.run(&runner)?;
    arguments.format.print(&outcome.summaries, |_, style| outcome.table(style))
}
