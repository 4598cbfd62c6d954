//! One workload, or the points of a comparison, on several fabrics.

mod page;
mod points;
mod published;

use std::path::PathBuf;

use ethermem_sim::compare::{ByMethod, Compared, Comparison, Place, PublishedMethod, runs_page};
use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{TableStyle, runs_table};
use ethermem_sim::registry::{self, FabricEntry};
use ethermem_sim::report::ReportInput;
use serde::{Serialize, Serializer};

use self::page::Page;
use crate::error::Error;
use crate::face::Expected;
use crate::runner::{Job, Runner};
use crate::selection::Selection;

/// Messages, fabrics, and the method of measurement.
#[derive(Clone)]
pub struct Request {
    /// The messages, and the network of the scenario.
    pub selection: Selection,
    /// Fabrics, in the order of the results; those of the scenario's table `[compare]` if the list
    /// is empty.
    pub fabrics: Vec<&'static FabricEntry>,
    /// Method of measuring a scenario's points.
    pub method: Method,
    /// Names of experiments of the scenario's table `[compare]`; all if the list is empty.
    pub experiments: Vec<String>,
    /// Folder for a page of tables and figures.
    pub out: Option<PathBuf>,
}

/// Method of measuring a scenario's points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Every message runs to its end, and is compared with its unloaded latency.
    Steady,
    /// The method of the published values, from the scenario's table `[compare.published]`.
    Published,
}

/// Result of a comparison. It serializes to its rows.
pub struct Outcome {
    rows: Rows,
    page: Option<Page>,
}

/// The rows of a comparison.
#[derive(Debug)]
pub enum Rows {
    /// One workload, a run per fabric.
    One(Vec<RunResult>),
    /// The points of a table `[compare]`.
    Points {
        /// Results of the fabrics at the points.
        rows: Vec<Compared>,
        /// Fabric with which the others are compared.
        baseline: &'static str,
    },
    /// The points by the published method.
    Published {
        /// Results of the fabrics at the points.
        rows: Vec<ByMethod>,
        /// Method of measurement.
        method: PublishedMethod,
    },
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.rows {
            Rows::One(rows) => rows.serialize(serializer),
            Rows::Points { rows, .. } => rows.serialize(serializer),
            Rows::Published { rows, .. } => rows.serialize(serializer),
        }
    }
}

impl Outcome {
    /// The rows of the comparison.
    #[must_use]
    pub fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The rows for people.
    #[must_use]
    pub fn text(&self, style: TableStyle) -> String {
        match &self.rows {
            Rows::One(rows) => runs_table(rows, style),
            Rows::Points { rows, baseline } => points::text(rows, baseline, style),
            Rows::Published { rows, method } => published::text(rows, method, style),
        }
    }

    /// Writes the page, if one was requested, and returns its path.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn write(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some(page) = self.page.take() else { return Ok(None) };
        Ok(Some(page.write(self)?))
    }
}

impl Request {
    /// Runs the comparison. The page is made but not yet written: see [`Outcome::write`].
    ///
    /// # Errors
    ///
    /// When parts of the request contradict each other, or when a run fails or is interrupted.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Outcome, Error> {
        if let Some((name, mut comparison)) = self.selection.comparison(runner.face)? {
            self.retain_experiments(&mut comparison)?;
            return match self.method {
                Method::Steady => points::run(self, runner, &name, &comparison),
                Method::Published => published::run(self, runner, &name, &comparison),
            };
        }
        if self.method == Method::Published {
            let problem = "allowed with a scenario that has a table [compare.published]";
            return Err(Error::Request(format!("--method published: {problem}")));
        }
        if let Some(name) = self.experiments.first() {
            let problem = "allowed with a scenario that has a table [compare]";
            return Err(Error::Request(format!("--experiment {name}: {problem}")));
        }
        if self.fabrics.is_empty() {
            let problem = "--fabrics is not set, and the scenario has no table [compare]: must be \
                           names such as edm,raw-ethernet";
            return Err(Error::Request(problem.to_owned()));
        }
        self.one_point(runner)
    }

    /// Runs one workload: a scenario without a table `[compare]`, or a trace.
    fn one_point(&self, runner: &Runner<'_>) -> Result<Outcome, Error> {
        let selected = self.selection.read(runner.face)?;
        let scenario = &selected.scenario;
        let jobs: Vec<Job<'_>> =
            self.fabrics.iter().map(|fabric| Job::of(&selected, fabric, runner)).collect();
        let folder = self.folder()?;
        let runs = jobs.len() as u64;
        let expected = Expected::Messages(scenario.messages().map(|messages| messages * runs));
        let results = runner.run_all(&jobs, expected)?;
        let own = registry::find(&scenario.fabric_kind).expect("a scenario names a fabric");
        let baseline = baseline_of(own, &self.fabrics).name;
        let page = self.page(folder, &selected.name, scenario.run.seed, runner, |repeat| {
            let rows: Vec<Compared> = results.iter().map(compared).collect();
            ReportInput {
                lead: "The same messages at the same times on every fabric, each run to its end."
                    .to_owned(),
                ..runs_page(&rows, baseline, repeat)
            }
        });
        Ok(Outcome { rows: Rows::One(results), page })
    }

    /// Keeps only the requested experiments.
    fn retain_experiments(&self, comparison: &mut Comparison) -> Result<(), Error> {
        if self.experiments.is_empty() {
            return Ok(());
        }
        let known: Vec<&str> =
            comparison.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
        if let Some(name) = self.experiments.iter().find(|name| !known.contains(&name.as_str())) {
            let problem = format!("--experiment {name}: must be one of {}", known.join(", "));
            return Err(Error::Request(problem));
        }
        comparison.experiments.retain(|experiment| self.experiments.contains(&experiment.name));
        Ok(())
    }
}

fn compared(result: &RunResult) -> Compared {
    let place = Place {
        experiment: String::new(),
        point: String::new(),
        fabric: result.fabric.clone(),
        published: None,
        why: String::new(),
    };
    Compared { place, load_asked: None, same_messages: result.clone(), own_blocks: None }
}

/// The fabric with which the others are compared: the scenario's own, or the first if that is not
/// among them.
fn baseline_of(
    own: &'static FabricEntry,
    compared: &[&'static FabricEntry],
) -> &'static FabricEntry {
    if compared.iter().any(|fabric| fabric.name == own.name) { own } else { compared[0] }
}
