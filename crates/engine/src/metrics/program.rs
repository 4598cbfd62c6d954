//! The outcome of a program, beside its messages.

use ethermem_units::{BitsPerSecond, Ps};
use ethermem_workload::program::{Program, ProgramSource, StepId};
use serde::Serialize;

/// What a program took, and what links alone would make of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct ProgramStats {
    /// Name of the program, as in scenarios.
    pub name: String,
    /// Number of its messages and computations.
    pub steps: u64,
    /// Time to the end of its last step.
    pub finished_ns: f64,
    /// Least time on links of the scenario's rate that have no latency: the longest chain of steps,
    /// or the busiest direction of a link.
    pub links_ns: f64,
    /// `finished_ns` over `links_ns`; `None` if the latter is zero.
    pub over_links: Option<f64>,
    /// By message, in the order of their indices: its step; not in JSON.
    #[serde(skip)]
    pub order: Vec<StepId>,
}

impl ProgramStats {
    /// The outcome of a finished run on links of this rate.
    #[must_use]
    pub fn of(
        name: &str,
        program: &Program,
        run: &ProgramSource<'_>,
        link: BitsPerSecond,
    ) -> ProgramStats {
        let finished = run.finished();
        let links = program.least_time(|bytes| link.bytes_time(bytes));
        ProgramStats {
            name: name.to_owned(),
            steps: program.steps().len() as u64,
            finished_ns: finished.as_ns_f64(),
            links_ns: links.as_ns_f64(),
            over_links: (links > Ps::ZERO).then(|| finished.0 as f64 / links.0 as f64),
            order: run.order().to_vec(),
        }
    }
}
