//! The baseline against its budget, and its losses.

use std::sync::atomic::AtomicBool;

use ethermem_engine::config::Reader;
use ethermem_engine::engine::{Alone, Engine, Loss, Observer};
use ethermem_engine::metrics::PacketCounts;
use ethermem_engine::topology::{Frame, LinkTiming, MAC, STANDARD_PCS};

use super::*;
use crate::budget::TCP_STACK;
use crate::given::Given;

fn fabric(keys: &str) -> FabricConfig {
    let text = format!("[fabric]\n{keys}\n");
    let readers = Reader::of::<TorRackConfig>().into_iter();
    FabricConfig::parse(&text, "tor-rack", readers).expect("a configuration")
}

/// The number of messages that finished, and the latest end.
#[derive(Default)]
struct Ends(u64, Ps);

impl Observer for Ends {
    fn outcome(&mut self, _message: &Message, outcome: Result<Ps, Loss>) {
        self.0 += 1;
        self.1 = self.1.max(outcome.expect("no message is lost"));
    }
}

/// Writes of 256 kB at once, from these nodes to node 0. Returns the counts and the last end.
fn incast(config: &FabricConfig, from: std::ops::Range<u16>) -> (PacketCounts, Ps) {
    let write = |compute: u16| Message {
        index: compute.into(),
        arrival: Ps::ZERO,
        kind: Kind::Write,
        compute,
        memory: 0,
        bytes: Bytes(262_144),
    };
    let messages: Vec<Message> = from.map(write).collect();
    let count = messages.len() as u64;
    let (mut ends, never) = (Ends::default(), AtomicBool::new(false));
    let engine = Engine::new(TorRack::build(config, 7));
    let end = engine.run(&mut Given::new(messages), &mut ends, &never, &|_| ());
    let end = end.expect("no invariant is broken");
    assert_eq!(ends.0, count);
    (end.stats.packets.expect("a fabric of packets"), ends.1)
}

/// A packet within a rack passes one switch, a packet between racks three: two ToRs and the core.
#[test]
fn a_message_alone_passes_one_switch_or_three() {
    for gbps in [10, 25, 100, 400] {
        let config = fabric(&format!("nodes = 4\nlink_gbps = {gbps}"));
        let timing = LinkTiming::of(&config);
        let tail = config.link.block_time() * u64::from(Frame::of(40 + 16 + 64).tail);
        let hop = timing.hop(STANDARD_PCS) + timing.cycles(MAC) * 2 + tail;
        let mut alone = Alone::<TorRack>::new(&config);
        let mut write = |compute, memory| {
            let (kind, bytes, arrival) = (Kind::Write, Bytes(64), Ps::ZERO);
            alone.time_of(&Message { index: 0, arrival, kind, compute, memory, bytes })
        };
        let forwarding = config.packet.forwarding;
        assert_eq!(write(3, 2), TCP_STACK * 2 + hop * 2 + forwarding, "within at {gbps} Gb/s");
        let between = TCP_STACK * 2 + hop * 4 + forwarding * 3;
        assert_eq!(write(1, 3), between, "between at {gbps} Gb/s");
    }
}

/// Three nodes of two racks write to one node, as in WordCount: the ToR drops, TCP repairs. With
/// one uplink the other rack's two nodes share it.
#[test]
fn an_incast_overflows_the_tor_and_every_message_ends() {
    let keys = "nodes = 12\nlink_gbps = 10\n[fabric.tor_rack]\nuplinks = ";
    let (few, slow) = incast(&fabric(&format!("{keys}1")), 6..12);
    let (many, fast) = incast(&fabric(&format!("{keys}6")), 6..12);
    assert!(few.dropped > 0 && few.retransmitted > 0, "{few:?}");
    assert!(many.dropped > 0 && many.retransmitted > 0, "{many:?}");
    // Either way all go over one link of 10 Gb/s.
    let least = config_time(6);
    assert!(slow >= least && fast >= least, "{slow} {fast}");
    let (deep, _) = incast(&fabric(&format!("{keys}6\nbuffer_bytes = 100000000")), 6..12);
    assert_eq!(deep.dropped, 0, "{deep:?}");
}

/// Time of so many messages' data alone on a link of 10 Gb/s.
fn config_time(messages: u64) -> Ps {
    Ps(messages * 262_144 * 800)
}

/// An uplink is as fast as a NIC: two flows to the other rack share one, and have one each of two.
#[test]
fn uplinks_bound_what_leaves_a_rack() {
    let time = |uplinks: u16| {
        let config = fabric(&format!(
            "nodes = 8\nlink_gbps = 10\n[fabric.tor_rack]\nuplinks = {uplinks}\n\
             buffer_bytes = 100000000"
        ));
        let write = |index: u64| Message {
            index,
            arrival: Ps::ZERO,
            kind: Kind::Write,
            compute: index as u16,
            memory: 4 + index as u16,
            bytes: Bytes(4_000_000),
        };
        let (mut ends, never) = (Ends::default(), AtomicBool::new(false));
        let engine = Engine::new(TorRack::build(&config, 7));
        let messages: Vec<Message> = (0..4).map(write).collect();
        let mut source = Given::new(messages);
        engine.run(&mut source, &mut ends, &never, &|_| ()).expect("no invariant is broken");
        ends.1
    };
    // 16 MB on one link of 10 Gb/s take 12.8 ms, and on four at least 3.2 ms.
    assert!(time(1) > Ps(12_800_000_000), "{}", time(1));
    assert!(time(4) < time(1), "{}", time(4));
}

#[test]
fn racks_without_nodes_are_refused() {
    let text = "[fabric]\nnodes = 5\n[fabric.tor_rack]\nracks = 4\n";
    let readers = Reader::of::<TorRackConfig>().into_iter();
    let error = FabricConfig::parse(text, "tor-rack", readers).expect_err("one rack has no node");
    let text = error.to_string();
    assert!(text.contains("5 nodes make 3 racks of at most 2 nodes, not 4"), "{text}");
}
