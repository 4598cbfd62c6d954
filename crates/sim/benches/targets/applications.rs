//! The five application workloads (section 4.3.2), run to the end under each order.

use ethermem_sim::metrics::{KindStats, RunResult};

use crate::case::{Case, run_all};
use crate::report::{Check, Section, Target};

const APPLICATIONS: [&str; 5] = ["hadoop", "spark", "sparksql", "graphlab", "memcached"];

/// The seeds. Sizes have heavy tails, so another seed is another workload; the median counts.
const SEEDS: [u64; 3] = [1, 2, 3];

/// A configuration, with the maximum of mean slowdown and p99 where it has targets.
struct Variant {
    name: &'static str,
    edm: &'static str,
    mean_most: Option<f64>,
    p99_most: Option<f64>,
}

const VARIANTS: [Variant; 4] = [
    Variant { name: "order pair", edm: "", mean_most: Some(1.55), p99_most: Some(3.2) },
    Variant { name: "order strict", edm: "order = \"strict\"", mean_most: None, p99_most: None },
    Variant {
        name: "order relaxed",
        edm: "order = \"relaxed\"",
        mean_most: Some(1.15),
        p99_most: None,
    },
    Variant {
        name: "plain EDM (srpt-published)",
        edm: "policy = \"srpt-published\"",
        mean_most: None,
        p99_most: None,
    },
];

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    for messages in [20_000, 2_000] {
        for variant in &VARIANTS {
            measure_variant(&mut section, variant, messages);
        }
    }
    section
}

fn measure_variant(section: &mut Section, variant: &Variant, messages: u64) {
    let seeds = if variant.mean_most.is_some() { &SEEDS[..] } else { &SEEDS[..1] };
    let title = format!("{}, {messages} messages", variant.name);
    let of_seed = |application: &'static str| {
        seeds.iter().map(move |seed| {
            let workload = format!(
                "load = 0.4\nsize_cdf = \"{application}\"\nread_fraction = 0.5\n\
                 messages = {messages}\n[run]\nseed = {seed}"
            );
            Case::edm(format!("{application}, seed {seed}"), variant.edm, &workload)
        })
    };
    let cases: Vec<Case> = APPLICATIONS.into_iter().flat_map(of_seed).collect();
    let results = run_all(&cases);
    for (application, results) in APPLICATIONS.iter().zip(results.chunks(seeds.len())) {
        let name = format!("{application}, {title}");
        // The result of 2,000 messages depends on where the largest few fall: it is shown without a
        // target.
        if messages == 20_000 {
            check(section, &name, "mean", variant.mean_most, results, |all| all.slowdown_mean);
            check(section, &name, "p99", variant.p99_most, results, |all| all.slowdown_p99);
        }
        let finished: u64 = results.iter().map(|result| result.messages_finished).sum();
        let unfinished = (messages * seeds.len() as u64 - finished) as f64;
        let what = format!("{name}: not finished");
        section.check(Check::exact(what, "", Target::Exactly(0.0), unfinished));
    }
    for (case, result) in cases.iter().zip(results) {
        section.run(&title, case, result);
    }
}

fn check(
    section: &mut Section,
    name: &str,
    what: &str,
    most: Option<f64>,
    results: &[RunResult],
    value: impl Fn(&KindStats) -> Option<f64>,
) {
    let Some(most) = most else { return };
    let of = |result: &RunResult| value(&result.kinds.all).expect("messages were measured");
    let samples: Vec<f64> = results.iter().map(of).collect();
    section.check(Check::median(format!("{name}: {what}"), "", Target::AtMost(most), &samples));
}
