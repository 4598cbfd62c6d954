//! The points of a sweep; points in its journal are not rerun.

use std::path::{Path, PathBuf};

use ethermem_sim::output::TableStyle;
use ethermem_sim::scenario::Setting;
use ethermem_sim::sweep::{Point, Record, Session, Summary, Sweep, summaries_table};

use crate::error::Error;
use crate::face::Expected;
use crate::runner::{Job, Runner};
use crate::selection::note_shipped;

/// Sweep to run, and destination of its results.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path of a sweep, or the name of a built-in one.
    pub sweep: PathBuf,
    /// Keys that override the scenario's for all points.
    pub settings: Vec<Setting>,
    /// Parquet file for the results. Its journal is beside it.
    pub out: PathBuf,
}

/// A sweep whose journal is open.
pub struct Opened(Session);

/// Result of a sweep.
pub struct Outcome {
    axes: Vec<String>,
    /// Statistics of each place over its seeds.
    pub summaries: Vec<Summary>,
}

impl Request {
    /// Opens the journal of the sweep.
    ///
    /// # Errors
    ///
    /// When the sweep or its journal cannot be used.
    pub fn open(&self, runner: &Runner<'_>) -> Result<Opened, Error> {
        note_shipped(&self.sweep, runner.face);
        Ok(Opened(Session::open(&self.sweep, &self.settings, &self.out)?))
    }
}

impl Opened {
    /// The file that stores finished points.
    #[must_use]
    pub fn journal(&self) -> &Path {
        self.0.journal()
    }

    /// Runs the points that the journal lacks, and writes the results.
    ///
    /// # Errors
    ///
    /// When a run fails or is interrupted, or when a file cannot be written.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Outcome, Error> {
        let session = &self.0;
        self.run_missing(runner)?;
        let summaries = session.write()?;
        Ok(Outcome { axes: session.sweep().axes.clone(), summaries })
    }

    fn run_missing(&self, runner: &Runner<'_>) -> Result<(), Error> {
        let session = &self.0;
        let (sweep, missing) = (session.sweep(), session.missing());
        let total = sweep.points.len();
        self.note_finished(missing.len(), runner);
        let name = sweep.scenario.display().to_string();
        let points: Vec<&Point> = missing.iter().map(|&at| &sweep.points[at]).collect();
        let jobs: Vec<Job<'_>> = points.iter().map(|point| job(sweep, point, &name)).collect();
        let ended = runner.run_each(&jobs, Expected::of(&jobs), |at, result| {
            Ok(session.add(Record::new(points[at].identity, &result?))?)
        });
        match ended {
            Ok(_) => Ok(()),
            Err(Error::Interrupted(_)) => {
                let done = session.finished();
                Err(Error::Interrupted(format!("after {done} of {total} points")))
            }
            Err(error) => Err(error),
        }
    }

    /// Notes how many points the journal has.
    fn note_finished(&self, missing: usize, runner: &Runner<'_>) {
        let session = &self.0;
        let total = session.sweep().points.len();
        let there = session.finished();
        if there > 0 {
            runner.face.note(&format!("{there} of {total} points are there already"));
        }
        let unused = session.unused();
        if unused > 0 && missing > 0 {
            runner.face.note(&format!(
                "note: {}: {unused} finished points are of another sweep (file, --set, seed or \
                 version of the program); they are kept, and {missing} points run",
                session.journal().display(),
            ));
        }
    }
}

impl Outcome {
    /// The summaries for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        summaries_table(&self.axes, &self.summaries, style)
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
