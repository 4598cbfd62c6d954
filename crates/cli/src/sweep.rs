//! `ethermem sweep`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use clap::Args;
use ethermem_sim::scenario::Setting;
use ethermem_sim::sweep::{
    Identity, Journal, Point, Record, Sweep, summaries_table, summarise, write_rows,
};

use crate::failure::Failure;
use crate::interrupt;
use crate::output::Format;
use crate::progress::{Progress, messages_of};
use crate::runner::{COMMIT, Job, run_each, shell_line, threads_default};

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
    let out = &arguments.out;
    if out.file_name().is_none() || (out.exists() && !out.is_file()) {
        let problem = "allowed is the name of a file, beside which the journal has room";
        return Err(Failure::input(format!("--out {}: {problem}", out.display())));
    }
    let sweep = Sweep::load(&arguments.sweep, &arguments.settings, &program()?)?;
    let path = journal_of(out);
    let journal = Mutex::new(Journal::open(&path)?);
    interrupt::leaves(format!(
        "finished points are kept in {}: the same command goes on",
        path.display()
    ));
    run_missing(&sweep, &journal, arguments)?;
    let journal = journal.into_inner().unwrap_or_else(PoisonError::into_inner);
    let record = |point: &Point| journal.get(point.identity).expect("every point is finished");
    let records: Vec<&Record> = sweep.points.iter().map(record).collect();
    let summaries = summarise(&sweep.axes, &sweep.points, &records);
    write_rows(out, &sweep, &records, &summaries)?;
    arguments
        .format
        .print(&summaries, |summaries, style| summaries_table(&sweep.axes, summaries, style))
}

/// Runs the points that the journal does not have, the longest first, so that no thread ends up
/// alone with it.
fn run_missing(
    sweep: &Sweep,
    journal: &Mutex<Journal>,
    arguments: &Arguments,
) -> Result<(), Failure> {
    let lock = || journal.lock().unwrap_or_else(PoisonError::into_inner);
    let missing = missing(sweep, &lock());
    let (total, kept) = (sweep.points.len(), sweep.points.len() - missing.len());
    if kept > 0 {
        eprintln!("{kept} of {total} points are there already");
    }
    let name = sweep.scenario.display().to_string();
    let jobs: Vec<Job<'_>> =
        missing.iter().map(|point| job(sweep, point, &name, &arguments.settings)).collect();
    let progress = Progress::of_runs(jobs.iter().map(|job| job.cost).sum(), jobs.len().max(1));
    let threads = arguments.threads.map_or_else(threads_default, usize::from);
    let ended = run_each(&jobs, threads, &progress, |at, result| {
        Ok(lock().add(Record::new(missing[at].identity, &result))?)
    });
    progress.clear();
    match ended {
        Ok(_) => Ok(()),
        Err(Failure::Interrupted(_)) => {
            let done = total - self::missing(sweep, &lock()).len();
            Err(Failure::Interrupted(format!("after {done} of {total} points")))
        }
        Err(failure) => Err(failure),
    }
}

/// The points to run, each identity once: a sample may draw the same one twice.
fn missing<'s>(sweep: &'s Sweep, journal: &Journal) -> Vec<&'s Point> {
    let mut seen: BTreeSet<Identity> = BTreeSet::new();
    let is_missing = |point: &&Point| journal.get(point.identity).is_none();
    let points = sweep.points.iter().filter(is_missing);
    let mut points: Vec<&Point> = points.filter(|point| seen.insert(point.identity)).collect();
    points.sort_by_key(|point| std::cmp::Reverse(messages_of(&point.scenario)));
    points
}

fn job<'a>(sweep: &Sweep, point: &'a Point, name: &'a str, settings: &[Setting]) -> Job<'a> {
    let axes = sweep.axes.iter().zip(&point.values);
    let set = settings.iter().map(ToString::to_string);
    let set = set.chain(axes.map(|(key, value)| format!("{key}={value}")));
    let mut words = vec!["sim".to_owned(), name.to_owned()];
    words.extend(set.flat_map(|setting| ["--set".to_owned(), setting]));
    let seed = point.scenario.run.seed.to_string();
    words.extend(["--fabric", point.fabric.name, "--seed", &seed].map(str::to_owned));
    Job {
        fabric: point.fabric,
        scenario: &point.scenario,
        scenario_name: name,
        label: point.values.join(" "),
        command: shell_line(words.iter().map(String::as_str)),
        cost: messages_of(&point.scenario).unwrap_or(1),
    }
}

/// The file beside the results that keeps finished points.
fn journal_of(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".journal");
    name.into()
}

/// What results are kept under: the version, and where it does not say every byte of the sources,
/// the program's own bytes too.
fn program() -> Result<String, Failure> {
    let version = env!("ETHERMEM_VERSION").to_owned();
    if COMMIT.is_some_and(|commit| !commit.ends_with("-dirty")) {
        return Ok(version);
    }
    let file = std::env::current_exe()
        .map_err(|error| Failure::input(format!("cannot find this program's file: {error}")))?;
    Ok(format!("{version} {}", Identity::of_program(&file)?))
}
