//! Invariants of every run, whatever the scenario. All messages finish, all bytes arrive, no link
//! carries more than it can, and company seldom helps. The `close` of a fabric checks its own
//! invariants at the end of each run.

use std::collections::BTreeSet;

use ethermem_sim::metrics::{FrameStats, KindStats, RunResult};
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::WorkloadConfig;
use ethermem_sim::{Kind, Message, registry};
use proptest::prelude::*;

use crate::dfabric::least_slowdown;
use crate::support::{LINK_GBPS, run_scenario, scenario};

/// A pattern with its keys, for `nodes` nodes.
fn pattern(choice: u8, nodes: u16, draw: u16) -> String {
    match choice {
        0 => "pattern = \"all-to-all\"".to_owned(),
        1 => format!(
            "pattern = \"incast\"\nincast_fan_in = {}\nincast_receiver = {}",
            1 + draw % (nodes - 1),
            draw % nodes
        ),
        2 => "pattern = \"permutation\"".to_owned(),
        _ => format!(
            "pattern = \"hot-spot\"\nhot_spot_fraction = 0.{}\nhot_spot_node = {}",
            1 + draw % 9,
            draw % nodes
        ),
    }
}

fn sizes(choice: u8, bytes: u64) -> String {
    match choice {
        0 => format!("message_bytes = {}", 1 + bytes % 64),
        1 => format!("message_bytes = {}", 1 + bytes % 1_000),
        2 => format!("message_bytes = {}", 1 + bytes),
        _ => format!(
            "size_cdf = \"{}\"",
            ["hadoop", "spark", "sparksql", "graphlab", "memcached"][bytes as usize % 5]
        ),
    }
}

/// Scenarios over the whole range of valid values, of some hundred messages each. Reads may wait
/// long behind megabytes at 10 Gb/s, so the timeout is long.
fn scenarios() -> impl Strategy<Value = String> {
    let fabric = (2..=16u16, prop::sample::select(&LINK_GBPS[..]), 0..200u64, 1..=9u32);
    let policy =
        prop::sample::select(&["fcfs", "srpt", "srpt-published", "srpt-classes", "auto"][..]);
    let order = prop::sample::select(&["pair", "strict", "relaxed"][..]);
    let edm = (policy, order, any::<(bool, bool)>(), 1..=8u8, 0..3u32, 1..=16u64);
    let background = prop_oneof![2 => Just(0), 1 => 1..=30u32];
    let load = 10..=95u32;
    let workload = ((0..4u8, any::<u16>()), (0..4u8, 0..20_000u64), load, 0..=100u32, 0..=100u32);
    (fabric, edm, background, workload, 1..1_000_000u64).prop_map(
        |(fabric, edm, background, workload, seed)| {
            let (nodes, gbps, propagation_ns, memory_ns) = fabric;
            let (policy, order, (fair, batching), x, ahead, chunk) = edm;
            let ((choice, draw), (size, bytes), load, reads, atomics) = workload;
            let load = load.min(99 - background);
            let atomics = (100 - reads) * atomics / 100;
            format!(
                "[fabric]\nnodes = {nodes}\nlink_gbps = {gbps}\npropagation_ns = {propagation_ns}\n\
                 memory_access_ns = {memory_ns}\n[fabric.edm]\npolicy = \"{policy}\"\n\
                 order = \"{order}\"\narbitration = \"{}\"\nread_timeout_us = 1000000\n\
                 batching = {batching}\nnotifications_max = {x}\nahead_blocks = {}\n\
                 chunk_bytes = {}\n[background]\nload = 0.{background:02}\n[workload]\n{}\n\
                 load = 0.{load:02}\n{}\nread_fraction = {}\nrmw_fraction = {}\n\
                 messages = 300\n[run]\nseed = {seed}\nwarmup_fraction = 0\n\
                 cooldown_fraction = 0\n",
                if fair { "fair" } else { "strict" },
                ahead * 17,
                chunk * 64,
                pattern(choice, nodes, draw),
                sizes(size, bytes),
                f64::from(reads) / 100.0,
                f64::from(atomics) / 100.0,
            )
        },
    )
}

/// Draws the messages of a scenario on a fabric, without the fabric.
fn each_message(scenario: &Scenario, fabric: &str, mut each: impl FnMut(&Message)) {
    let blocks = registry::find(fabric).expect("a fabric").blocks;
    let config = &scenario.fabric;
    let mut source = scenario
        .workload
        .open(config.nodes, config.link, scenario.run.seed, &|k, b| blocks(config, k, b))
        .expect("a workload");
    while let Some(message) = source.next_message().expect("a message") {
        each(&message);
    }
}

/// The messages of a scenario by kind, and their bytes, drawn without a fabric.
pub(crate) fn drawn(scenario: &Scenario) -> [(u64, u64); 3] {
    let mut counts = [(0, 0); 3];
    each_message(scenario, &scenario.fabric_kind, |message| {
        let at = Kind::ALL.iter().position(|&kind| kind == message.kind).expect("a kind");
        counts[at].0 += 1;
        counts[at].1 += message.bytes.0;
    });
    counts
}

/// The least slowdown on DFabric of the messages of a scenario.
pub(crate) fn dfabric_floor(scenario: &Scenario) -> f64 {
    let mut sizes = BTreeSet::new();
    each_message(scenario, "dfabric", |message| {
        sizes.insert(message.bytes.0);
    });
    least_slowdown(&scenario.fabric, sizes.into_iter())
}

fn check_kinds(result: &RunResult, drawn: &[(u64, u64); 3]) {
    let kinds = &result.kinds;
    let empty = (0, 0);
    let counts = |kind: &KindStats| (kind.messages, kind.bytes);
    assert_eq!(counts(&kinds.read), drawn[0]);
    assert_eq!(counts(&kinds.write), drawn[1]);
    assert_eq!(kinds.rmw.as_ref().map_or(empty, counts), drawn[2]);
    let sum = drawn.iter().fold(empty, |sum, kind| (sum.0 + kind.0, sum.1 + kind.1));
    assert_eq!(counts(&kinds.all), sum);
    for kind in [Some(&kinds.read), Some(&kinds.write), kinds.rmw.as_ref(), Some(&kinds.all)] {
        let Some(kind) = kind.filter(|kind| kind.messages > 0) else { continue };
        let least = kind.slowdown_min.expect("measured");
        let rising = [
            least,
            kind.slowdown_p50.expect("measured"),
            kind.slowdown_p99.expect("measured"),
            kind.slowdown_p999.expect("measured"),
            // Percentiles are rounded up by at most this.
            kind.slowdown_max.expect("measured") * 1.000_1 + 0.000_1,
        ];
        assert!(rising.is_sorted(), "{rising:?}");
        let mean = kind.slowdown_mean.expect("measured");
        // A mean of equal values may be a last bit off.
        let (low, high) = (least * (1.0 - 1e-12), rising[4] * (1.0 + 1e-12));
        assert!((low..=high).contains(&mean), "{mean} of {rising:?}");
    }
}

pub(crate) fn check(scenario: &Scenario, fabric: &str, drawn: &[(u64, u64); 3]) -> RunResult {
    // A fabric whose invariants do not hold gives no result, and the run panics.
    let result = run_scenario(scenario, fabric, None);
    let WorkloadConfig::Poisson(poisson) = &scenario.workload else { unreachable!("synthetic") };
    assert_eq!(result.messages_started, poisson.messages, "{fabric}");
    assert_eq!(result.messages_finished, poisson.messages, "{fabric}");
    assert_eq!(result.messages_lost, 0, "{fabric}");
    // So few messages hardly ever settle, and that is all there is to say.
    let steady = result.steady.as_ref().expect("synthetic messages");
    let said: Vec<String> = steady.notice(result.load_requested).into_iter().collect();
    assert_eq!(result.notices, said, "{fabric}");
    check_kinds(&result, drawn);
    if let Some(utilisation) = result.utilisation {
        let shares = [
            (utilisation.uplink_mean, utilisation.uplink_max),
            (utilisation.downlink_mean, utilisation.downlink_max),
        ];
        for (mean, max) in shares {
            assert!(mean > 0.0 && mean <= max && max <= 1.0, "{fabric}: {utilisation:?}");
        }
    }
    if let Some(overhead) = result.control_overhead {
        assert!(overhead > 0.0 && overhead < 1.0, "{fabric}: {overhead}");
    }
    let seconds = result.simulated_ns * 1e-9;
    let gbps = result.kinds.all.bytes as f64 * 8.0 / seconds / 1e9;
    assert!((result.payload_goodput_gbps / gbps - 1.0).abs() < 1e-9, "{fabric}");
    result
}

proptest! {
    #![proptest_config(crate::property::cases(96))]

    #[test]
    fn every_fabric_finishes_every_message(text in scenarios()) {
        let scenario = scenario(&text);
        let drawn = drawn(&scenario);
        let names = registry::FABRIC_NAMES.iter();
        let results = names.map(|fabric| (fabric, check(&scenario, fabric, &drawn)));
        for (fabric, result) in results {
            let least = result.kinds.all.slowdown_min.expect("measured");
            // Company never helps. A write that shares a notification was there before the
            // notification was sent, so it waits for that round trip like a write alone. A grant
            // counts from the iteration after the notification, whatever was in progress. An early
            // granted chunk waits at its egress.
            // A bound is held against the scenario's own fabric, and may be faster.
            let is_bound = registry::find(fabric).expect("of the registry").is_bound;
            let floor = if *fabric == "dfabric" { dfabric_floor(&scenario) } else { 1.0 };
            prop_assert!(is_bound || least >= floor, "{fabric}: slowdown {least}");
        }
    }
}

#[test]
fn the_measured_load_is_the_one_asked_for() {
    // 60,000 arrivals take their mean time within 1.2 % (three standard deviations), and the last
    // messages prolong the run slightly. Batches would save control blocks that load counts.
    for sizes in ["message_bytes = 64", "message_bytes = 700"] {
        for load in [0.2, 0.5, 0.8] {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 16\n[fabric.edm]\nbatching = false\n[workload]\n\
                 load = {load}\n{sizes}\nread_fraction = 0.5\nmessages = 60000\n[run]\nseed = 5"
            ));
            let result = run_scenario(&scenario, "edm", None);
            let measured = result.load_measured.expect("EDM has links");
            assert!((measured / load - 1.0).abs() < 0.02, "{measured} for {load}, {sizes}");
        }
    }
}

#[test]
fn background_frames_slow_memory_down_and_lose_nothing() {
    let run = |background: &str, arbitration: &str| {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 8\n[fabric.edm]\narbitration = \"{arbitration}\"\n[background]\n\
             {background}\n[workload]\nload = 0.4\nmessages = 5000"
        ));
        let result = run_scenario(&scenario, "edm", None);
        assert_eq!(result.messages_finished, 5_000);
        (result.kinds.all.latency_ns_mean.expect("measured"), result.frames)
    };
    let (quiet, none) = run("load = 0", "strict");
    let (strict, frames_strict) = run("load = 0.4", "strict");
    let (fair, frames_fair) = run("load = 0.4", "fair");
    // Under strict arbitration, a message waits at each of its four transmitters for at most the
    // frame block in progress.
    assert!(quiet < strict && strict < quiet + 4.0 * 0.64, "{quiet} {strict}");
    // Under fair arbitration, it waits at two of them for at most a control block's worth of
    // frames. At the other two it waits for at most 10 blocks. It also waits for what these waits
    // cost earlier messages.
    assert!(strict < fair && fair < quiet * 1.15, "{quiet} {strict} {fair}");

    // Memory's gain is the frames' loss; without memory, frames wait only for each other.
    assert_eq!(none, None);
    let [strict, fair] = [frames_strict, frames_fair].map(|frames| frames.expect("configured"));
    let mean = |frames: &FrameStats| frames.latency_ns_mean.expect("sent");
    let without = fair.latency_ns_mean_without_memory.expect("sent");
    assert!(fair.sent > 400 && fair.unloaded_ns < without, "{fair:?}");
    assert!(without < mean(&fair) && mean(&fair) < mean(&strict), "{fair:?} {strict:?}");
}

#[test]
fn far_links_slow_memory_and_shared_transmitters_leave_many_grants_unused() {
    // A round trip of 4 ms holds 20 messages of 1 MB, so all 3,907 chunks of one are granted before
    // the first arrives.
    for keys in [
        "propagation_ns = 1000000",
        "memory_access_ns = 1000000",
        "link_gbps = 400\n[background]\nload = 0.5",
    ] {
        for reads in [0, 1] {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 4\n{keys}\n[workload]\nload = 0.5\nread_fraction = {reads}\n\
                 message_bytes = 1000000\nmessages = 20"
            ));
            let result = run_scenario(&scenario, "edm", None);
            assert_eq!(result.messages_finished, 20, "{keys}");
        }
    }
}

#[test]
fn a_read_that_timed_out_still_uses_its_grants() {
    // A run whose grants are not used up ends as a violation, not with a result.
    let scenario = scenario(
        "[fabric]\nnodes = 16\n[fabric.edm]\nread_timeout_us = 1\n\
         [workload]\nload = 0.95\nmessage_bytes = 64\nmessages = 40000",
    );
    let result = run_scenario(&scenario, "edm", None);
    assert!(result.messages_lost > 100, "{} timed out", result.messages_lost);
    // The maximum is over the mean.
    let matching = result.matching.expect("EDM has a matching");
    assert!(matching.iterations_mean >= 1.0 && matching.size_mean >= 1.0, "{matching:?}");
    assert!(matching.iterations_max as f64 > matching.iterations_mean, "{matching:?}");
    assert!(matching.size_max as f64 > matching.size_mean, "{matching:?}");
    assert!(matching.size_max <= 16, "a port is joined with one other: {matching:?}");
    let iterations = matching.rounds as f64 * matching.iterations_mean;
    assert!((iterations * matching.size_mean - matching.grants as f64).abs() <= 0.5);
}
