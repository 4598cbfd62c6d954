//! One page that shows runs: figures, the numbers under each, the command that repeats it.

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

/// What a report shows. The same input makes the same bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportInput {
    /// Headline of the page.
    pub title: String,
    /// What was run and what the reader finds, in a sentence or two.
    pub lead: String,
    /// Where the numbers come from.
    pub origin: Origin,
    /// What a reader must see before all else.
    pub first: Vec<TableSection>,
    /// Rows of the table of runs.
    pub runs: Vec<ReportedRun>,
    /// Figures, in order.
    pub figures: Vec<Figure>,
    /// Numbers in full, after the figures.
    pub last: Vec<TableSection>,
    /// What the numbers are, at the foot; `None` for those of messages that run to their end.
    pub definitions: Option<String>,
    /// Fallbacks and reservations that concern the page as a whole.
    pub notices: Vec<String>,
}

/// Numbers that stand by themselves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableSection {
    /// Name of the section in the page's address, as a figure's.
    pub id: String,
    /// What is shown.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The numbers; without rows the caption says all.
    pub table: DataTable,
    /// What the numbers come to, in lines.
    pub notes: Vec<String>,
}

/// A run as the reader of a report knows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportedRun {
    /// What was run.
    pub workload: String,
    /// What it ran on, by the name that the figures give it.
    pub fabric: String,
    /// What it came to.
    pub result: RunResult,
}

/// Where the numbers of a report come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The command that repeats the whole page.
    pub command: String,
    /// Seed of every run on the page.
    pub seed: u64,
    /// Commit of the program, where it is known.
    pub commit: Option<String>,
    /// Class of the machine: architecture and cores, no name.
    pub machine: String,
    /// Programs and their versions.
    pub versions: Vec<(String, String)>,
}

/// Writes `index.html` into `folder`, which is made if it is not there. The page needs no other
/// file, no network and no script.
///
/// # Errors
/// [`OutputError`] when the folder or the page cannot be written; an older page then stays whole.
pub fn write_report(folder: &Path, input: &ReportInput) -> Result<PathBuf, OutputError> {
    std::fs::create_dir_all(folder).map_err(|reason| OutputError::new(folder, reason))?;
    let path = folder.join("index.html");
    write_file(&path, page::render(input).as_bytes())?;
    Ok(path)
}

#[cfg(test)]
mod tests;
