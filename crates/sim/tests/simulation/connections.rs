//! Connections that outlive messages: what several messages share, and what each still has.

use ethermem_sim::engine::Fabric;
use ethermem_sim::fabrics::dctcp::Dctcp;
use ethermem_sim::fabrics::tcp::Tcp;
use ethermem_sim::metrics::PacketCounts;
use ethermem_sim::{Kind, Message};
use ethermem_units::Ps;

use crate::support::{fabric_config, message, run_messages, run_scenario, scenario};

const FABRICS: [&str; 2] = ["dctcp", "tcp"];

fn per_message(name: &str) -> String {
    format!("[fabric.{name}]\nconnections = \"per-message\"")
}

/// Runs messages on either fabric.
fn run(name: &str, keys: &str, messages: &[Message]) -> (Vec<Ps>, PacketCounts) {
    let config = fabric_config(&format!("nodes = 4\n{keys}"));
    let (finished, end) = match name {
        "dctcp" => run_messages::<Dctcp>(&config, messages),
        _ => run_messages::<Tcp>(&config, messages),
    };
    (finished, end.stats.packets.expect("packets"))
}

#[test]
fn messages_that_wait_for_the_interface_share_packets() {
    // The first write leaves at once. The other 90 wait for its frame: 80 B each in the stream, and
    // at most 1,460 B in a packet.
    let writes = [message(Ps(1_000), Kind::Write, 0, 1, 64); 91];
    for name in FABRICS {
        let (shared, counts) = run(name, "", &writes);
        let data = 1 + (90_u64 * 80).div_ceil(1_460);
        // Two packets for an acknowledgement, the last one of which may be alone.
        assert_eq!(counts.sent, data + data.div_ceil(2), "{name}: {counts:?}");
        assert!(shared.is_sorted(), "{name}: messages of a connection end in their order");
        let (own, counts) = run(name, &per_message(name), &writes);
        assert_eq!(counts.sent, 2 * 91, "{name}: {counts:?}");
        assert_eq!(shared[0], own[0], "{name}: a message alone is not slower");
        let (shared, own) = (shared[90] - writes[0].arrival, own[90] - writes[0].arrival);
        // 91 frames of 21 blocks, and some 940 blocks of six full ones.
        assert!(shared < own, "{name}: {shared} and {own}");
    }
}

#[test]
fn a_response_carries_the_acknowledgement_of_its_request() {
    let reads: Vec<Message> =
        (0..5).map(|n| message(Ps::from_ns(50_000 * n + 1), Kind::Read, 0, 1, 64)).collect();
    for name in FABRICS {
        // A request, a response, and the acknowledgement of the response after its delay.
        let (_, counts) = run(name, "", &reads);
        assert_eq!((counts.sent, counts.timeouts), (3 * 5, 0), "{name}: {counts:?}");
        // The next request comes before that, and carries it.
        let keys = format!("[fabric.{name}]\nack_delay_us = 60");
        let (_, counts) = run(name, &keys, &reads);
        assert_eq!((counts.sent, counts.timeouts), (2 * 5 + 1, 0), "{name}: {counts:?}");
    }
}

#[test]
fn a_long_response_goes_back_on_the_connection_of_its_request() {
    // 200 packets last longer than an acknowledgement waits. The first one carries that of the
    // request: one that went alone would delay the packets behind it.
    let packets = 200;
    let bytes = packets * 1_460 - 16;
    for name in FABRICS {
        let read = [message(Ps(1_000), Kind::Read, 0, 1, bytes)];
        let (_, counts) = run(name, "", &read);
        assert_eq!(counts.sent, 1 + packets + packets / 2, "{name}");
        // Two reads at once have a connection each, and take turns.
        let (finished, _) = run(name, "", &[read[0], read[0]]);
        let apart = finished[0].max(finished[1]) - finished[0].min(finished[1]);
        assert!(apart <= Ps(640 * 193) * 4, "{name}: {finished:?}");
    }
}

#[test]
fn company_never_makes_a_message_faster() {
    // Long reads among others, whose packets could carry what a read alone sends by itself.
    for name in FABRICS {
        for seed in [317_196, 1, 2, 3, 4, 5, 6, 7] {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 2\nlink_gbps = 40\npropagation_ns = 0\nmemory_access_ns = 1\n\
                 [workload]\nload = 0.1\nsize_cdf = \"sparksql\"\nread_fraction = 0.36\n\
                 messages = 300\n[run]\nseed = {seed}\nwarmup_fraction = 0\n\
                 cooldown_fraction = 0"
            ));
            let least = run_scenario(&scenario, name, None).kinds.all.slowdown_min;
            assert!(least >= Some(1.0), "{name}, seed {seed}: {least:?}");
        }
    }
}

#[test]
fn acknowledgements_come_by_twos_and_after_the_delay() {
    for name in FABRICS {
        for packets in [1, 2, 7, 100, 1_001] {
            let long = [message(Ps(1_000), Kind::Write, 0, 1, packets * 1_460 - 16)];
            let (_, counts) = run(name, "", &long);
            assert_eq!(counts.sent, packets + packets.div_ceil(2), "{name}: {packets} packets");
        }
    }
}

#[test]
fn a_short_message_does_not_wait_for_long_ones_to_the_same_node() {
    let frame = Ps(640 * 193);
    let short = message(Ps::from_ns(100_000), Kind::Write, 0, 1, 64);
    let long = message(Ps(1_000), Kind::Write, 0, 1, 4_000_000);
    for name in FABRICS {
        let alone = run(name, "", &[short]).0[0];
        // It has its turn after each long message's packet, and may find as many at the switch.
        for others in [1, 3] {
            let mut messages = vec![long; others];
            messages.push(short);
            let wait = run(name, "", &messages).0[others] - alone;
            assert!(wait <= frame * (2 * others as u64), "{name}: {wait} beside {others}");
        }
    }
}

#[test]
fn a_window_lasts_from_message_to_message() {
    // Two nodes fill a small buffer, and the first one ends while both are cut. A message after it
    // begins with what is left.
    fn after<F: Fabric>(keys: &str) -> Ps {
        let keys = format!("nodes = 4\n{keys}");
        let long =
            |node: u16| message(Ps(1_000), Kind::Write, node, 2, 3_000_000 * (u64::from(node) + 1));
        let late = message(Ps::from_ns(3_000_000), Kind::Write, 0, 2, 60_000);
        let (finished, _) = run_messages::<F>(&fabric_config(&keys), &[long(0), long(1), late]);
        assert!(finished[..2].iter().max() < Some(&late.arrival), "{finished:?}");
        finished[2] - late.arrival
    }
    let keys = "[fabric.tcp]\nbuffer_bytes = 20000\n";
    // The path holds 34 packets, which the first window has; losses have halved it since.
    let alone = {
        let write = [message(Ps(1_000), Kind::Write, 0, 2, 60_000)];
        run("tcp", keys, &write).0[0] - write[0].arrival
    };
    let cut = after::<Tcp>(keys);
    assert!(cut > alone, "{cut} and {alone}");
}

#[test]
fn nothing_is_lost_or_repeated_in_any_order_of_messages() {
    for name in FABRICS {
        for (seed, buffer, load) in [(1, 10_000, 1.0), (2, 15_000, 0.9), (3, 36_864, 0.8)] {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 16\ntopology = \"leaf-spine\"\n[fabric.leaf_spine]\n\
                 rack_nodes = 4\nspines = 2\nbalancing = \"spray\"\n[fabric.{name}]\n\
                 buffer_bytes = {buffer}\n[workload]\nload = {load}\nsize_cdf = \"hadoop\"\n\
                 pattern = \"hot-spot\"\nread_fraction = 0.4\nrmw_fraction = 0.2\n\
                 messages = 3000\n[run]\nseed = {seed}"
            ));
            let result = run_scenario(&scenario, name, None);
            assert_eq!(result.messages_finished, 3_000, "{name}, seed {seed}");
            let counts = result.packets.expect("packets");
            assert!(counts.dropped > 20, "{name}, seed {seed}: {counts:?}");
        }
    }
}

#[test]
fn an_interface_that_is_the_bottleneck_carries_more_messages_in_shared_packets() {
    for name in FABRICS {
        // 40 Gb/s of data a node: more than twice what frames of 64 B and their answers leave.
        let carried = |keys: &str| {
            let scenario = scenario(&format!(
                "[fabric]\nnodes = 8\nkind = \"raw-ethernet\"\n{keys}\n[workload]\nload = 1\n\
                 message_bytes = 64\nmessages = 40000"
            ));
            let result = run_scenario(&scenario, name, None);
            (result.kinds.all.latency_ns_p99, result.packets.expect("packets").sent)
        };
        let (shared, own) = (carried(""), carried(&per_message(name)));
        assert!(4 * shared.1 < 3 * own.1, "{name}: {shared:?}, {own:?}");
        assert!(shared.0 < own.0, "{name}: {shared:?}, {own:?}");
    }
}
