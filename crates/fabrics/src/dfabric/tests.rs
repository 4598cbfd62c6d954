//! The fabric against its budget, whole under load, under loss, and with full queues.

mod memories;
mod reference;

use std::sync::atomic::AtomicBool;

use ethermem_dfabric::accelerator::AcceleratorCycles;
use ethermem_engine::FabricConfig;
use ethermem_engine::config::Reader;
use ethermem_engine::engine::{Alone, Engine, Fabric, Loss, Observer, RunEnd};
use ethermem_engine::metrics::PacketCounts;
use ethermem_engine::topology::{LinkTiming, MAC, STANDARD_PCS};
use ethermem_workload::Message;
use rand_xoshiro::rand_core::Rng;

use super::*;
use crate::budget::TCP_STACK;
use crate::cxl::CxlConfig;
use crate::given::Given;

fn fabric(keys: &str) -> FabricConfig {
    let readers = [Reader::of::<CxlConfig>(), Reader::of::<DfabricConfig>()];
    let text = format!("[fabric]\n{keys}\n");
    let readers = readers.into_iter().flatten();
    FabricConfig::parse(&text, "dfabric", readers).expect("a configuration")
}

#[derive(Default)]
struct Ends {
    finished: u64,
    lost: u64,
    /// Sum of the latencies, in picoseconds.
    latency: u64,
}

impl Observer for Ends {
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>) {
        match outcome {
            Ok(at) => {
                self.finished += 1;
                self.latency += (at - message.arrival).0;
            }
            Err(_) => self.lost += 1,
        }
    }
}

/// Runs messages, all of which must finish. Returns what the fabric counted and the mean latency.
fn run(config: &FabricConfig, messages: Vec<Message>) -> (RunEnd, PacketCounts, Ps) {
    let count = messages.len() as u64;
    let (mut ends, never) = (Ends::default(), AtomicBool::new(false));
    let engine = Engine::new(Dfabric::build(config, 7));
    let end = engine.run(&mut Given::new(messages), &mut ends, &never, &|_| ());
    let end = end.expect("no invariant is broken");
    assert_eq!((ends.finished, ends.lost), (count, 0));
    let packets = end.stats.packets.expect("a fabric of packets");
    (end, packets, Ps(ends.latency / count))
}

/// Messages of every kind and many sizes, from all nodes to all, or to node 0.
fn messages(count: u64, nodes: u16, gap: Ps, is_incast: bool) -> Vec<Message> {
    let kinds = [Kind::Read, Kind::Write, Kind::Write, Kind::Read, Kind::ReadModifyWrite];
    let message = |index: u64| {
        let kind = kinds[(index % 5) as usize];
        let compute = 1 + (index % u64::from(nodes - 1)) as u16;
        let other = (index * 7 % u64::from(nodes)) as u16;
        let memory = if is_incast || other == compute { 0 } else { other };
        let bytes = if kind == Kind::ReadModifyWrite { 8 } else { 1 + index * 937 % 20_000 };
        Message { index, arrival: gap * index, kind, compute, memory, bytes: Bytes(bytes) }
    };
    (0..count).map(message).collect()
}

/// A message alone within a rack: what fabric `cxl` takes at theta times the link's rate, and the
/// port of the node once more where the load begins (there it is before the submission).
#[test]
fn a_message_within_a_rack_takes_what_the_flits_take() {
    for (gbps, theta) in [(10, 1), (100, 4), (400, 8)] {
        let config = fabric(&format!(
            "nodes = 4\nlink_gbps = {gbps}\nmemory_access_ns = 61\n[fabric.dfabric]\n\
             theta = {theta}"
        ));
        let (port, switch) = (Ps::from_ns(25), Ps::from_ns(70));
        let flit = Ps(8_5 * 64_000 / (10 * gbps * theta));
        let way = port + flit + config.propagation + switch + flit + config.propagation + port;
        let mut alone = Alone::<Dfabric>::new(&config);
        // A line with its header is five slots, of which the second flit has one.
        assert_eq!(alone.time(Kind::Write, Bytes(64)), way + flit * 2, "a write at {gbps} Gb/s");
        // A line at 400 Gb/s takes 1,280 ps of its memory.
        let read = way + Ps::from_ns(61) + Ps(1_280) + way + flit * 2;
        assert_eq!(alone.time(Kind::Read, Bytes(64)), read, "a read at {gbps} Gb/s");
    }
}

/// The way of one packet between racks, stage by stage: see the page of the fabric.
fn packet_time(config: &FabricConfig, bytes: u64) -> Ps {
    let rules = config.of::<DfabricConfig>();
    let (port, switch, local) = (Ps::from_ns(25), Ps::from_ns(70), Ps::from_ns(50));
    let rate = config.link.as_gbps_f64() as u64 * rules.theta;
    let flit = Ps(8_5 * 64_000 / (10 * rate));
    let hop = flit + config.propagation + port;
    let cycles = AcceleratorCycles::fpga();
    // At 400 Gb/s a byte takes 20 ps.
    let store = Ps(bytes * 20) + local;
    let tail = hop + local + hop;
    let to_nic = cycles.clock.duration(cycles.to_nic()) + hop;
    let from_nic = local + cycles.clock.duration(cycles.from_nic()) + hop;
    let way = port + flit + config.propagation + switch + flit + config.propagation + port;
    // Requests of a packet of at most four lines share a flit; its lines follow each other.
    let lines = bytes.div_ceil(64);
    let is_partial = u64::from(!bytes.is_multiple_of(64));
    let flits = |slots: u64| slots.div_ceil(4) - 1;
    let data = |slots: u64| flit * flits(slots) + flit * (flits(5).min(flits(slots)));
    let memory = Ps::from_ns(50);
    let dma = way + config.memory_access + Ps(bytes * 20) + way + data(lines * 5);
    let land = way + data(lines * 5 + is_partial);
    // A device is as fast as a link of the memory fabric.
    let from_device = Ps((bytes * 8_000).div_ceil(rate));
    let read = way + memory + from_device + way + data(lines * 5);
    let timing = LinkTiming::of(config);
    let ethernet =
        (timing.hop(STANDARD_PCS) + timing.cycles(MAC) * 2) * 2 + config.packet.forwarding;
    let tail_blocks = u64::from(Frame::of(bytes).tail);
    let frames = config.link.block_time() * (2 * tail_blocks);
    TCP_STACK * 2 + store + tail + to_nic + dma + ethernet + frames + land + from_nic + read + local
}

/// A message alone between racks: a write is one packet, a read is a request and a response, each
/// of one line's data or less. The memory takes long enough for the acknowledgement of the request
/// to be out of the response's way.
#[test]
fn a_message_between_racks_takes_the_budget_to_the_picosecond() {
    for (gbps, theta) in [(10, 1), (100, 4), (400, 8)] {
        let config = fabric(&format!(
            "nodes = 2\nlink_gbps = {gbps}\nmemory_access_ns = 2000\n[fabric.dfabric]\n\
             theta = {theta}"
        ));
        let mut alone = Alone::<Dfabric>::new(&config);
        // The header of 24 B, 16 B of the memory's header, and the data: one line.
        let write = packet_time(&config, 24 + 16 + 24);
        assert_eq!(alone.time(Kind::Write, Bytes(24)), write, "a write at {gbps} Gb/s");
        let request = packet_time(&config, 24 + 16);
        let read = request + Ps::from_ns(2_000) + write;
        assert_eq!(alone.time(Kind::Read, Bytes(24)), read, "a read at {gbps} Gb/s");
        assert_eq!(alone.time(Kind::Read, Bytes(24)), read, "again");
    }
}

#[test]
fn every_message_ends_in_racks_of_all_sizes() {
    for keys in ["racks = 1", "racks = 2", "racks = 4", "racks = 2\nextra_nics = 3\ntheta = 1"] {
        for poll in ["concurrent", "in-turn"] {
            let config =
                fabric(&format!("nodes = 12\n[fabric.dfabric]\n{keys}\npoll = \"{poll}\""));
            let (_, counts, _) = run(&config, messages(2_000, 12, Ps(300_000), false));
            let is_alone = keys == "racks = 1";
            assert_eq!(counts.sent == 0, is_alone, "{keys}, {poll}: {counts:?}");
            // Where nothing is lost nothing is reordered within a subflow, and so sent again.
            assert_eq!((counts.dropped, counts.retransmitted), (0, 0), "{keys}, {poll}");
        }
    }
}

#[test]
fn every_message_ends_whatever_is_lost() {
    for small_queue in ["taken", "freed", "off"] {
        for (loss_ppm, spread) in [(1_000, "turns"), (50_000, "least")] {
            let config = fabric(&format!(
                "nodes = 8\n[fabric.dfabric]\nloss_ppm = {loss_ppm}\nspread = \"{spread}\"\n\
                 small_queue = \"{small_queue}\""
            ));
            let (_, counts, _) = run(&config, messages(2_000, 8, Ps(500_000), false));
            assert!(counts.dropped > 0 && counts.retransmitted > 0, "{counts:?}");
        }
    }
}

/// Queues of two entries, NICs of two packets, caches without room: all wait, and nothing is lost.
#[test]
fn full_queues_make_descriptors_wait_and_drop_none() {
    let config = fabric(
        "nodes = 6\n[fabric.dfabric]\nqueues = 2\nqueue_entries = 2\nnic_entries = 4\n\
         cache_bytes = 65536\nloads_max = 4\nport_bytes = 1000000000\nwindow_segments = 8\n\
         timeout_us = 100000",
    );
    let (_, counts, _) = run(&config, messages(1_500, 6, Ps(1_000), true));
    assert_eq!(counts.retransmitted, 0, "{counts:?}");
}

/// Buffers that wait in the NICs' RX queues, however many, leave room for what the nodes send.
#[test]
fn the_longest_rx_queues_and_the_most_nodes_leave_buffers_for_packets() {
    for keys in [
        "nodes = 64\n[fabric.dfabric]\nnic_entries = 4096",
        "nodes = 8\n[fabric.dfabric]\nextra_nics = 64\nnic_entries = 4096",
        "nodes = 4096\n[fabric.dfabric]\nracks = 2",
    ] {
        let config = fabric(keys);
        let nodes = config.nodes;
        run(&config, messages(200, nodes, Ps(1_000_000), false));
    }
}

/// A port between the racks with room for three frames drops most of an incast, and all of it
/// arrives.
#[test]
fn what_the_core_drops_is_sent_again() {
    let config =
        fabric("nodes = 8\n[fabric.dfabric]\nport_bytes = 12500\nextra_nics = 0\ntimeout_us = 50");
    let (_, counts, _) = run(&config, messages(800, 8, Ps(10_000), true));
    assert!(counts.dropped > 50 && counts.retransmitted > 50, "{counts:?}");
}

/// With two loads at once a window takes longer than the least timeout, and nothing is lost. The
/// timeout follows the path, so that no segment is sent twice.
#[test]
fn what_is_slow_and_not_lost_is_not_sent_again() {
    let config = fabric(
        "nodes = 4\nlink_gbps = 10\n[fabric.dfabric]\ntheta = 1\nlocal_ns = 65\n\
         device_ns = 400\ncore_ns = 3250\ncache_bytes = 0\nloads_max = 2",
    );
    let (arrival, bytes) = (Ps::ZERO, Bytes(4_000_000));
    let message = Message { index: 0, arrival, kind: Kind::Write, compute: 0, memory: 2, bytes };
    let (_, counts, took) = run(&config, vec![message]);
    assert_eq!((counts.dropped, counts.retransmitted), (0, 0), "{counts:?}");
    // 64 segments take longer than the 2 ms of a link of 10 Gb/s.
    assert!(took > Ps::from_ns(2_000_000) * (4_000_000 / 4_032 / 64), "{took}");
}

/// A least timeout below the round trip backs off until a segment that was sent once is
/// acknowledged. So a window that one load at once drains slowly is sent again ten times at the
/// start of a stream, and never later. With six doublings at most it was sent again for ever.
#[test]
fn a_timeout_below_the_round_trip_backs_off() {
    for keys in ["", "cache_bytes = 0", "loads_max = 1", "cache_bytes = 0\nloads_max = 1"] {
        for (timeout_us, bytes) in [("0.001", 1_000_000), ("0.5", 1_000_000), ("0.5", 4_000_000)] {
            let config = fabric(&format!(
                "nodes = 4\n[fabric.dfabric]\nintra_rack = \"value\"\ntimeout_us = {timeout_us}\n\
                 {keys}"
            ));
            // To the other rack, and within the rack.
            for memory in [2, 1] {
                let (arrival, bytes, kind) = (Ps::ZERO, Bytes(bytes), Kind::Write);
                let message = Message { index: 0, arrival, kind, compute: 0, memory, bytes };
                let (_, counts, _) = run(&config, vec![message]);
                let windows = counts.retransmitted.div_ceil(64);
                assert!(windows <= 10, "{keys}, {timeout_us} us, to {memory}: {counts:?}");
            }
        }
    }
}

/// By message: when it ended.
#[derive(Default)]
struct Times(BTreeMap<u64, Ps>);

impl Observer for Times {
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>) {
        self.0.insert(message.index, outcome.expect("nothing is lost"));
    }
}

/// Runs messages with copies as trains, or with single flits alone.
fn times(config: &FabricConfig, messages: Vec<Message>, trains: bool) -> (Times, RunEnd) {
    let mut built = Dfabric::build(config, 7);
    built.shapes.are_used = trains;
    let (mut times, never) = (Times::default(), AtomicBool::new(false));
    let end = Engine::new(built).run(&mut Given::new(messages), &mut times, &never, &|_| ());
    (times, end.expect("no invariant is broken"))
}

/// Messages at random times between random nodes, of three sizes, so that shapes are known.
fn random_messages(seed: u64, nodes: u16, gap: Ps) -> Vec<Message> {
    let mut draws = SplitMix64::seed_from_u64(seed);
    let mut below = |most: u64| draws.next_u64() % most;
    let sizes = [512 + below(2_000), 512 + below(9_000), 1 + below(30_000)];
    let mut arrival = Ps::ZERO;
    let message = |index| {
        arrival += Ps(below(2 * gap.0));
        let compute = below(nodes.into()) as u16;
        let memory = (compute + 1 + below(u64::from(nodes) - 1) as u16) % nodes;
        let kind = if below(5) == 0 { Kind::Read } else { Kind::Write };
        let bytes = Bytes(sizes[below(3) as usize]);
        Message { index, arrival, kind, compute, memory, bytes }
    };
    (0..300).map(message).collect()
}

/// Trains and single flits give every message the same end, and the links the same statistics,
/// whatever the load is.
#[test]
fn trains_end_when_single_flits_do() {
    let (mut with, mut without) = (0, 0);
    for seed in 1..=24 {
        for gap_ns in [150, 1_000, 6_000] {
            let (racks, theta) = (1 + seed % 2, [1, 4, 4][seed as usize % 3]);
            let nodes = 4 * racks as u16;
            let keys = format!("racks = {racks}\ntheta = {theta}\nport_bytes = 1000000000");
            let config = fabric(&format!("nodes = {nodes}\n[fabric.dfabric]\n{keys}"));
            let messages = random_messages(seed, nodes, Ps::from_ns(gap_ns));
            let (trains, end) = times(&config, messages.clone(), true);
            let (flits, single) = times(&config, messages, false);
            let case = format!("seed {seed}, a message each {gap_ns} ns, {keys}");
            assert_eq!(trains.0, flits.0, "{case}");
            assert_eq!(end.stats.utilisation, single.stats.utilisation, "{case}");
            assert_eq!(end.stats.control_overhead, single.stats.control_overhead, "{case}");
            (with, without) = (with + end.events, without + single.events);
        }
    }
    assert!(with < without, "{with} events with trains, {without} without");
}

/// A ring in one rack: each node sends when the one before it has sent to it.
#[test]
fn a_copy_alone_is_two_events() {
    let config = fabric("nodes = 4\n[fabric.dfabric]\nracks = 1");
    let message = |index: u64| {
        let (compute, memory) = ((index % 4) as u16, ((index + 1) % 4) as u16);
        let (arrival, bytes) = (Ps::from_ns(20_000 * index), Bytes(97_657));
        Message { index, arrival, kind: Kind::Write, compute, memory, bytes }
    };
    let events = |count, trains| times(&config, (0..count).map(message).collect(), trains).1.events;
    assert_eq!(events(12, true) - events(2, true), 10 * 2);
    assert!(events(12, false) - events(2, false) > 10 * 3_000);
}

/// Two nodes write 64 kB each from rack to rack: their NICs are used together, so that one node
/// alone gets the rate of both, and of the added ones.
#[test]
fn one_node_uses_all_nics_of_its_rack() {
    let time = |extra_nics: u16| {
        let config = fabric(&format!(
            "nodes = 4\nlink_gbps = 10\n[fabric.dfabric]\ntheta = 16\nextra_nics = {extra_nics}\n\
             subflows = 8\nqueues = 8\nmemory_devices = 4"
        ));
        let mut alone = Alone::<Dfabric>::new(&config);
        let (short, long) = (Bytes(4_032 * 200), Bytes(4_032 * 400));
        let between = |alone: &mut Alone<Dfabric>, bytes| {
            let (kind, compute, memory) = (Kind::Write, 0, 2);
            let arrival = Ps::ZERO;
            alone.time_of(&Message { index: 0, arrival, kind, compute, memory, bytes })
        };
        between(&mut alone, long) - between(&mut alone, short)
    };
    // 200 segments of 4,074 B with preamble and gap, 510 blocks of 6.4 ns, over the NICs.
    let whole = Ps(200 * 513 * 6_400);
    for (extra_nics, nics) in [(0, 2), (2, 4), (6, 8)] {
        let took = time(extra_nics).0 as f64 / (whole.0 / nics) as f64;
        assert!((0.98..1.10).contains(&took), "{nics} NICs: {took}");
    }
}

/// Polling in turn makes an entry wait for loads of all other queues (Table 4).
#[test]
fn polling_in_turn_takes_longer() {
    let mean = |poll: &str| {
        let config = fabric(&format!("nodes = 16\n[fabric.dfabric]\npoll = \"{poll}\""));
        run(&config, messages(2_000, 16, Ps(400_000), false)).2
    };
    let (concurrent, in_turn) = (mean("concurrent"), mean("in-turn"));
    assert!(in_turn > concurrent, "{in_turn} {concurrent}");
}

#[test]
fn keys_that_do_not_fit_are_refused_with_their_reason() {
    let refused = |keys: &str| {
        let readers = [Reader::of::<CxlConfig>(), Reader::of::<DfabricConfig>()];
        let text = format!("[fabric]\nnodes = 4\nlink_gbps = 400\n[fabric.dfabric]\n{keys}\n");
        let config = FabricConfig::parse(&text, "dfabric", readers.into_iter().flatten());
        config.expect_err("it is refused").to_string()
    };
    assert!(refused("racks = 3").contains("4 nodes make 2 racks of at most 2 nodes, not 3"));
    assert!(refused("theta = 3").contains("a block of the fabric"));
    assert!(refused("buffer_bytes = 5000").contains("powers of two from 256 to 8192"));
    assert!(refused("cache_bytes = 1").contains("0, powers of two"));
}
