//! Two mirrored switches, and any component dies at any moment. Every request ends once, and
//! succeeds while its two nodes have a path. No acknowledged write is lost, and no atomic acts
//! twice. A request waits for its deadline only if a switch died without a sign.

use ethermem_edm::{EdmConfig, Event, FailReason, NodeId, Op, Token};
use ethermem_units::Ps;
use proptest::prelude::*;

use crate::cases;
use crate::history::{Outcome, Submitted, memory_bytes, random_request};
use crate::rng::Rng;
use crate::switches::{Kill, Network};

const NODES: u16 = 4;
const TIMEOUT: Ps = Ps::from_ns(100_000);
const REQUESTS: u32 = 48;
/// Number of slots of a flight in which a link is cut and back, or a row of ids is used many times.
const LATE: u64 = 4_000;

/// True if both nodes reach one switch.
fn has_path(kills: &[Kill], a: NodeId, b: NodeId) -> bool {
    let alive = |node| !kills.contains(&Kill::Node(node));
    let reaches = |switch, node| {
        !kills.iter().any(|&kill| match kill {
            Kill::Link(s, n) | Kill::Flap(s, n, _) => (s, n) == (switch, node),
            _ => false,
        })
    };
    let works = |switch| {
        !kills.iter().any(|&kill| match kill {
            Kill::Switch(s) | Kill::SilentSwitch(s) | Kill::Restart(s, _) => s == switch,
            _ => false,
        })
    };
    let path = |switch| works(switch) && reaches(switch, a) && reaches(switch, b);
    alive(a) && alive(b) && (path(0) || path(1))
}

fn run(seed: u64, kills: &[(u64, Kill)]) -> Network {
    run_late(seed, 200, kills)
}

/// Runs on links that are late by up to this many slots.
fn run_late(seed: u64, late_slots_max: u64, kills: &[(u64, Kill)]) -> Network {
    let what = format!("seed {seed}, up to {late_slots_max} slots late, {kills:?}");
    let mut rng = Rng(seed);
    let edm = EdmConfig { read_timeout: TIMEOUT, ..EdmConfig::default() };
    let mut network =
        Network::new(NODES, memory_bytes(NODES), &edm, || Ps(640 * rng.below(late_slots_max)));
    for &(when, kill) in kills {
        network.kill_at(Ps::from_ns(when), kill);
    }
    let mut submitted: Vec<Submitted> = Vec::new();
    for token in 0..REQUESTS {
        let node = NodeId::at(rng.below(u64::from(NODES)) as u16);
        let dead = kills
            .iter()
            .any(|&(at, kill)| kill == Kill::Node(node) && Ps::from_ns(at) <= network.now);
        let (request, data) = random_request(&mut rng, Token(token), node, NODES);
        if !dead && network.submit(node, request, data.clone()) {
            submitted.push(Submitted { node, request, data, at: network.now });
        }
        if rng.percent(40) {
            let pause = Ps(640 * rng.below(400));
            network.run(network.now + pause);
        }
    }
    network.run(network.now + TIMEOUT * 3);

    let kills: Vec<Kill> = kills.iter().map(|&(_, kill)| kill).collect();
    let silent = kills.iter().any(|kill| matches!(kill, Kill::SilentSwitch(_) | Kill::Restart(..)));
    for Submitted { node, request, at, .. } in &submitted {
        let Some(&(event, end)) = network.events.get(&request.token) else {
            assert!(kills.contains(&Kill::Node(*node)), "{request:?} hangs: {what}");
            continue;
        };
        // A write that was answered in time may wait for its second answer (R5).
        let write = matches!(request.op, Op::Write { .. });
        let most = if write { TIMEOUT.0 + TIMEOUT.0 / 4 } else { TIMEOUT.0 };
        assert!(end.0 - at.0 <= most, "{request:?} outlived its deadline: {what}");
        if has_path(&kills, *node, request.peer) {
            let failed = matches!(event, Event::Failed { .. });
            assert!(!failed, "{event:?} of {request:?} though there is a path: {what}");
            let at_once = end.0 - at.0 < TIMEOUT.0 / 2;
            assert!(at_once || silent, "{request:?} took {} ns: {what}", (end.0 - at.0) / 1000);
        } else {
            // Nodes are notified of a failed path or peer; only a failure without a sign leads to a
            // deadline.
            let null = matches!(event, Event::Failed { why: FailReason::Timeout, .. });
            assert!(!null || silent, "{request:?} waited for its deadline: {what}");
        }
    }
    let reads = network.reads.iter().map(|(&token, read)| (token, read.as_slice()));
    let memories = network.memories.iter().map(ethermem_edm::Memory::as_bytes);
    let outcome = Outcome {
        submitted: &submitted,
        events: &network.events,
        reads: reads.collect(),
        memories: memories.collect(),
        all_acknowledged: true,
        what: &what,
    };
    outcome.check();
    network
}

#[test]
fn a_repaired_link_carries_copies_again() {
    let again = |kills: &[(u64, Kill)]| -> u64 {
        let network = run(11, kills);
        let counters = network.nodes.iter().map(ethermem_edm::MirroredHost::counters);
        counters.map(|counters| counters.requests_again + counters.chunks_again).sum()
    };
    let links = (0..NODES).map(NodeId::at);
    let dead: Vec<_> = links.clone().map(|node| (0, Kill::Link(0, node))).collect();
    let repaired: Vec<_> = links.map(|node| (0, Kill::Flap(0, node, Ps::from_ns(240)))).collect();
    assert_eq!(again(&dead), 0, "one switch, no second copies");
    assert!(again(&repaired) > 20, "second copies after the repair");
}

/// Number of slots that a link may be late: few, or more than a cut link needs to be back.
fn late() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(200), 1 => Just(LATE)]
}

fn switch() -> impl Strategy<Value = u8> {
    0..2_u8
}

fn node() -> impl Strategy<Value = NodeId> {
    (0..NODES).prop_map(NodeId::at)
}

/// A link that comes back, at the earliest after both ends have noticed.
fn flap() -> impl Strategy<Value = Kill> {
    (switch(), node(), 50_u64..600)
        .prop_map(|(switch, node, down)| Kill::Flap(switch, node, Ps::from_ns(down)))
}

/// The failure of a component, for good or for a while.
fn kill() -> impl Strategy<Value = Kill> {
    let restart = (switch(), prop_oneof![1_u64..1_000, Just(30_000)]);
    prop_oneof![
        switch().prop_map(Kill::Switch),
        switch().prop_map(Kill::SilentSwitch),
        restart.prop_map(|(switch, down)| Kill::Restart(switch, Ps::from_ns(down))),
        (switch(), node()).prop_map(|(switch, node)| Kill::Link(switch, node)),
        flap(),
        node().prop_map(Kill::Node),
    ]
}

/// A read went by the switch whose port had come back, past a write that this switch had dropped
/// with the port. The memory node served the read first. Without R7 the first three cases fail.
#[test]
fn what_was_sent_before_a_link_came_back_does_not_act_after_it() {
    let flap = |switch, node, down| Kill::Flap(switch, NodeId::at(node), Ps::from_ns(down));
    let link = |switch, node| Kill::Link(switch, NodeId::at(node));
    run(9490296411459435210, &[(353, flap(1, 0, 240)), (667, link(0, 1))]);
    run(224213140751459314, &[(165, flap(1, 2, 50))]);
    run(10400405112454532150, &[(0, link(0, 1)), (1973, flap(0, 0, 50))]);
    run(5022192533616572094, &[(412, flap(0, 2, 240)), (0, Kill::Switch(1))]);
    for (switch, node) in (0..2).flat_map(|switch| (0..NODES).map(move |node| (switch, node))) {
        run(15183902747595406617, &[(1532, flap(switch, node, 240))]);
    }
}

/// A write had been abandoned with both links of its node. Its copy by one switch was still in
/// flight when a newer write by the other was acknowledged. Without R8 memory then lost the newer
/// write.
#[test]
fn what_was_given_up_does_not_act_after_what_came_later() {
    let flap = |switch, down| Kill::Flap(switch, NodeId::at(0), Ps::from_ns(down));
    let network = run_late(9385722425986788261, LATE, &[(1142, flap(0, 53)), (1476, flap(1, 224))]);
    assert!(network.nodes.iter().any(|node| node.counters().given_up > 0));
}

/// A switch had joined two nodes, and one had not heard of it yet when it lost the peer by the
/// other switch. If a memory node then forgets what it did, it acts again on the copy that the
/// first switch still brings.
#[test]
fn a_memory_node_remembers_what_may_still_have_a_copy() {
    let flap = |switch, node, down| Kill::Flap(switch, NodeId::at(node), Ps::from_ns(down));
    let restart = (530, Kill::Restart(0, Ps::from_ns(31)));
    run_late(358801653343615217, LATE, &[(729, flap(1, 0, 196)), (2419, flap(1, 1, 247)), restart]);
}

/// The last link of a memory node was cut four times, each time before the notice of the previous
/// cut had arrived. With half the range of a three-bit number the next notice was taken for an
/// older one.
#[test]
fn four_losses_in_a_row_of_which_no_word_came_are_heard_of() {
    let flap = |at, down| (at, Kill::Flap(1, NodeId::at(2), Ps::from_ns(down)));
    let flaps = [flap(679, 50), flap(949, 50), flap(1605, 433), flap(2167, 50)];
    run(11436862781169993120, &[[(0, Kill::Switch(0))].as_slice(), &flaps].concat());
}

#[test]
fn with_everything_alive_each_request_succeeds_and_acts_once() {
    for seed in 0..100 {
        run(seed, &[]);
    }
}

proptest! {
    #![proptest_config(cases(2_000))]

    #[test]
    fn one_thing_dies(seed: u64, late in late(), when in 0_u64..4_000, kill in kill()) {
        run_late(seed, late, &[(when, kill)]);
    }

    #[test]
    fn two_things_die(
        seed: u64,
        late in late(),
        kills in prop::collection::vec((0_u64..4_000, kill()), 2),
    ) {
        run_late(seed, late, &kills);
    }

    #[test]
    fn links_flap_while_something_dies(
        seed: u64,
        late in late(),
        mut flaps in prop::collection::vec((0_u64..2_500, flap()), 2..5),
        other in prop::option::of((0_u64..2_500, kill())),
    ) {
        flaps.extend(other);
        run_late(seed, late, &flaps);
    }

    /// Most of the cases that fail without R8.
    #[test]
    fn links_of_a_node_flap_while_copies_are_long_under_way(
        seed: u64,
        node in node(),
        (at, apart) in (0_u64..2_500, 0_u64..500),
        downs in (50_u64..600, 50_u64..600),
    ) {
        let flap = |switch, down| Kill::Flap(switch, node, Ps::from_ns(down));
        run_late(seed, LATE, &[(at, flap(0, downs.0)), (at + apart, flap(1, downs.1))]);
    }
}
