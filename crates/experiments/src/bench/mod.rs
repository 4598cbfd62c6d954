//! Measurements of operations on pools.

pub mod figure;
pub mod micro;
pub mod ycsb;

use ethermem_bench::BenchError;

use crate::error::Error;
use crate::runner::Runner;

impl Error {
    /// The error of a measurement, for the caller whose command the runner repeats.
    fn of_bench(error: &BenchError, runner: &Runner<'_>) -> Error {
        match error {
            BenchError::Interrupted => Error::Interrupted("while measuring".to_owned()),
            error if error.is_defect() => {
                Error::Broken { what: error.to_string(), command: runner.command() }
            }
            error => Error::Machine(error.to_string()),
        }
    }
}

/// A line for each chosen transport to a node, each once.
fn chosen<'r>(of: impl Iterator<Item = (&'r String, &'r Option<String>)>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (pool, choice) in of {
        let line = choice.as_ref().map(|choice| format!("{pool}: {choice}\n"));
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines.concat()
}
