//! CXL's credits, flits and head-of-line blocking, by hand.

use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::cxl::Cxl;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::{Bytes, Ps};

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

const FLIT: Ps = Ps(5_440);

fn config(keys: &str) -> FabricConfig {
    fabric_config(&format!("nodes = 16\n[fabric.cxl]\n{keys}"))
}

fn write(from: u16, to: u16, bytes: u64) -> Message {
    message(Ps::ZERO, Kind::Write, from, to, bytes)
}

#[test]
fn one_entry_of_buffer_is_stop_and_wait_a_hop() {
    // A line is two flits up, 10 ns and 70 ns later at its egress, two flits down; its entry is
    // free then, and its credit back 25 and 10 ns after.
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
    // Four reads of a line at once: four requests are a flit. The lines come back in five, of
    // which the first two hold the first.
    let config = config("");
    let read = |_| message(Ps::ZERO, Kind::Read, 0, 1, 64);
    let (finished, _) = run_messages::<Cxl>(&config, &(0..4).map(read).collect::<Vec<_>>());
    let alone = Alone::<Cxl>::new(&config).time(Kind::Read, Bytes(64));
    assert_eq!(finished, [0, 1, 2, 3].map(|flits| alone + FLIT * flits));
}

#[test]
fn an_incast_blocks_a_victim_at_the_head_of_its_line() {
    // Nodes 1 to 8 write to 0; node 1 to 15 as well, where nobody else does, and 9 to 14. What 1
    // sends takes turns, so an eighth of 0's link is all that either gets. Without the one queue
    // it would have half of its own link.
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

#[test]
fn one_queue_a_port_carries_two_thirds_of_random_traffic_at_most() {
    // Karol, Hluchyj and Morgan (1987): ports with one queue each carry 0.60 of their links when
    // there are 16 and destinations are random, 0.586 when there are many. Here the next entry of a
    // port comes up at the start of the last flit of the one before, a slot of five early, which
    // raises that to 0.75 at most; flits that leave with slots empty take from it. A permutation
    // meets nobody.
    let carried = |pattern: &str| {
        let text = format!(
            "[fabric]\nkind = \"cxl\"\nnodes = 16\n[workload]\nload = 1\nread_fraction = 0\n\
             pattern = \"{pattern}\"\nmessages = 60000"
        );
        let result = run_scenario(&scenario(&text), "cxl", None);
        // 64 B of 85 B on the line.
        result.payload_goodput_gbps_per_node / (100.0 * 64.0 / 85.0)
    };
    let (random, apart) = (carried("all-to-all"), carried("permutation"));
    assert!((0.6..2.0 / 3.0).contains(&random), "{random}");
    assert!(apart > 0.93, "{apart}");
}
