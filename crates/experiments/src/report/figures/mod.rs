//! The figures of a report: their runs, and how they show the results.

mod applications;
mod budget;
mod load;
mod sweeps;

use ethermem_sim::metrics::{KindStats, RunResult};
use ethermem_sim::report::Figure;

use super::plan::{Plan, Results};
use crate::error::Error;
pub(crate) use load::at_load;

/// Makes a figure from the runs that it has requested.
pub(crate) type Draw = Box<dyn Fn(&Results) -> Figure>;

/// A figure of the report.
#[derive(Debug)]
pub struct FigureEntry {
    /// Name in the page's address.
    pub id: &'static str,
    /// Requests its runs. The caller fills in the figure's command.
    pub(crate) plan: fn(&mut Plan) -> Result<Draw, Error>,
}

/// All figures, in the order of the page.
pub(crate) const FIGURES: [FigureEntry; 10] = [
    FigureEntry { id: "slowdown-by-load", plan: load::slowdown },
    FigureEntry { id: "slowdown-by-application", plan: applications::contenders_compared },
    FigureEntry { id: "latency-distribution", plan: load::latency_distribution },
    FigureEntry { id: "latency-by-load", plan: load::beside_ethernet },
    FigureEntry { id: "where-the-nanoseconds-go", plan: budget::stages },
    FigureEntry { id: "policy", plan: applications::policies },
    FigureEntry { id: "order", plan: applications::orders },
    FigureEntry { id: "notifications", plan: sweeps::notifications },
    FigureEntry { id: "chunk", plan: sweeps::chunk },
    FigureEntry { id: "goodput-by-load", plan: load::goodput },
];

/// A number of a run that figures show.
#[derive(Clone, Copy)]
struct Statistic {
    /// Title of the panel that shows it.
    title: &'static str,
    of: fn(&RunResult) -> Option<f64>,
}

const fn statistic(title: &'static str, of: fn(&RunResult) -> Option<f64>) -> Statistic {
    Statistic { title, of }
}

const MEAN: Statistic = statistic("Mean", |run| run.shown_all().slowdown_mean);
const P99: Statistic = statistic("99th percentile", |run| run.shown_all().slowdown_p99);

/// The statistics of one kind of message, with its name in titles.
type OfKind = (&'static str, fn(&RunResult) -> &KindStats);

const READS: OfKind = ("Reads", |run| &run.kinds.read);
const WRITES: OfKind = ("Writes", |run| &run.kinds.write);
