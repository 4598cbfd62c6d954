//! The 64 B microbenchmark (section 4.3.1), compared with the bounds for any scheduler.

use ethermem_sim::metrics::{KindStats, RunResult};

use crate::case::{Case, run_all};
use crate::report::{Check, Section, Target, table};

const MESSAGES: u64 = 1_000_000;

/// Load, maximum mean slowdown, maximum p99.
const TARGETS: [(f64, f64, f64); 2] = [(0.8, 1.15, 1.5), (0.9, 1.32, 2.0)];

/// A matching in zero time: greedy, oldest message first, without a buffer at the egress.
const INSTANTANEOUS: &str =
    "policy = \"fcfs\"\nscheduler_clock_ns = 0.001\nlookahead_iterations = 1\nahead_blocks = 0";

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    for (load, mean_most, p99_most) in TARGETS {
        let cases = cases(load);
        let results = run_all(&cases);
        let title = format!("64 B at load {load}");
        let mixes = cases.iter().zip(&results).take(MIXES.len());
        for (number, (case, result)) in mixes.enumerate() {
            let name = format!("{title}, {}", case.label);
            let kinds = &result.kinds;
            let mut slowdown = |what: &str, most: f64, value: Option<f64>| {
                let value = value.expect("messages of this kind were measured");
                let target = Target::AtMost(most);
                section.check(Check::exact(format!("{name}: {what}"), "", target, value));
            };
            slowdown("mean", mean_most, kinds.all.slowdown_mean);
            slowdown("p99", p99_most, kinds.all.slowdown_p99);
            if number == 0 {
                slowdown("mean of its reads", mean_most, kinds.read.slowdown_mean);
                slowdown("mean of its writes", mean_most, kinds.write.slowdown_mean);
                if load == 0.9 {
                    slowdown("mean, further target", 1.25, kinds.all.slowdown_mean);
                }
            }
            let unfinished = (MESSAGES - result.messages_finished) as f64;
            let what = format!("{name}: not finished");
            section.check(Check::exact(what, "", Target::Exactly(0.0), unfinished));
        }
        section.note(waits(&title, &results));
        for (case, result) in cases.iter().zip(results) {
            section.run(&title, case, result);
        }
    }
    section
}

/// Mean nanoseconds beyond the unloaded time, and relative to EDM's unloaded time. A bound that is
/// faster alone has a smaller denominator, so slowdowns of different fabrics are not directly
/// comparable.
fn waits(title: &str, results: &[RunResult]) -> String {
    let unloaded_ns = |result: &RunResult| {
        let (read, write) = (&result.kinds.read, &result.kinds.write);
        let sum = |kind: &KindStats| match (kind.latency_ns_mean, kind.slowdown_mean) {
            // All messages of a kind have one size, so they have one unloaded time.
            (Some(latency), Some(slowdown)) => latency / slowdown * kind.messages as f64,
            _ => 0.0,
        };
        (sum(read) + sum(write)) / result.kinds.all.messages as f64
    };
    let mix_ns = unloaded_ns(&results[0]);
    let rows = results.iter().map(|result| {
        let mean_ns = result.kinds.all.latency_ns_mean.expect("messages were measured");
        let wait_ns = mean_ns - unloaded_ns(result);
        vec![
            result.label.clone(),
            format!("{:.2}", unloaded_ns(result)),
            format!("{mean_ns:.2}"),
            format!("{wait_ns:.2}"),
            format!("{:.3}", 1.0 + wait_ns / mix_ns),
            result.queue.map_or("-".to_owned(), |queue| queue.egress_blocks_max.to_string()),
        ]
    });
    let header =
        ["run", "alone ns", "mean ns", "wait ns", "1 + wait / EDM alone", "egress blocks max"];
    format!("\n{title}: waiting\n{}", table(&header, rows))
}

/// The names of the mixes, and their shares of reads.
const MIXES: [(&str, f64); 3] = [("mix", 0.5), ("reads", 1.0), ("writes", 0.0)];

fn cases(load: f64) -> Vec<Case> {
    let workload = |reads: f64| {
        format!(
            "load = {load:?}\nmessage_bytes = 64\nread_fraction = {reads:?}\nmessages = {MESSAGES}"
        )
    };
    let mut cases = MIXES.map(|(name, reads)| Case::edm(name, "", &workload(reads))).to_vec();
    let mix = |label: &str, edm: &str| Case::edm(label, edm, &workload(0.5));
    cases.extend([
        mix("mix, plain EDM (srpt-published)", "policy = \"srpt-published\""),
        mix(
            "mix, plain EDM, no lookahead",
            "policy = \"srpt-published\"\nlookahead_iterations = 1",
        ),
        mix("mix, order relaxed", "order = \"relaxed\""),
        mix("bound: instantaneous greedy matching", INSTANTANEOUS),
        mix("bound: output-queued switch", "").on("output-queued"),
    ]);
    cases
}
