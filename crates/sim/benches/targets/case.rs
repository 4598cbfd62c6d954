//! A run of the simulator, as the sections request it.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;

/// One scenario on one fabric.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    /// The label that tells it from other cases of its table.
    pub(crate) label: String,
    /// The fabric's name.
    pub(crate) fabric: &'static str,
    /// The scenario as TOML.
    pub(crate) scenario: String,
}

impl Case {
    /// EDM with the lines `edm` added to `[fabric.edm]`, and the lines `workload` to `[workload]`.
    pub(crate) fn edm(label: impl Into<String>, edm: &str, workload: &str) -> Case {
        let scenario = format!("[fabric.edm]\n{edm}\n[workload]\n{workload}\n");
        Case { label: label.into(), fabric: "edm", scenario }
    }

    /// This case with another number of nodes.
    pub(crate) fn nodes(self, nodes: u16) -> Case {
        Case { scenario: format!("[fabric]\nnodes = {nodes}\n{}", self.scenario), ..self }
    }

    /// This case on another fabric.
    pub(crate) fn on(self, fabric: &'static str) -> Case {
        Case { fabric, ..self }
    }

    /// The validated scenario.
    pub(crate) fn parse(&self) -> Scenario {
        Scenario::parse(&self.scenario, Path::new(&self.label), FABRIC_NAMES)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    /// Runs the case to its end.
    pub(crate) fn run(&self) -> RunResult {
        self.run_and(false)
    }

    /// Runs the case to its end and records the way of every message.
    pub(crate) fn run_with_ways(&self) -> RunResult {
        self.run_and(true)
    }

    fn run_and(&self, ways: bool) -> RunResult {
        let fabric = registry::find(self.fabric).expect("a case names a fabric of the registry");
        let (label, scenario_name) = (self.label.clone(), self.label.clone());
        let options = RunOptions { label, scenario_name, ways, ..RunOptions::of(fabric) };
        run(&self.parse(), options).unwrap_or_else(|error| panic!("{}: {error}", self.label))
    }
}

/// Runs cases on all cores, which changes no result. Returns the results in the order of the cases.
pub(crate) fn run_all(cases: &[Case]) -> Vec<RunResult> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results = Mutex::new(vec![None; cases.len()]);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(cases.len()) {
            scope.spawn(|| {
                while let Some((at, case)) = Some(next.fetch_add(1, Ordering::Relaxed))
                    .and_then(|at| Some((at, cases.get(at)?)))
                {
                    let result = case.run();
                    results.lock().expect("no thread panics with the lock")[at] = Some(result);
                }
            });
        }
    });
    let results = results.into_inner().expect("no thread panics with the lock");
    results.into_iter().map(|result| result.expect("every case ran")).collect()
}
