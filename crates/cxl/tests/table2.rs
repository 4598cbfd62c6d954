//! Table II, from the stages and the state machines: which frames and which waits an access needs
//! is what the nodes do; how long each takes is [`StageLatencies`].

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use ethermem_cxl::agent::{Req, ReqOpcode, Rwd, S2m, Tag};
use ethermem_cxl::cache::{CacheConfig, Eviction};
use ethermem_cxl::compute::{HostResponse, MemoryNodeAt, NodeIndex, Path, SectionUse};
use ethermem_cxl::stages::{AGENT_CLOCK, StageLatencies};
use ethermem_cxl::{ComputeConfig, ComputeNode, MemoryConfig, MemoryNode};
use ethermem_units::{Cycles, Ps};
use ethermem_wire::cxl::{ByteMask, Mac, Request, Sequence};

const COMPUTE: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
const MEMORY: Mac = Mac([2, 0, 0, 0, 0, 0x0d]);

/// Where the cache's misses go.
#[derive(Clone, Copy, PartialEq)]
enum Memory {
    /// Over Ethernet: columns 1 of the table.
    Remote,
    /// Extended memory on the same board: columns 2.
    Local,
}

enum What {
    ToMemory(Vec<u8>),
    Done(ethermem_cxl::memory::Access),
    ToCompute(Vec<u8>),
}

struct Board {
    compute: ComputeNode,
    memory: MemoryNode,
    stages: StageLatencies,
    at: Memory,
    now: Ps,
    pending: BTreeMap<(Ps, u32), What>,
    number: u32,
    /// When the last frame came to the memory: frames of one MAC keep their order.
    last: Ps,
}

impl Board {
    fn new(at: Memory, eviction: Eviction) -> Board {
        let cache = Some(CacheConfig { eviction, ..CacheConfig::published() });
        let config = ComputeConfig { cache, ..ComputeConfig::published(COMPUTE) };
        let initial = Sequence(0);
        let nodes = [MemoryNodeAt { mac: MEMORY, initial }];
        let mut compute = ComputeNode::new(config, &nodes).unwrap();
        compute.map(0, SectionUse { node: NodeIndex(0), is_cached: true }).unwrap();
        let mut memory = MemoryNode::new(MemoryConfig::published(MEMORY)).unwrap();
        memory.attach(COMPUTE, initial).unwrap();
        memory.map(COMPUTE, 0, 0).unwrap();
        let stages = StageLatencies::published();
        let pending = BTreeMap::new();
        Board { compute, memory, stages, at, now: Ps::ZERO, pending, number: 0, last: Ps::ZERO }
    }

    fn after(&mut self, cycles: Cycles, what: What) {
        self.number += 1;
        let mut at = self.now + AGENT_CLOCK.duration(cycles);
        if let What::ToMemory(_) = what {
            at = at.max(self.last);
            self.last = at;
        }
        self.pending.insert((at, self.number), what);
    }

    /// What is only there where Ethernet is.
    fn remote(&self, cycles: Cycles) -> Cycles {
        if self.at == Memory::Remote { cycles } else { Cycles(0) }
    }

    fn send(&mut self) {
        let mut octets = [0; 128];
        while let Some(length) = self.compute.poll_transmit(self.now, &mut octets).unwrap() {
            // Command 1 reads; what the cache writes is a victim.
            let is_write_back = octets[14] != 1;
            let read = if is_write_back { self.stages.victim_read } else { Cycles(0) };
            let stages = self.stages;
            let network = stages.request_build + stages.ethernet + stages.to_memory();
            assert_eq!(stages.to_mac(is_write_back), read + stages.request_build);
            let cycles = read + self.remote(network);
            self.after(cycles, What::ToMemory(octets[..length].to_vec()));
        }
        while let Some(access) = self.memory.poll_access() {
            // The first access to a page reads the table; Table II is of a warm TLB.
            let is_read = matches!(access.request, Request::Read);
            self.after(self.stages.memory(is_read), What::Done(access));
        }
        while let Some(length) = self.memory.poll_transmit(&mut octets).unwrap() {
            // Command 0x81 carries a line.
            let from = self.stages.from_memory(octets[14] == 0x81);
            let cycles = self.remote(from + self.stages.ethernet + self.stages.response_parse);
            self.after(cycles, What::ToCompute(octets[..length].to_vec()));
        }
    }

    /// One access, from when the agent sends it until it has its response: cycles and way.
    fn access(&mut self, line: u64, write: Option<ByteMask>) -> (u64, Path) {
        let sent = self.now;
        self.now += AGENT_CLOCK.duration(self.stages.to_decision());
        let (tag, address) = (Tag(1), line * 64);
        let now = self.now;
        match write {
            None => self.compute.on_req(now, Req { opcode: ReqOpcode::MemRd, tag, address }),
            Some(mask) => self.compute.on_rwd(now, &Rwd { tag, address, mask, data: [7; 64] }),
        }
        .unwrap();
        loop {
            if let Some(HostResponse { message, path }) = self.compute.poll_response() {
                assert!(!matches!(message, S2m::Drs { poison: true, .. }));
                let end = self.now + AGENT_CLOCK.duration(self.stages.to_host(path));
                let cycles = (end - sent).0 / AGENT_CLOCK.period.0;
                self.settle();
                return (cycles, path);
            }
            self.send();
            self.step();
        }
    }

    fn step(&mut self) {
        let ((at, _), what) = self.pending.pop_first().expect("an access ends");
        self.now = at;
        match what {
            What::ToMemory(octets) => {
                self.memory.on_frame(at, &octets).unwrap();
                self.memory.drain(at);
            }
            What::Done(access) => match access.request {
                Request::Read => self.memory.on_read(access.handle, Some([9; 64])),
                _ => self.memory.on_written(access.handle),
            },
            What::ToCompute(octets) => self.compute.on_frame(at, &octets).unwrap(),
        }
    }

    fn settle(&mut self) {
        self.send();
        while !self.pending.is_empty() {
            self.step();
            self.send();
        }
        self.now += Ps(1_000_000);
    }

    /// Fills the set of line 0 with four dirty lines: 128 sets of four ways.
    fn fill_set(&mut self) {
        for way in 0..4 {
            assert_eq!(self.access(way * 128, Some(ByteMask::FULL)), (14, Path::WriteMiss));
        }
    }
}

/// The published cycles, in the table's order: write hit 14, read hit 16, write miss without
/// replacement 14, with 268, read miss 285; local: with replacement 36, read miss 50.
#[test]
fn table_ii_comes_out_of_the_stages() {
    let mut remote = Board::new(Memory::Remote, Eviction::Acknowledged);
    remote.fill_set();
    assert_eq!(remote.access(0, Some(ByteMask::FULL)), (14, Path::WriteHit));
    assert_eq!(remote.access(0, None), (16, Path::ReadHit));
    assert_eq!(remote.access(1, Some(ByteMask::FULL)), (14, Path::WriteMiss));
    assert_eq!(remote.access(4 * 128, Some(ByteMask::FULL)), (268, Path::WriteMissReplace));
    assert_eq!(remote.access(2, None), (285, Path::ReadMiss));
    let mut local = Board::new(Memory::Local, Eviction::Acknowledged);
    local.fill_set();
    assert_eq!(local.access(4 * 128, Some(ByteMask::FULL)), (36, Path::WriteMissReplace));
    assert_eq!(local.access(2, None), (50, Path::ReadMiss));
}

/// A mean of remote cases over a mean of hits is (268 + 285) / 2 / 15 = 18.4, and local (36 + 50) /
/// 2 / 15 = 2.9: the text's "18.4x and 2.9x better".
#[test]
fn the_ratios_of_the_text_are_those_of_the_means() {
    let ratio = |one: f64, other: f64| (one + other) / (14.0 + 16.0);
    assert_eq!(format!("{:.1}", ratio(268.0, 285.0)), "18.4");
    assert_eq!(format!("{:.1}", ratio(36.0, 50.0)), "2.9");
}

/// What Table II does not have: a posted write-back, and a read that replaces a dirty line.
#[test]
fn a_posted_eviction_costs_a_write_nothing_and_a_read_waits_for_none() {
    let mut posted = Board::new(Memory::Remote, Eviction::Posted);
    posted.fill_set();
    assert_eq!(posted.access(4 * 128, Some(ByteMask::FULL)), (14, Path::WriteMissReplace));
    // The fetch is right behind the write-back, for which the victim is read in two cycles.
    let mut remote = Board::new(Memory::Remote, Eviction::Acknowledged);
    remote.fill_set();
    let (cycles, path) = remote.access(4 * 128, None);
    assert_eq!(path, Path::ReadMiss);
    assert_eq!(cycles, 285 + 2);
}
