//! The egress queue of EDM's switch under its worst loads, compared with its bound;
//! `docs/internals/egress-bound.md` derives it. A run that exceeds the bound ends with a violation,
//! so finishing is half of each test.

use ethermem_sim::metrics::Queue;

use crate::support::{run_scenario, scenario};

/// A window of four chunks: a sixth of what a round trip needs.
const NARROW: u32 = 136;

/// Runs a saturating scenario to its end; returns the queue of its switch.
fn run(nodes: u16, keys: &str, workload: &str) -> Queue {
    let scenario = scenario(&format!(
        "[fabric]\nnodes = {nodes}\n[fabric.edm]\n{keys}\n[workload]\n{workload}"
    ));
    let result = run_scenario(&scenario, "edm", None);
    assert_eq!(result.messages_finished, result.messages_started, "{keys}, {workload}");
    result.queue.expect("EDM has a switch")
}

const WORKLOADS: [&str; 8] = [
    "message_bytes = 64",
    "message_bytes = 5840",
    "message_bytes = 8\nread_fraction = 0.8",
    "message_bytes = 257\nrmw_fraction = 0.5",
    "pattern = \"incast\"\nmessage_bytes = 64",
    "pattern = \"incast\"\nmessage_bytes = 5840",
    "pattern = \"permutation\"\nmessage_bytes = 5840",
    "pattern = \"hot-spot\"\nmessage_bytes = 64",
];

fn check(queue: Queue, what: &str) -> u64 {
    let bound = queue.egress_blocks_bound.expect("EDM has a bound");
    assert!(
        queue.egress_blocks_max <= bound,
        "{} of {bound} blocks: {what}",
        queue.egress_blocks_max
    );
    queue.egress_blocks_max
}

#[test]
fn no_saturation_fills_the_egress_queue_past_its_bound() {
    for workload in WORKLOADS {
        for (nodes, keys) in [
            (4, "batching = false"),
            (16, "batching = false\norder = \"relaxed\""),
            (32, "batching = false\nahead_blocks = 64\nnotifications_max = 8"),
            (16, "batching = false\nchunk_bytes = 1024"),
        ] {
            let workload = format!("{workload}\nload = 1.0\nmessages = 30000");
            check(run(nodes, keys, &workload), &format!("{nodes}, {keys}, {workload}"));
        }
    }
}

#[test]
fn a_window_that_binds_bounds_the_queue_and_ends_no_run() {
    for workload in WORKLOADS {
        for order in ["pair", "strict", "relaxed"] {
            for (batching, load) in [(false, 0.0), (true, 0.0), (false, 0.4), (true, 0.4)] {
                let keys = format!(
                    "order = \"{order}\"\nbatching = {batching}\negress_window_blocks = {NARROW}"
                );
                let workload = format!(
                    "{workload}\nload = {}\nmessages = 2000\n[background]\nload = {load}",
                    1.0 - load
                );
                let queue = run(9, &keys, &workload);
                let longest = check(queue, &format!("{keys}, {workload}"));
                // Four chunks, one of them in progress, and a request of three blocks for each
                // grant of three. A grant of 256 B as single bytes is 768 blocks, not 34.
                let data = if batching { u64::from(NARROW) * 768 / 34 } else { NARROW.into() };
                assert_eq!(queue.egress_blocks_bound, Some(data + 34 + 135));
                assert!(longest > 0, "nothing was queued");
            }
        }
    }
}

#[test]
fn a_narrow_window_is_felt_and_the_usual_one_is_not() {
    let ended = |keys: &str| {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 8\n[fabric.edm]\n{keys}\n[workload]\nload = 1.0\n\
             message_bytes = 5840\nmessages = 4000"
        ));
        run_scenario(&scenario, "edm", None).simulated_ns
    };
    let usual = ended("");
    assert_eq!(usual, ended("egress_window_blocks = 1000000"));
    let narrow = ended(&format!("egress_window_blocks = {NARROW}"));
    assert!(narrow > 1.2 * usual, "{narrow} ns and {usual} ns");
}

#[test]
fn a_saturated_egress_queue_does_not_grow_with_the_run() {
    // It holds as much after 10,000 messages per node as after 2,000.
    let longest = |messages: u32| {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 8\n[fabric.edm]\nbatching = false\n[workload]\nload = 1.0\n\
             message_bytes = 64\nmessages = {messages}"
        ));
        run_scenario(&scenario, "edm", None).queue.expect("a switch").egress_blocks_max
    };
    let (short, long) = (longest(16_000), longest(80_000));
    assert!(long <= short + 34, "{short} blocks, then {long}");
}

#[test]
fn a_saturated_egress_queue_of_batches_does_not_grow_with_the_run() {
    // 256 B granted arrive as 40 blocks, not 34, and the excess is charged.
    let longest = |messages: u32| {
        let scenario = scenario(&format!(
            "[fabric]\nnodes = 16\n[fabric.edm]\nbatching = true\n[workload]\nload = 1.0\n\
             pattern = \"incast\"\nread_fraction = 0\nmessage_bytes = 64\nmessages = {messages}"
        ));
        run_scenario(&scenario, "edm", None).queue.expect("a switch").egress_blocks_max
    };
    let (short, long) = (longest(10_000), longest(40_000));
    assert!(long <= short + 34, "{short} blocks, then {long}");
}

#[test]
fn the_buffer_ahead_is_what_an_incast_fills() {
    // Many senders have equal chunks, and there is no control on the receiver's downlink. A chunk
    // of 34 blocks arrives at most `ahead` early, and its jitter is a few blocks.
    for ahead in [0, 16, 64] {
        let keys = format!("batching = false\nahead_blocks = {ahead}");
        let workload = "pattern = \"incast\"\nmessage_bytes = 256\nread_fraction = 0\n\
                        load = 1.0\nmessages = 30000";
        let longest = run(16, &keys, workload).egress_blocks_max;
        let expected = ahead + 34..=ahead + 34 + 4;
        assert!(expected.contains(&longest), "{longest} blocks for {ahead} ahead");
    }
}
