//! The traffic of memories: its sums are what the run moved, and counting it changes nothing.

use ethermem_engine::metrics::{MemoryKind, MemoryTraffic, MemoryUser};

use super::*;
use crate::dfabric::meter::Way;

/// By rack, memory, user and node: bytes read and bytes written.
type Sums = BTreeMap<(u16, MemoryKind, MemoryUser, u16), [u64; 2]>;

/// The bytes of all packets of messages: what each memory must have moved.
struct Expected {
    rack_nodes: u16,
    is_cached: bool,
    sums: Sums,
}

impl Expected {
    fn add(
        &mut self,
        (memory, user): (MemoryKind, MemoryUser),
        (rack, node): (u16, u16),
        way: Way,
        bytes: u64,
    ) {
        self.sums.entry((rack, memory, user, node)).or_default()[way as usize] += bytes;
    }

    /// A packet is stored by its node, read and written by NICs, and read by its receiver.
    fn packet(&mut self, from: u16, to: u16, bytes: u64) {
        use MemoryKind::{Cache, Device};
        use MemoryUser::{Nics, Node};
        let (sender, receiver) = (from / self.rack_nodes, to / self.rack_nodes);
        self.add((MemoryKind::Node, Node), (sender, from), Way::Write, bytes);
        self.add((MemoryKind::Node, Nics), (sender, from), Way::Read, bytes);
        self.add((Device, Nics), (receiver, to), Way::Write, bytes);
        self.add((Device, Node), (receiver, to), Way::Read, bytes);
        // Packets of 256 B and more are cached.
        if self.is_cached && bytes >= 256 {
            self.add((Cache, Node), (receiver, to), Way::Write, bytes);
            self.add((Cache, Node), (receiver, to), Way::Read, bytes);
        }
    }

    /// A stream: segments of 4,032 B of data behind 24 B, each with an acknowledgement of 32 B.
    fn stream(&mut self, from: u16, to: u16, bytes: u64) {
        for segment in 0..bytes.div_ceil(4_032) {
            self.packet(from, to, 24 + (bytes - segment * 4_032).min(4_032));
            self.packet(to, from, 32);
        }
    }

    fn message(&mut self, message: &Message) {
        let Message { kind, compute, memory, bytes: Bytes(bytes), .. } = *message;
        let rack = compute / self.rack_nodes;
        let way = if kind == Kind::Write { Way::Write } else { Way::Read };
        if rack == memory / self.rack_nodes {
            let user = (MemoryKind::Node, MemoryUser::Node);
            return self.add(user, (rack, compute), way, bytes);
        }
        // The header of a memory request has 16 B.
        match kind {
            Kind::Write => self.stream(compute, memory, 16 + bytes),
            Kind::Read | Kind::ReadModifyWrite => {
                self.stream(compute, memory, 16);
                self.stream(memory, compute, 16 + bytes);
            }
        }
    }
}

fn sums(traffic: &MemoryTraffic) -> Sums {
    let mut sums = Sums::new();
    for of in &traffic.uses {
        let sum = sums.entry((of.rack, of.memory, of.user, of.node)).or_default();
        let by_slice = [&of.read_bytes_by_slice, &of.written_bytes_by_slice];
        for (way, bytes) in [of.read_bytes, of.written_bytes].into_iter().enumerate() {
            assert_eq!(bytes, by_slice[way].iter().sum::<u64>(), "{of:?}");
            sum[way] += bytes;
        }
    }
    sums
}

#[test]
fn each_byte_is_counted_once_in_each_memory_that_it_passes() {
    for cache_bytes in [0, 1 << 20] {
        for seed in 1..=4 {
            let keys = format!(
                "memory_slice_ns = 2000\ncache_bytes = {cache_bytes}\nport_bytes = 1000000000\n\
                 timeout_us = 1000000"
            );
            let config = fabric(&format!("nodes = 8\n[fabric.dfabric]\n{keys}"));
            let messages = random_messages(seed, 8, Ps::from_ns(400));
            let is_cached = cache_bytes > 0;
            let mut expected = Expected { rack_nodes: 4, is_cached, sums: Sums::new() };
            messages.iter().for_each(|message| expected.message(message));
            for trains in [true, false] {
                let (_, end) = times(&config, messages.clone(), trains);
                let traffic = end.stats.memories.expect("it was requested");
                assert_eq!(sums(&traffic), expected.sums, "seed {seed}, trains {trains}");
            }
        }
    }
}

/// The numbers of a node's DRAM and of its cache are the node's, and devices are of their rack.
#[test]
fn memories_have_the_numbers_of_their_nodes() {
    let config = fabric("nodes = 4\n[fabric.dfabric]\nmemory_slice_ns = 1000\nmemory_devices = 3");
    let (_, end) = times(&config, random_messages(3, 4, Ps::from_ns(500)), true);
    for of in end.stats.memories.expect("it was requested").uses {
        match of.memory {
            MemoryKind::Node => assert_eq!(of.number / 2, of.rack, "{of:?}"),
            MemoryKind::Cache => assert_eq!(of.number, of.node, "{of:?}"),
            MemoryKind::Device => assert!(of.number < 3 && of.node / 2 == of.rack, "{of:?}"),
        }
    }
}

#[test]
fn counting_changes_no_time_and_no_event() {
    for seed in 1..=3 {
        let run = |keys: &str| {
            let config = fabric(&format!("nodes = 6\n[fabric.dfabric]\n{keys}"));
            times(&config, random_messages(seed, 6, Ps::from_ns(600)), true)
        };
        let ((counted, with), (others, without)) = (run("memory_slice_ns = 1000"), run(""));
        assert_eq!(counted.0, others.0);
        assert_eq!(with.events, without.events);
        assert!(without.stats.memories.is_none());
    }
}
