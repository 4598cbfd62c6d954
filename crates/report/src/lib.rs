//! One page that shows runs: figures, their numbers, and the commands that repeat them.

mod figure;
mod number;
mod page;
mod plot;
#[cfg(test)]
#[path = "../../units/tests/support/property.rs"]
mod property;
mod table;

use std::path::{Path, PathBuf};

pub use figure::{
    Axis, BarPlot, BarSeries, DataTable, Figure, LinePlot, Mark, Panel, Plot, Role, Scale, Segment,
    Series, StackedBar, StackedPlot,
};

use ethermem_engine::metrics::RunResult;
use ethermem_engine::output::{OutputError, write_file};

/// Content of a report. Equal input gives equal bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportInput {
    /// Title of the page.
    pub title: String,
    /// What was run and what it shows, in a sentence or two.
    pub lead: String,
    /// Origin of the numbers.
    pub origin: Origin,
    /// Tables that come before everything else.
    pub first: Vec<TableSection>,
    /// Rows of the table of runs.
    pub runs: Vec<ReportedRun>,
    /// Figures, in order.
    pub figures: Vec<Figure>,
    /// Complete tables, after the figures.
    pub last: Vec<TableSection>,
    /// Definitions at the foot; `None` for those of messages that run to their end.
    pub definitions: Option<String>,
    /// Fallbacks and caveats that concern the whole page.
    pub notices: Vec<String>,
}

/// A table without a figure.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSection {
    /// Name of the section in the page's address, like a figure's.
    pub id: String,
    /// Title.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The numbers; if it has no rows, the caption says all.
    pub table: DataTable,
    /// Conclusions, one per line.
    pub notes: Vec<String>,
}

/// A run with the names that the report uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedRun {
    /// Name of the workload.
    pub workload: String,
    /// Name of the fabric, as in the figures.
    pub fabric: String,
    /// Result of the run.
    pub result: RunResult,
}

impl ReportedRun {
    fn place(&self) -> (&str, &str) {
        (&self.workload, &self.fabric)
    }
}

/// Workload and fabric of a run, and its load if another of `all` has both.
#[must_use]
pub fn run_name<'r>(
    run: (&str, &str),
    load: Option<f64>,
    all: impl Iterator<Item = (&'r str, &'r str)>,
) -> String {
    let (workload, fabric) = run;
    let load = load.filter(|_| all.filter(|other| *other == run).count() > 1);
    let load = load.map_or(String::new(), |load| format!(" at load {load}"));
    format!("{workload} on {fabric}{load}")
}

/// Origin of a report's numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// Command that repeats the whole page.
    pub command: String,
    /// Seed of every run on the page.
    pub seed: u64,
    /// Commit of the program, if known.
    pub commit: Option<String>,
    /// Kind of machine: architecture and number of cores, no name.
    pub machine: String,
    /// Programs and their versions.
    pub versions: Vec<(String, String)>,
}

/// Writes `index.html` into `folder`, which is created if absent. The page needs no other file, no
/// network and no script.
///
/// # Errors
/// [`OutputError`] when the folder or the page cannot be written; an older page then stays intact.
pub fn write_report(folder: &Path, input: &ReportInput) -> Result<PathBuf, OutputError> {
    std::fs::create_dir_all(folder).map_err(|reason| OutputError::new(folder, reason))?;
    let path = folder.join("index.html");
    write_file(&path, page::render(input).as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests;
