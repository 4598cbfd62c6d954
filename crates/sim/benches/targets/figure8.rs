//! Figure 8 of EDM's paper: the time of the whole figure, and the order of fabrics at load 0.9.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use ethermem_sim::compare::{Compared, Comparison, Place, leads};
use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{self, FabricEntry};
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;

use crate::case::{Case, run_all};
use crate::report::{Check, Section, Target};

/// Maximum seconds of the whole figure, on two cores.
const SECONDS_MAX: f64 = 180.0;
/// The rivals: the fabrics of the figure, and all others except bounds.
const RIVALS: [&str; 13] = [
    "ird",
    "pfabric",
    "pfc",
    "dctcp",
    "cxl",
    "fastpass",
    "homa",
    "ndp",
    "phost",
    "tcp",
    "roce",
    "raw-ethernet",
    "clio",
];

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    let started = Instant::now();
    let runs = by_published_method();
    let seconds = started.elapsed().as_secs_f64();
    section.note(format!("figure 8 by its published method: {runs} runs of 2,000 messages"));
    let what = "the whole of figure 8, as published, on all cores";
    section.check(Check::exact(what, "s", Target::AtMost(SECONDS_MAX), seconds));
    ahead(&mut section);
    section
}

/// Runs all points, fabrics and seeds; returns the number of runs.
fn by_published_method() -> usize {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut jobs: Vec<(&'static FabricEntry, Scenario)> = Vec::new();
    for name in ["figure8a.toml", "figure8b.toml"] {
        let comparison = Comparison::load(&folder.join(name), &[], None);
        let comparison = comparison.unwrap_or_else(|error| panic!("{error}"));
        let comparison = comparison.expect("figure 8 is a comparison");
        let method = comparison.method.as_ref().expect("it says how it was made");
        for point in comparison.experiments.iter().flat_map(|experiment| &experiment.points) {
            for fabric in &comparison.fabrics {
                let scenarios = point.by_method(method, fabric).expect("it knows its fabrics");
                let runs = method.runs(fabric);
                jobs.extend(scenarios.into_iter().map(|scenario| (runs, scenario)));
            }
        }
    }
    let (next, ended) = (AtomicUsize::new(0), Mutex::new(0));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((fabric, scenario)) = jobs.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let options = RunOptions { ways: true, ..RunOptions::of(fabric) };
                    run(scenario, options).unwrap_or_else(|error| panic!("{error}"));
                    *ended.lock().expect("no thread panics with it") += 1;
                }
            });
        }
    });
    ended.into_inner().expect("no thread panics with it")
}

/// Checks that EDM is ahead of every rival on the same messages, in mean and 99th percentile, in
/// slowdown and ns.
fn ahead(section: &mut Section) {
    let case = |fabric: &'static str| {
        Case::edm(fabric, "", "load = 0.9\nmessage_bytes = 64\nmessages = 50000").on(fabric)
    };
    let cases: Vec<Case> = std::iter::once("edm").chain(RIVALS).map(case).collect();
    let results = run_all(&cases);
    let place = |fabric: &str| Place {
        experiment: "mixed".to_owned(),
        point: "load=0.9".to_owned(),
        fabric: fabric.to_owned(),
        published: None,
        why: String::new(),
    };
    let row = |(case, result): (&Case, &RunResult)| Compared {
        place: place(registry::find(case.fabric).expect("a rival of the registry").name),
        load_asked: None,
        same_messages: result.clone(),
        own_blocks: None,
    };
    let rows: Vec<Compared> = cases.iter().zip(&results).map(row).collect();
    let numbers = leads(&rows, "edm").iter().flat_map(|lead| lead.numbers).flatten().count();
    let what = "64 B mixed, load 0.9: numbers in which a rival is not behind EDM";
    section.check(Check::exact(what, "", Target::Exactly(0.0), numbers as f64));
    for (case, result) in cases.iter().zip(results) {
        section.run("64 B mixed at load 0.9, the same messages", case, result);
    }
}
