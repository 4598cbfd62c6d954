//! CXL's credits, flits and head-of-line blocking, by hand.

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::cxl::Cxl;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

const FLIT: Ps = Ps(5_440);

fn config(keys: &str) -> FabricConfig {
    let credits = if keys.contains("credits") { "" } else { "credits = \"shared\"\n" };
    fabric_config(&format!("nodes = 16\n[fabric.cxl]\n{credits}{keys}"))
}

fn write(from: u16, to: u16, bytes: u64) -> Message {
    message(Ps::ZERO, Kind::Write, from, to, bytes)
}

#[test]
fn one_entry_of_buffer_is_stop_and_wait_a_hop() {
    // A line is two flits on the uplink; 10 ns and 70 ns later it is at its egress; then it is two
    // flits on the downlink. Its entry is free then, and its credit is back 25 and 10 ns after
    // that.
    let lines = 9;
    let config = config("buffer_entries = 1");
    let one = Alone::<Cxl>::new(&config).time(Kind::Write, Bytes(64));
    let (finished, _) = run_messages::<Cxl>(&config, &[write(0, 1, 64 * lines)]);
    let round = FLIT * 4 + Ps::from_ns(10 + 70 + 25 + 10);
    assert_eq!(finished, [one + round * (lines - 1)]);
}

#[test]
fn credits_for_a_round_trip_keep_a_link_full_and_fewer_do_not() {
    // That round of 136.76 ns is 20.1 lines of 6.8 ns.
    let time = |entries: u32| {
        let config = config(&format!("buffer_entries = {entries}"));
        run_messages::<Cxl>(&config, &[write(0, 1, 64 * 1_000)]).0[0]
    };
    let full = time(64);
    assert_eq!(time(22), full);
    let half = time(10).0 as f64 / full.0 as f64;
    assert!((half / 2.0 - 1.0).abs() < 0.02, "{half}");
}

#[test]
fn requests_of_several_messages_share_a_flit() {
    // Four reads of a line at once: four requests fill a flit. The lines come back in five flits,
    // of which the first two hold the first line.
    let config = config("");
    let read = |_| message(Ps::ZERO, Kind::Read, 0, 1, 64);
    let (finished, _) = run_messages::<Cxl>(&config, &(0..4).map(read).collect::<Vec<_>>());
    let alone = Alone::<Cxl>::new(&config).time(Kind::Read, Bytes(64));
    assert_eq!(finished, [0, 1, 2, 3].map(|flits| alone + FLIT * flits));
}

#[test]
fn an_incast_blocks_a_victim_at_the_head_of_its_line() {
    // Nodes 1 to 8 write to 0. Node 1 also writes to 15, which has no other sender, and node 9
    // writes to 14. Node 1's messages take turns, so each gets an eighth of 0's link. Without the
    // single queue the message to 15 would get half of node 1's link.
    let bytes = 64 * 2_000;
    let mut messages: Vec<Message> = (1..=8).map(|node| write(node, 0, 2 * bytes)).collect();
    messages.push(write(1, 15, bytes));
    messages.push(write(9, 14, bytes));
    let config = config("");
    let (finished, _) = run_messages::<Cxl>(&config, &messages);
    let alone = Alone::<Cxl>::new(&config).time(Kind::Write, Bytes(bytes));
    let slowdown = finished[8].0 as f64 / alone.0 as f64;
    assert!((7.8..8.2).contains(&slowdown), "{slowdown}");
    assert_eq!(finished[9], alone, "nobody's victim");
}

/// Share of the links that writes of 64 B at load 1 fill.
fn carried(pattern: &str, keys: &str) -> f64 {
    let text = format!(
        "[fabric]\nkind = \"cxl\"\nnodes = 16\n[fabric.cxl]\ncredits = \"shared\"\n{keys}\n\
         [workload]\nload = 1\nread_fraction = 0\npattern = \"{pattern}\"\nmessages = 60000"
    );
    let result = run_scenario(&scenario(&text), "cxl", None);
    // 64 B of 85 B on the line are data.
    result.payload_goodput_gbps_per_node / (100.0 * 64.0 / 85.0)
}

#[test]
fn a_queue_per_output_carries_what_one_queue_a_port_blocks() {
    let keys = "queues = \"per-output\"";
    let (random, apart) = (carried("all-to-all", keys), carried("permutation", keys));
    assert!(random > 0.85, "{random}");
    assert_eq!(apart, carried("permutation", ""), "one output a port needs one queue");
}

#[test]
fn a_queue_per_output_does_not_help_where_one_output_holds_all_credits() {
    // The victim of the incast above: lines to 0 hold the credits of its port in either case.
    let bytes = 64 * 2_000;
    let mut messages: Vec<Message> = (1..=8).map(|node| write(node, 0, 2 * bytes)).collect();
    messages.push(write(1, 15, bytes));
    let slowdown = |keys: &str| {
        let config = config(keys);
        let (finished, _) = run_messages::<Cxl>(&config, &messages);
        finished[8].0 as f64 / Alone::<Cxl>::new(&config).time(Kind::Write, Bytes(bytes)).0 as f64
    };
    let (one, many) = (slowdown(""), slowdown("queues = \"per-output\""));
    assert!(many > 0.8 * one, "{many} and {one}");
}

#[test]
fn one_queue_a_port_carries_two_thirds_of_random_traffic_at_most() {
    // Karol, Hluchyj and Morgan (1987): ports with one queue each carry 0.60 of their links with 16
    // ports and random destinations, 0.586 with many ports. Here the next entry of a port comes up
    // at the start of the last flit of the previous one, a slot of five early. That raises the
    // share to 0.75 at most; flits that leave with empty slots lower it. A permutation has no
    // contention.
    let (random, apart) = (carried("all-to-all", ""), carried("permutation", ""));
    assert!((0.6..2.0 / 3.0).contains(&random), "{random}");
    assert!(apart > 0.93, "{apart}");
}

const BY_CLASS: &str = "credits = \"by-class\"";

/// The ratio by which 20 reads by node 1 are slower than alone while eight nodes, including it,
/// write to one. The reads are of a line of a node without other traffic.
fn reads_beside_stuck_writes(keys: &str) -> f64 {
    let config = config(keys);
    let mut messages: Vec<Message> = (1..=8).map(|node| write(node, 0, 64 * 4_000)).collect();
    let read = |at: u64| message(Ps::from_ns(20_000 + 1_009 * at), Kind::Read, 1, 15, 64);
    messages.extend((0..20).map(read));
    let (finished, _) = run_messages::<Cxl>(&config, &messages);
    let alone = Alone::<Cxl>::new(&config).time(Kind::Read, Bytes(64));
    let slower = |n: usize| (finished[n] - messages[n].arrival).0 as f64 / alone.0 as f64;
    (8..28).map(slower).sum::<f64>() / 20.0
}

#[test]
fn credits_by_class_keep_reads_from_waiting_behind_stuck_writes() {
    // A request waits at its node until it has a credit, and then in the switch behind 63 lines,
    // each of which has every eighth turn.
    let shared = reads_beside_stuck_writes("");
    assert!(shared > 10.0, "{shared} times as long");
    // With credits of its own, it waits for a flit or two at its node.
    let own = reads_beside_stuck_writes(BY_CLASS);
    assert!((1.0..1.1).contains(&own), "{own} times as long, {shared} with shared credits");
}

#[test]
fn credits_by_class_let_reads_and_writes_fill_links_that_shared_ones_leave_empty() {
    // Lines of 64 B both ways: with shared credits a request waits behind writes, and data behind
    // requests. By class, as CXL counts them, each waits for its own.
    let slowdown = |credits: &str| {
        let text = format!(
            "[fabric]\nkind = \"cxl\"\nnodes = 32\n[fabric.cxl]\n{credits}\n[workload]\n\
             load = 0.7\nmessages = 40000"
        );
        let result = run_scenario(&scenario(&text), "cxl", None);
        (result.is_sustained(), result.kinds.all.slowdown_mean.expect("measured"))
    };
    let (shared, own) = (slowdown("credits = \"shared\""), slowdown(""));
    assert!(!shared.0 && shared.1 > 3.0, "{shared:?}");
    assert!(own.0 && (1.1..1.3).contains(&own.1), "{own:?}");
}

#[test]
fn credits_by_class_change_nothing_for_one_class_with_as_many() {
    let keys = format!("{BY_CLASS}\nwrite_entries = 10\nrequest_entries = 1");
    let writes: Vec<Message> =
        (1..=8).flat_map(|node| [write(node, 0, 6_400), write(node, node + 1, 6_400)]).collect();
    let own = run_messages::<Cxl>(&config(&keys), &writes).0;
    assert_eq!(own, run_messages::<Cxl>(&config("buffer_entries = 10"), &writes).0);
}

#[test]
fn messages_alone_are_timed_right_with_few_credits_of_a_class() {
    for keys in ["request_entries = 1", "response_entries = 3", "write_entries = 5"] {
        let config = config(&format!("{BY_CLASS}\n{keys}"));
        let mut alone = Alone::<Cxl>::new(&config);
        for (kind, lines) in [(Kind::Read, 3_001), (Kind::Write, 2_500), (Kind::Read, 1)] {
            let bytes = 64 * lines;
            let sent = [message(Ps::ZERO, kind, 0, 1, bytes)];
            let (finished, _) = run_messages::<Cxl>(&config, &sent);
            assert_eq!(finished, [alone.time(kind, Bytes(bytes))], "{keys}: {lines} lines");
        }
    }
}

#[test]
fn credits_of_every_class_come_back_whatever_meets() {
    // Every run checks the credits: none is made or lost, no buffer exceeds its entries, and all
    // are back at the end.
    for flit in [68, 256] {
        for entries in [1, 2, 24] {
            let text = format!(
                "[fabric]\nkind = \"cxl\"\nnodes = 8\n[fabric.cxl]\nflit_bytes = {flit}\n\
                 {BY_CLASS}\nrequest_entries = {entries}\nwrite_entries = 2\n\
                 response_entries = {entries}\n[workload]\nload = 0.5\npattern = \"incast\"\n\
                 message_bytes = 500\nread_fraction = 0.4\nrmw_fraction = 0.2\nmessages = 4000"
            );
            let result = run_scenario(&scenario(&text), "cxl", None);
            assert_eq!(result.messages_finished, 4_000);
        }
    }
}
