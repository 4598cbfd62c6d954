//! The egress queue of EDM's switch under what is worst for it, held to its bound:
//! `docs/internals/egress-bound.md` derives it.

use ethermem_edm::budget as edm;
use ethermem_sim::FabricConfig;
use ethermem_sim::budget::Timing;
use ethermem_units::{Cycles, Ps};

use crate::support::{run_scenario, scenario};

/// Control blocks that pass a port free of charge.
const DEBT: u64 = 32;
/// Blocks of the longest request: a fetch-and-add.
const REQUEST: u64 = 3;

/// The bound in blocks, for a network without batches, without background frames and without
/// requests that wait behind data. There are some here: what is measured stays far below.
fn bound(config: &FabricConfig) -> u64 {
    let timing = Timing::of(config);
    let slots = |time: Ps| time.0.div_ceil(config.link.block_time().0);
    let cycles = |stages: &[Cycles]| timing.cycles(stages.iter().copied().sum());
    let hop = timing.hop(edm::PCS);
    let chunk = config.edm.chunk.0 / 8 + 2;
    let notifications = u64::from(config.edm.notifications_max) * (u64::from(config.nodes) - 1);
    let scheduler = config.edm.scheduler_clock.unwrap_or(config.pcs_clock);
    // From a grant's decision to the time it bears.
    let early = scheduler * 3 * u64::from(config.edm.lookahead_iterations.max(1));
    // From there to the uplink, and on to the egress.
    let to_uplink =
        cycles(&[edm::GENERATE_GRANT, edm::RECEIVE_GRANT, edm::GRANT_QUEUE, edm::GENERATE_DATA])
            + hop;
    let to_egress = to_uplink + hop + cycles(&[edm::FORWARD]);
    // A /G/ or request waits at its downlink for a chunk under way and a request before it; a
    // request is longer than a /G/, takes a cycle more, and its memory.
    let request_longer = cycles(&[edm::RECEIVE_REQUEST]) - cycles(&[edm::RECEIVE_GRANT]);
    let grant_late = chunk + REQUEST + (REQUEST - 1) + slots(request_longer + config.memory_access);
    // The uplink: control that the switch has not heard of.
    let unheard = slots(early + to_uplink + hop + cycles(&[edm::IDENTIFY, edm::INSERT]));
    let uplink = grant_late + DEBT + notifications * (1 + REQUEST) + unheard;
    // The downlink: control since the grants that are still to arrive.
    let downlink = slots(early + to_egress) + REQUEST;
    // What an item finds, and the item.
    u64::from(config.edm.ahead_blocks) + DEBT + grant_late + uplink + downlink + chunk
}

/// Runs a saturating scenario; gives the longest queue and the bound.
fn longest(nodes: u16, keys: &str, workload: &str) -> (u64, u64) {
    let scenario = scenario(&format!(
        "[fabric]\nnodes = {nodes}\n[fabric.edm]\nbatching = false\n{keys}\n\
         [workload]\nload = 1.0\n{workload}\nmessages = 30000"
    ));
    let result = run_scenario(&scenario, "edm", None);
    let queue = result.queue.expect("EDM has a switch");
    (queue.egress_blocks_max, bound(&scenario.fabric))
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

#[test]
fn no_saturation_fills_the_egress_queue_past_its_bound() {
    for workload in WORKLOADS {
        for (nodes, keys) in [
            (4, ""),
            (16, "order = \"relaxed\""),
            (32, "ahead_blocks = 64\nnotifications_max = 8"),
            (16, "chunk_bytes = 1024"),
        ] {
            let (longest, bound) = longest(nodes, keys, workload);
            assert!(longest <= bound, "{longest} of {bound} blocks: {nodes}, {keys}, {workload}");
        }
    }
}

#[test]
fn a_saturated_egress_queue_does_not_grow_with_the_run() {
    // What it holds after 2,000 messages a node it holds after 10,000.
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
    // 256 B granted come as 40 blocks, not 34, and the others are charged.
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
    // Many senders of equal chunks and no control on the receiver's downlink: a chunk of 34 blocks
    // comes at most `ahead` early, and its jitter is a few blocks.
    for ahead in [0, 16, 64] {
        let keys = format!("ahead_blocks = {ahead}");
        let workload = "pattern = \"incast\"\nmessage_bytes = 256\nread_fraction = 0";
        let (longest, _) = longest(16, &keys, workload);
        let expected = ahead + 34..=ahead + 34 + 4;
        assert!(expected.contains(&longest), "{longest} blocks for {ahead} ahead");
    }
}
