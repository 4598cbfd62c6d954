//! Writes within a rack by reference, and the same with the data loaded.

use ethermem_engine::metrics::{MemoryKind, MemoryUser};

use super::*;

fn within(keys: &str) -> FabricConfig {
    fabric(&format!("nodes = 4\nmemory_access_ns = 61\n[fabric.dfabric]\nracks = 1\n{keys}"))
}

/// The way of one reference, stage by stage: see the page of the fabric. The link has 100 Gb/s, and
/// the memory fabric 400.
fn reference_time(config: &FabricConfig, bytes: u64, levels: u64) -> Ps {
    let (port, switch, local) = (Ps::from_ns(25), Ps::from_ns(70) * levels, Ps::from_ns(50));
    let flit = Ps(8_5 * 64_000 / 4_000);
    let hop = flit + config.propagation + port;
    let way = port + flit + config.propagation + switch + flit + config.propagation + port;
    // The copy of `send`: a byte takes 20 ps. In front are 24 B, and the memory's header of 16 B.
    let store = Ps((24 + 16 + bytes) * 20) + local;
    let tail = hop + local + hop;
    let cycles = AcceleratorCycles::fpga();
    let pass = cycles.clock.duration(cycles.intra_rack()) + hop;
    // The header is in one line, of which the second flit has one slot.
    let header = way + Ps::from_ns(61) + Ps(24 * 20) + way + flit * 2;
    TCP_STACK * 2 + store + tail + pass + header + local
}

#[test]
fn a_reference_takes_the_budget_to_the_picosecond() {
    for levels in [1, 2, 8] {
        let config = within(&format!("intra_rack = \"reference\"\nswitch_levels = {levels}"));
        let mut alone = Alone::<Dfabric>::new(&config);
        for bytes in [1, 64, 1_000, 4_016] {
            let expected = reference_time(&config, bytes, levels);
            assert_eq!(alone.time(Kind::Write, Bytes(bytes)), expected, "{bytes} B, {levels}");
        }
    }
}

/// A read names memory, and no socket: it stays loads of lines.
#[test]
fn reads_within_a_rack_are_loads_in_every_way() {
    let time = |keys: &str| Alone::<Dfabric>::new(&within(keys)).time(Kind::Read, Bytes(1_000));
    assert_eq!(time("intra_rack = \"reference\""), time(""));
    assert_eq!(time("intra_rack = \"value\""), time(""));
}

/// Bytes that other nodes and NICs read and write, and that the DRAM caches move.
fn moved(config: &FabricConfig, messages: Vec<Message>) -> [u64; 4] {
    let (_, end) = times(config, messages, true);
    let traffic = end.stats.memories.expect("it was requested");
    let mut moved = [0; 4];
    for of in &traffic.uses {
        let place = match (of.memory, of.user) {
            (MemoryKind::Node, MemoryUser::Node) if of.number == of.node => 0,
            (MemoryKind::Node, MemoryUser::Node) => 1,
            (MemoryKind::Cache, _) => 2,
            _ => 3,
        };
        moved[place] += of.read_bytes + of.written_bytes;
    }
    moved
}

/// By reference a node stores its data once, and nothing but headers is loaded. By value all of it
/// is loaded, through the DRAM cache where there is one.
#[test]
fn by_reference_no_payload_moves() {
    let count = 40;
    let message = |index: u64| {
        let (compute, memory) = ((index % 4) as u16, ((index + 1) % 4) as u16);
        let (arrival, bytes) = (Ps::from_ns(5_000 * index), Bytes(10_000));
        Message { index, arrival, kind: Kind::Write, compute, memory, bytes }
    };
    let run = |keys: &str| {
        let keys = format!("memory_slice_ns = 1000\ntimeout_us = 1000000\n{keys}");
        moved(&within(&keys), (0..count).map(message).collect())
    };
    // Three segments each: 24 B of header in each, 16 B of the memory's header in the first one.
    // Each has an acknowledgement of 32 B, which is loaded whole.
    let (headers, data, acks) = (count * 3 * 24, count * 10_016, count * 3 * 32);
    let stored = headers + data + acks;
    assert_eq!(run("intra_rack = \"reference\""), [stored, headers + acks, 0, 0]);
    let loaded = headers + data + acks;
    assert_eq!(run("intra_rack = \"value\"\ncache_bytes = 0"), [stored, loaded, 0, 0]);
    // Acknowledgements are too short to be cached.
    let cached = 2 * (headers + data);
    assert_eq!(run("intra_rack = \"value\""), [stored, loaded, cached, 0]);
    assert_eq!(run("intra_rack = \"lines\""), [0, count * 10_000, 0, 0]);
}

/// Beside streams to other racks, which lose packets, with short queues, and with timeouts that are
/// over while segments are with their receiver.
#[test]
fn every_message_ends_by_reference_and_by_value() {
    for intra_rack in ["reference", "value"] {
        for keys in [
            "",
            "poll = \"in-turn\"",
            "queues = 1\nqueue_entries = 2\nloads_max = 2",
            "timeout_us = 5\nloads_max = 8",
            "cache_bytes = 0\nsmall_queue = \"freed\"",
            "loss_ppm = 20000",
        ] {
            let config = fabric(&format!(
                "nodes = 8\n[fabric.dfabric]\nintra_rack = \"{intra_rack}\"\n{keys}"
            ));
            let (_, counts, _) = run(&config, messages(1_000, 8, Ps(200_000), false));
            let again = keys.contains("timeout") || keys.contains("loss");
            assert!(!again || counts.retransmitted > 0, "{intra_rack}, {keys}: {counts:?}");
        }
    }
}

/// A segment that its receiver still holds is not sent again, however long the receiver takes: here
/// it has one load at once, and a long copy before the header.
#[test]
fn a_reference_that_is_out_is_not_passed_again() {
    let config = within("intra_rack = \"reference\"\ntimeout_us = 20\nloads_max = 1");
    let message = |index, kind, (compute, memory), bytes| {
        let (arrival, bytes) = (Ps::from_ns(index * 1_000), Bytes(bytes));
        Message { index, arrival, kind, compute, memory, bytes }
    };
    let copy = message(0, Kind::Read, (0, 2), 100_000);
    let (_, counts, _) = run(&config, vec![copy, message(1, Kind::Write, (1, 0), 4_016)]);
    assert!(counts.timeouts > 2 && counts.retransmitted == 0, "{counts:?}");
}
