//! The fabric `ndp` against its paper.

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::ndp::Ndp;
use ethermem_sim::metrics::PacketCounts;
use ethermem_sim::packet::Frame;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

/// Data bytes of a full packet: the MTU without the headers of transport and memory.
const PAYLOAD: u64 = 1_500 - 40 - 16;
/// Time of a block at 100 Gb/s.
const SLOT: Ps = Ps(640);

/// Writes of this many packets by nodes from 1 on to node 0, all at once.
fn incast(senders: u16, packets: u64) -> Vec<Message> {
    let bytes = packets * PAYLOAD;
    (1..=senders).map(|node| message(Ps(1_000), Kind::Write, node, 0, bytes)).collect()
}

fn run(config: &FabricConfig, messages: &[Message]) -> (Vec<Ps>, PacketCounts) {
    let (finished, end) = run_messages::<Ndp>(config, messages);
    (finished, end.stats.packets.expect("packets"))
}

/// The earliest time at which the last of `packets` full packets is whole at their receiver. The
/// first arrives as if alone, and the others follow it on the receiver's link without a gap.
fn ideal(config: &FabricConfig, packets: u64) -> Ps {
    let first = Alone::<Ndp>::new(config).time(Kind::Write, Bytes(PAYLOAD));
    let line = SLOT * Frame::of(1_500).line_blocks().0;
    Ps(1_000) + first + line * (packets - 1)
}

#[test]
fn an_incast_of_64_takes_little_longer_than_its_data_on_one_link() {
    // The cases go from single packets, all sent at once into a queue of eight, to long messages.
    for (topology, packets) in [
        ("single-switch", 1),
        ("single-switch", 8),
        ("single-switch", 20),
        ("single-switch", 180),
        ("leaf-spine", 94),
    ] {
        let config = fabric_config(&format!("nodes = 144\ntopology = \"{topology}\""));
        let messages = incast(64, packets);
        let (finished, counts) = run(&config, &messages);
        let last = finished.iter().max().expect("64");
        let over = last.0 as f64 / ideal(&config, 64 * packets).0 as f64;
        assert!((1.0..1.1).contains(&over), "{topology}, {packets} packets: {over}");
        // Nothing is lost, not even a header; packets without room were trimmed, and sent again.
        assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
        let trimmed = counts.trimmed.expect("NDP trims");
        assert!(trimmed > 40, "{counts:?}");
        assert_eq!(counts.retransmitted, trimmed, "{counts:?}");
    }
}

#[test]
fn a_pull_that_overtakes_its_answer_on_another_spine_is_not_lost() {
    // Knuth's generator for MMIX; its upper bits are good enough.
    let mut state = 3_u64;
    let mut draw = |limit: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % limit
    };
    // A packet, or 32 of them for every eighth message, between 64 nodes at load 0.9.
    let messages: Vec<Message> = (0..4_000)
        .map(|number| {
            let source = draw(64);
            let destination = (source + 1 + draw(63)) % 64;
            let packets = if draw(8) == 0 { 32 } else { 1 };
            let (from, to) = (source as u16, destination as u16);
            message(Ps(number * 10_130), Kind::Write, from, to, packets * PAYLOAD)
        })
        .collect();
    let clos = "nodes = 64\ntopology = \"leaf-spine\"\n\
                [fabric.leaf_spine]\nrack_nodes = 8\nspines = 8";
    for (config, trimmed_min) in host_queues(clos).into_iter().zip([3_500, 4_000]) {
        let (_, counts) = run(&config, &messages);
        // Without the rule, 7 messages waited for the timeout although nothing was lost.
        assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
        assert!(counts.trimmed > Some(trimmed_min), "{counts:?}");
    }
}

#[test]
fn an_incast_of_64_from_other_racks_is_held_against_its_own_way() {
    let config = fabric_config("nodes = 144\ntopology = \"leaf-spine\"");
    let far = message(Ps(1_000), Kind::Write, 16, 0, PAYLOAD);
    let (near, first) = {
        let mut alone = Alone::<Ndp>::new(&config);
        (alone.time(Kind::Write, Bytes(PAYLOAD)), alone.time_of(&far))
    };
    // There are two hops more, which 15 packets of the receiver's own rack would cover: with these
    // among the senders, the ideal is one rack's.
    let fifteen = SLOT * (15 * Frame::of(1_500).line_blocks().0);
    assert!(first > near + Ps::from_ns(900) && first < near + fifteen, "{first} and {near}");
    // Short messages take over 1.1 times as long: a trimmed packet comes again later than the queue
    // of eight packets lasts.
    for (packets, most) in [(1, 1.22), (20, 1.17), (94, 1.01)] {
        let bytes = packets * PAYLOAD;
        let messages: Vec<Message> =
            (16..80).map(|node| message(Ps(1_000), Kind::Write, node, 0, bytes)).collect();
        let (finished, counts) = run(&config, &messages);
        let last = finished.iter().max().expect("64").0 as f64;
        let over = last / (ideal(&config, 64 * packets) + first - near).0 as f64;
        assert!((1.0..most).contains(&over), "{packets} packets: {over}");
        assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
    }
}

/// Both orders of a host's data packets, on these keys.
fn host_queues(keys: &str) -> [FabricConfig; 2] {
    ["turns", "arrival"]
        .map(|order| fabric_config(&format!("{keys}\n[fabric.ndp]\nhost_queue = \"{order}\"")))
}

#[test]
fn a_short_message_waits_for_a_packet_of_each_long_one_and_not_for_their_first_windows() {
    let (long, window) = (10, 20);
    let mut messages: Vec<Message> =
        (1..=10).map(|to| message(Ps(1_000), Kind::Write, 0, to, 40 * PAYLOAD)).collect();
    messages.push(message(Ps(1_000), Kind::Write, 0, 11, PAYLOAD));
    let line = SLOT * Frame::of(1_500).line_blocks().0;
    let [turns, arrival] = host_queues("nodes = 12").map(|config| {
        let alone = Alone::<Ndp>::new(&config).time(Kind::Write, Bytes(PAYLOAD));
        let (finished, counts) = run(&config, &messages);
        assert_eq!((counts.trimmed, counts.timeouts), (Some(0), 0), "{counts:?}");
        (finished[10] - alone - Ps(1_000), *finished.iter().max().expect("11"))
    });
    assert_eq!(turns.0, line * long);
    assert_eq!(arrival.0, line * (long * window));
    // The link is never idle in either order.
    assert_eq!(turns.1, arrival.1);
    // The default is the turns.
    let (finished, _) = run(&fabric_config("nodes = 12"), &messages);
    assert!(finished[10] < Ps(1_000) + line * window, "{:?}", finished[10]);
}

#[test]
fn a_host_with_one_message_sends_alike_in_turns_and_by_arrival() {
    let [turns, arrival] = host_queues("nodes = 65").map(|config| run(&config, &incast(64, 20)));
    assert_eq!(turns, arrival);
}

#[test]
fn short_messages_end_earlier_in_turns_where_packets_are_trimmed_and_runs_repeat_exactly() {
    // Eight nodes send to eight others, all pairs at once, and a short message of each comes last.
    let pairs = (0..8).flat_map(|from| (8..16).map(move |to| (from, to)));
    let messages: Vec<Message> = pairs
        .map(|(from, to)| (from, to, if to == 15 { 3 } else { 40 }))
        .map(|(from, to, packets)| message(Ps(1_000), Kind::Write, from, to, packets * PAYLOAD))
        .collect();
    let [turns, arrival] = host_queues("nodes = 16").map(|config| {
        let (first, second) = (run(&config, &messages), run(&config, &messages));
        assert_eq!(first, second);
        let (finished, counts) = first;
        assert!(counts.trimmed > Some(100), "{counts:?}");
        assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
        finished.chunks(8).map(|of_node| of_node[7].0).sum::<u64>()
    });
    assert!(4 * turns < arrival, "{turns} and {arrival}");
}

#[test]
fn headers_without_room_come_back_and_none_is_lost() {
    // There is room for 11 headers, and the headers of 64 senders arrive at once.
    let config = fabric_config("nodes = 65\n[fabric.ndp]\nheader_queue_bytes = 1000");
    let (finished, counts) = run(&config, &incast(64, 20));
    let returned = counts.returned.expect("NDP returns");
    assert!(returned > 500, "{counts:?}");
    assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
    let last = finished.iter().max().expect("64");
    assert!(last.0 as f64 / (ideal(&config, 64 * 20).0 as f64) < 1.1);
}

#[test]
fn pulls_are_fair_and_the_shortest_goes_first_where_that_is_asked() {
    // There are 40 long messages, and one of two windows.
    let messages = |config: &FabricConfig| {
        let mut messages = incast(40, 400);
        messages.push(message(Ps(1_000), Kind::Write, 41, 0, 40 * PAYLOAD));
        run(config, &messages).0
    };
    let fair = messages(&fabric_config("nodes = 42"));
    let (short, long) = fair.split_last().expect("41");
    let (first, last) = (long.iter().min().expect("40"), long.iter().max().expect("40"));
    assert!(first.0 as f64 > 0.97 * last.0 as f64, "{first:?} to {last:?}");
    // The short one has a 41st of the link while the others are there.
    let share = ideal(&fabric_config("nodes = 42"), 41 * 40).0 as f64;
    assert!((0.7 * share..1.2 * share).contains(&(short.0 as f64)), "{short:?}, {share}");
    let first =
        messages(&fabric_config("nodes = 42\n[fabric.ndp]\npull_order = \"fewest-missing\""));
    assert!(first[40].0 as f64 * 5.0 < short.0 as f64, "{:?} after {short:?}", first[40]);
}

#[test]
fn every_node_sends_and_receives_at_nearly_the_rate_of_its_link() {
    // The paper's permutation, over racks: its simulations have 92 to 95 %.
    let clos = "nodes = 144\ntopology = \"leaf-spine\"";
    // Acknowledgements take a part of every link.
    let data = Frame::of(1_500).line_bytes() as f64;
    let most = data / (data + Frame::of(40).line_bytes() as f64);
    for (keys, least) in [("nodes = 144", 0.99 * most), (clos, 0.92 * most)] {
        let config = fabric_config(keys);
        let write =
            |node| message(Ps(1_000), Kind::Write, node, (node + 40) % 144, 2_000 * PAYLOAD);
        let messages: Vec<_> = (0..144).map(write).collect();
        let (finished, counts) = run(&config, &messages);
        let mean = finished.iter().map(|at| at.0 as f64).sum::<f64>() / 144.0;
        let share = ideal(&config, 2_000).0 as f64 / mean;
        assert!(share > least, "{keys}: {share}, {counts:?}");
        assert_eq!((counts.dropped, counts.timeouts), (0, 0), "{counts:?}");
    }
}

#[test]
fn a_lost_control_packet_costs_a_timeout_and_no_message() {
    // Small messages at high load, with room for 11 headers where headers and all answers queue.
    let scenario = scenario(
        "[fabric]\nnodes = 32\n[fabric.ndp]\nqueue_packets = 1\nheader_queue_bytes = 1000\n\
         rto_us = 200\n[workload]\nload = 0.95\nmessages = 20000",
    );
    let result = run_scenario(&scenario, "ndp", None);
    assert_eq!(result.messages_finished, 20_000);
    let counts = result.packets.expect("packets");
    assert!(counts.dropped > 0, "{counts:?}");
    assert!((1..=counts.dropped).contains(&counts.timeouts), "{counts:?}");
}
