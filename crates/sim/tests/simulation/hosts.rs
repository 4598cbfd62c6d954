//! Duties of hosts in packet fabrics: a message gets its turn at the interface, memory gets its
//! time, and only lost packets are retransmitted.

use ethermem_sim::engine::Fabric;
use ethermem_sim::fabrics::dctcp::Dctcp;
use ethermem_sim::fabrics::pfabric::Pfabric;
use ethermem_sim::fabrics::pfc::Pfc;
use ethermem_sim::fabrics::roce::Roce;
use ethermem_sim::fabrics::tcp::Tcp;
use ethermem_sim::packet::Frame;
use ethermem_sim::{FabricConfig, Kind, Message};
use ethermem_units::Ps;

use crate::support::{fabric_config, message, run_messages};

/// The time by which 64 B to an idle node are slower while their host sends 4 MB to another.
fn wait_behind_a_long_message<F: Fabric>() -> Ps {
    let config = fabric_config("nodes = 4");
    let short = message(Ps::from_ns(100_000), Kind::Write, 0, 2, 64);
    let long = message(Ps(1_000), Kind::Write, 0, 1, 4_000_000);
    let (alone, _) = run_messages::<F>(&config, &[short]);
    let (both, _) = run_messages::<F>(&config, &[long, short]);
    both[1] - alone[0]
}

#[test]
fn a_short_message_waits_for_a_frame_of_its_own_host_and_no_more() {
    let frame = Ps(640) * u64::from(Frame::of(1_500).line);
    let waits = [
        wait_behind_a_long_message::<Tcp>(),
        wait_behind_a_long_message::<Dctcp>(),
        wait_behind_a_long_message::<Roce>(),
        wait_behind_a_long_message::<Pfc>(),
        wait_behind_a_long_message::<Pfabric>(),
    ];
    for wait in waits {
        assert!(wait <= frame, "{waits:?}, a frame takes {frame:?}");
    }
}

fn timeouts_of_reads<F: Fabric>(config: &FabricConfig) -> u64 {
    let at = |n: u64| Ps::from_ns(1_000_000) * n + Ps(1_000);
    let reads: Vec<Message> = (0..5).map(|n| message(at(n), Kind::Read, 0, 1, 64)).collect();
    let (_, end) = run_messages::<F>(config, &reads);
    let counts = end.stats.packets.expect("packets");
    counts.timeouts + counts.retransmitted
}

#[test]
fn a_request_waits_for_slow_memory_and_is_not_repeated() {
    let config = fabric_config("nodes = 2\nmemory_access_ns = 900000");
    assert_eq!(timeouts_of_reads::<Tcp>(&config), 0, "tcp");
    assert_eq!(timeouts_of_reads::<Dctcp>(&config), 0, "dctcp");
    assert_eq!(timeouts_of_reads::<Roce>(&config), 0, "roce");
    assert_eq!(timeouts_of_reads::<Pfabric>(&config), 0, "pfabric");
}

#[test]
fn a_roce_sender_that_lost_its_tail_does_not_repeat_its_message() {
    // 64 frames fit in front of the node. Two of three senders fill it, and one ends as it is full:
    // nothing follows its lost packets, and everything before has arrived.
    let config = fabric_config("nodes = 4\n[fabric.roce]\nbuffer_bytes = 98816");
    let write = |node, packets: u64| message(Ps(1_000), Kind::Write, node, 3, packets * 1_440);
    let (_, end) = run_messages::<Roce>(&config, &[write(0, 33), write(1, 32), write(2, 32)]);
    let counts = end.stats.packets.expect("packets");
    assert_eq!((counts.dropped, counts.timeouts), (1, 1));
    // It restarts with its first frame, and continues where the answer says. The answer comes after
    // Table 1's round trip, 2.03 us or 17 frames, and the serialisation of a frame on three links.
    assert!(counts.retransmitted <= 20, "{counts:?}");
}
