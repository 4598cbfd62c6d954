//! The fabric against its budget, under loss, and under congestion.

use std::sync::atomic::AtomicBool;

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Reader;
use ethermem_engine::engine::{Alone, Engine, Loss, Observer, RunEnd};
use ethermem_engine::metrics::PacketCounts;
use ethermem_workload::Message;

use super::*;
use crate::budget::{Operation, Stack, Timing, mac_stages};
use crate::edm::EdmParameters;
use crate::given::Given;

fn fabric(keys: &str) -> FabricConfig {
    // The budget of Table 1 reads EDM's clock.
    let readers = [Reader::of::<EdmParameters>(), Reader::of::<CxlEthernetConfig>()];
    let text = format!("[fabric]\n{keys}\n");
    let readers = readers.into_iter().flatten();
    FabricConfig::parse(&text, "cxl-ethernet", readers).expect("a configuration")
}

#[derive(Default)]
struct Ends {
    finished: u64,
    lost: u64,
}

impl Observer for Ends {
    fn outcome(&mut self, _message: &Message, outcome: Result<Ps, Loss>) {
        match outcome {
            Ok(_) => self.finished += 1,
            Err(_) => self.lost += 1,
        }
    }
}

/// Runs messages, and gives what the fabric counted.
fn run(config: &FabricConfig, messages: Vec<Message>) -> (RunEnd, PacketCounts) {
    let count = messages.len() as u64;
    let (mut ends, never) = (Ends::default(), AtomicBool::new(false));
    let engine = Engine::new(<CxlEthernet as ethermem_engine::engine::Fabric>::build(config, 7));
    let end = engine.run(&mut Given::new(messages), &mut ends, &never, &|_| ());
    let end = end.expect("no invariant is broken");
    assert_eq!((ends.finished, ends.lost), (count, 0));
    let packets = end.stats.packets.expect("a fabric of packets");
    (end, packets)
}

/// Messages of every kind and many sizes, from the nodes to node 0 or to all.
fn messages(count: u64, nodes: u16, gap: Ps, is_incast: bool) -> Vec<Message> {
    let kinds = [Kind::Read, Kind::Write, Kind::Write, Kind::Read, Kind::ReadModifyWrite];
    let message = |index: u64| {
        let kind = kinds[(index % 5) as usize];
        let compute = 1 + (index % u64::from(nodes - 1)) as u16;
        let other = (index * 7 % u64::from(nodes)) as u16;
        let memory = if is_incast || other == compute { 0 } else { other };
        let bytes = if kind == Kind::ReadModifyWrite { 8 } else { 1 + index * 37 % 700 };
        Message { index, arrival: gap * index, kind, compute, memory, bytes: Bytes(bytes) }
    };
    (0..count).map(message).collect()
}

/// A frame is stored at the switch: its blocks but the first take time at both links. A write
/// request of 93 B with preamble and gap is 13 blocks until it is whole, so 12 slots; a read
/// request of 64 B is 9, so 8; a read response of 89 B is 13, so 12.
#[test]
fn a_message_alone_takes_the_budget_to_the_picosecond() {
    for gbps in [10, 25, 40, 100, 200, 400] {
        let access = Ps(61_803);
        let config = fabric(&format!("nodes = 4\nlink_gbps = {gbps}\nmemory_access_ns = 61.803"));
        let slot = config.link.block_time();
        let timing = Timing::of(&config);
        let crossing = timing.total(&mac_stages(Operation::Write, Stack::RawEthernet, &timing));
        // One cable with a MAC and a PCS at both ends: 12 cycles of the PCS and two transceivers.
        let cable = config.pcs_clock * 12 + config.transceiver * 2 + config.propagation;
        let stack = Ps((Ps(376_000) - cable + Ps(20 * 4_000)).0 / 2);
        let to_memory = Ps(177_500 + 5 * 4_000) + crossing + stack * 2 + Ps(4 * 4_000);
        let to_host = crossing + stack * 2 + Ps(3 * 4_000 + 5 * 4_000 + 177_500);
        let mut alone = Alone::<CxlEthernet>::new(&config);
        let write = alone.time(Kind::Write, Bytes(64));
        assert_eq!(write, to_memory + slot * 24, "a write at {gbps} Gb/s");
        let read = alone.time(Kind::Read, Bytes(64));
        let links = slot * 16 + slot * 24;
        assert_eq!(read, to_memory + access + to_host + links, "a read at {gbps} Gb/s");
    }
}

#[test]
fn every_message_ends_whatever_is_lost() {
    for topology in ["single-switch", "leaf-spine"] {
        for retransmission in ["selective", "go-back-n"] {
            for loss_ppm in [1_000, 50_000] {
                let config = fabric(&format!(
                    "nodes = 32\ntopology = \"{topology}\"\n[fabric.cxl_ethernet]\n\
                     retransmission = \"{retransmission}\"\nloss_ppm = {loss_ppm}"
                ));
                let (_, counts) = run(&config, messages(3_000, 32, Ps(20_000), false));
                assert!(counts.dropped > 0 && counts.retransmitted > 0, "{counts:?}");
            }
        }
    }
}

/// Thirty nodes send to one, in a buffer of 80 frames.
#[test]
fn a_signal_cuts_rates_and_keeps_frames_from_being_dropped() {
    let incast = |pause_bytes: u64| {
        let config = fabric(&format!(
            "nodes = 31\n[fabric.cxl_ethernet]\nbuffer_bytes = 10000\npause_bytes = {pause_bytes}"
        ));
        run(&config, messages(20_000, 31, Ps(30_000), true)).1
    };
    let (signalled, unheard) = (incast(300), incast(1_000_000));
    assert!(signalled.pauses > Some(0) && unheard.pauses == Some(0));
    assert!(unheard.dropped > 0 && unheard.retransmitted > 0, "{unheard:?}");
    assert!(signalled.dropped * 2 < unheard.dropped, "{signalled:?}, {unheard:?}");
}

#[test]
fn a_memory_node_whose_fifo_is_slow_signals_and_nothing_is_lost() {
    // A word takes 20 ns, so a write of two words takes four times its time on the link.
    let slow = |threshold: u32| {
        let config = fabric(&format!(
            "nodes = 3\n[fabric.cxl_ethernet]\nmemory_clock_ns = 20\nfifo_entries = 64\n\
             fifo_threshold = {threshold}"
        ));
        run(&config, messages(20_000, 3, Ps(10_000), true)).1
    };
    let (early, never) = (slow(8), slow(64));
    assert!(never.retransmitted > 0, "{never:?}");
    assert!(early.retransmitted < never.retransmitted, "{early:?}, {never:?}");
}
