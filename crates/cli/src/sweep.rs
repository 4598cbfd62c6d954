//! `ethermem sweep`.

use std::path::PathBuf;

use clap::Args;
use ethermem_sim::scenario::Setting;
use ethermem_sim::sweep::{Point, Record, Session, Sweep, summaries_table};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::{Format, say};
use crate::progress::Progress;
use crate::runner::{Job, run_each, threads_default};
use crate::selection::note_shipped;

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

    /// Parquet file of the results, a row a point; beside it FILE.journal keeps finished points
    #[arg(long, value_name = "FILE")]
    out: PathBuf,

    /// Set a key of the scenario for all points: workload.messages=1000. Repeat it for more keys
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Points to run at once; the results are the same bytes, whatever it is [default: as many as
    /// the machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    /// How to print the results
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    note_shipped(&arguments.sweep);
    let session = Session::open(&arguments.sweep, &arguments.settings, &arguments.out)?;
    interrupt::leaves(format!(
        "finished points are kept in {}: the same command goes on",
        session.journal().display()
    ));
    run_missing(&session, arguments.threads)?;
    let summaries = session.write()?;
    let axes = &session.sweep().axes;
    arguments.format.print(&summaries, |summaries, style| summaries_table(axes, summaries, style))
}

/// Runs the points that the journal does not have.
fn run_missing(session: &Session, threads: Option<u16>) -> Result<(), Failure> {
    let (sweep, missing) = (session.sweep(), session.missing());
    let total = sweep.points.len();
    if missing.len() < total {
        say(format_args!("{} of {total} points are there already", total - missing.len()));
    }
    let unused = session.unused();
    if unused > 0 && !missing.is_empty() {
        say(format_args!(
            "note: {}: {unused} finished points are of another sweep (file, --set, seed or version \
             of the program); they are kept, and {} points run",
            session.journal().display(),
            missing.len()
        ));
    }
    let name = sweep.scenario.display().to_string();
    let points: Vec<&Point> = missing.iter().map(|&at| &sweep.points[at]).collect();
    let jobs: Vec<Job<'_>> = points.iter().map(|point| job(sweep, point, &name)).collect();
    let progress = Progress::of_runs(jobs.iter().map(|job| job.cost).sum(), jobs.len().max(1));
    let threads = threads.map_or_else(threads_default, usize::from);
    let ended = run_each(&jobs, threads, &progress, |at, result| {
        Ok(session.add(Record::new(points[at].identity, &result?))?)
    });
    progress.clear();
    match ended {
        Ok(_) => Ok(()),
        Err(Failure::Interrupted(_)) => {
            let done = total - session.missing().len();
            Err(Failure::Interrupted(format!("after {done} of {total} points")))
        }
        Err(failure) => Err(failure),
    }
}

fn job<'a>(sweep: &Sweep, point: &'a Point, name: &'a str) -> Job<'a> {
    Job {
        fabric: point.fabric,
        scenario: &point.scenario,
        scenario_name: name,
        label: point.values.join(" "),
        command: sweep.command(point),
        cost: point.scenario.messages().unwrap_or(1),
        ways: false,
    }
}
