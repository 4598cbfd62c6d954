//! A compute node, memory nodes and a network between them that loses, doubles, damages and
//! reorders frames. One seed is one run.

use std::collections::BTreeMap;

use ethermem_cxl::compute::{MemoryNodeAt, NodeIndex, SectionUse};
use ethermem_cxl::memory::{Access, AccessHandle, Backpressure};
use ethermem_cxl::retry::Retransmission;
use ethermem_cxl::translate::TranslatorConfig;
use ethermem_cxl::{ComputeConfig, ComputeNode, MemoryConfig, MemoryNode, Storage};
use ethermem_units::Ps;
use ethermem_wire::cxl::{LineData, Mac, Request, Sequence};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

pub(crate) const US: u64 = 1_000_000;
pub(crate) const COMPUTE: Mac = Mac([2, 0, 0, 0, 0, 0x0c]);
/// Lines of a section; section `n` is on memory node `n` modulo their number.
pub(crate) const SECTION_LINES: u64 = 16;

/// The address of a memory node.
pub(crate) fn memory_mac(node: usize) -> Mac {
    Mac([2, 0, 0, 0, 1, node as u8])
}

/// What the network and the memories do.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Faults {
    /// Of a thousand frames, how many are lost, come twice, or have wrong bits.
    pub(crate) lost: u64,
    pub(crate) doubled: u64,
    pub(crate) damaged: u64,
    /// A frame is under way for a random time from 1 us to this one.
    pub(crate) way_us_max: u64,
    /// An access to a memory takes a random time up to this one.
    pub(crate) memory_ns_max: u64,
    /// Time in which a memory node takes one frame out of its FIFO.
    pub(crate) drain_ns: u64,
}

pub(crate) const CALM: Faults =
    Faults { lost: 0, doubled: 0, damaged: 0, way_us_max: 1, memory_ns_max: 100, drain_ns: 3 };

/// What the nodes are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setup {
    pub(crate) compute: ComputeConfig,
    pub(crate) memories: usize,
    pub(crate) sections: usize,
    /// Sections from this one on are not cached.
    pub(crate) uncached_from: usize,
    pub(crate) fifo_entries: u32,
    pub(crate) fifo_threshold: u32,
    pub(crate) backpressure: Backpressure,
    pub(crate) initial: Sequence,
}

impl Setup {
    pub(crate) fn new() -> Setup {
        let compute = ComputeConfig {
            section_lines: SECTION_LINES,
            give_up_after: Ps(10_000_000 * US),
            ..ComputeConfig::published(COMPUTE)
        };
        Setup {
            compute,
            memories: 1,
            sections: 4,
            uncached_from: 4,
            fifo_entries: 512,
            fifo_threshold: 105,
            backpressure: Backpressure::Pfc,
            initial: Sequence(u32::MAX - 40),
        }
    }
}

enum Event {
    ToCompute(Vec<u8>),
    ToMemory(usize, Vec<u8>),
    Drain(usize),
    Done(usize, Access),
    Wake,
}

pub(crate) struct Memory {
    pub(crate) node: MemoryNode,
    pub(crate) lines: BTreeMap<u64, LineData>,
    draining: bool,
}

pub(crate) struct Network {
    pub(crate) now: Ps,
    pub(crate) compute: ComputeNode,
    pub(crate) memories: Vec<Memory>,
    pub(crate) faults: Faults,
    draws: SplitMix64,
    events: BTreeMap<(Ps, u64), Event>,
    number: u64,
    woken: Option<Ps>,
}

impl Network {
    pub(crate) fn new(seed: u64, setup: &Setup, faults: Faults) -> Network {
        let at = |node| MemoryNodeAt { mac: memory_mac(node), initial: setup.initial };
        let nodes: Vec<_> = (0..setup.memories).map(at).collect();
        // How memory is reserved makes no difference to anything else.
        let storage = if seed.is_multiple_of(2) { Storage::Reserved } else { Storage::OnDemand };
        let compute = ComputeConfig { storage, ..setup.compute };
        let mut compute = ComputeNode::new(compute, &nodes).unwrap();
        let config = |node| MemoryConfig {
            storage,
            window: setup.compute.window,
            retransmission: setup.compute.retransmission,
            fifo_entries: setup.fifo_entries,
            fifo_threshold: setup.fifo_threshold,
            backpressure: setup.backpressure,
            accesses_max: 8,
            translator: TranslatorConfig { page_lines: SECTION_LINES, tlb_entries: 2, buckets: 8 },
            ..MemoryConfig::published(memory_mac(node))
        };
        let memory = |node| Memory {
            node: MemoryNode::new(config(node)).unwrap(),
            lines: BTreeMap::new(),
            draining: false,
        };
        let mut memories: Vec<_> = (0..setup.memories).map(memory).collect();
        memories.iter_mut().for_each(|m| m.node.attach(COMPUTE, setup.initial).unwrap());
        for section in 0..setup.sections {
            let node = section % setup.memories;
            let is_cached = section < setup.uncached_from;
            let used = SectionUse { node: NodeIndex(node as u16), is_cached };
            compute.map(section, used).unwrap();
            // Pages of the pool in another order than sections, so that a translation is one.
            let frame = (setup.sections - 1 - section) as u64;
            memories[node].node.map(COMPUTE, section as u64, frame).unwrap();
        }
        Network {
            now: Ps::ZERO,
            compute,
            memories,
            faults,
            draws: SplitMix64::seed_from_u64(seed),
            events: BTreeMap::new(),
            number: 0,
            woken: None,
        }
    }

    pub(crate) fn draw(&mut self, below: u64) -> u64 {
        self.draws.next_u64() % below.max(1)
    }

    fn at(&mut self, when: Ps, event: Event) {
        self.number += 1;
        self.events.insert((when, self.number), event);
    }

    /// The next event; `false` if there is none.
    pub(crate) fn step(&mut self) -> bool {
        self.act();
        let Some(((when, _), event)) = self.events.pop_first() else { return false };
        self.now = when;
        match event {
            Event::ToCompute(octets) => {
                let _ = self.compute.on_frame(when, &octets);
            }
            Event::ToMemory(node, octets) => {
                let _ = self.memories[node].node.on_frame(when, &octets);
                if !self.memories[node].draining {
                    self.memories[node].draining = true;
                    self.at(when + Ps::from_ns(self.faults.drain_ns), Event::Drain(node));
                }
            }
            Event::Drain(node) => {
                self.memories[node].draining = self.memories[node].node.drain(when).is_some();
                if self.memories[node].draining {
                    self.at(when + Ps::from_ns(self.faults.drain_ns), Event::Drain(node));
                }
            }
            Event::Done(node, access) => self.memories[node].done(access),
            Event::Wake => {
                self.woken = None;
                self.compute.on_timer(when);
            }
        }
        self.act();
        true
    }

    /// Carries out what all nodes want.
    pub(crate) fn act(&mut self) {
        let mut octets = [0; 128];
        while let Some(length) = self.compute.poll_transmit(self.now, &mut octets).unwrap() {
            let to = usize::from(octets[5]);
            self.carry(&octets[..length], |octets| Event::ToMemory(to, octets));
        }
        for node in 0..self.memories.len() {
            while let Some(access) = self.memories[node].node.poll_access() {
                let ns = self.draw(self.faults.memory_ns_max);
                self.at(self.now + Ps::from_ns(ns), Event::Done(node, access));
            }
            if let Some(pause) = self.memories[node].node.poll_pause() {
                let length = pause.emit_with_fcs(&mut octets).unwrap();
                self.carry(&octets[..length], Event::ToCompute);
            }
            while let Some(length) = self.memories[node].node.poll_transmit(&mut octets).unwrap() {
                self.carry(&octets[..length], Event::ToCompute);
            }
        }
        let wake = self.compute.next_wake(self.now).map(|wake| wake.max(self.now));
        if let Some(wake) = wake.filter(|&wake| self.woken.is_none_or(|woken| wake < woken)) {
            self.woken = Some(wake);
            self.at(wake, Event::Wake);
        }
    }

    /// Lets the network do to a frame what it does.
    fn carry(&mut self, octets: &[u8], event: impl Fn(Vec<u8>) -> Event) {
        let Faults { lost, doubled, damaged, way_us_max, .. } = self.faults;
        let copies = 1 + u64::from(self.draw(1000) < doubled);
        for _ in 0..copies {
            if self.draw(1000) < lost {
                continue;
            }
            let mut octets = octets.to_vec();
            if self.draw(1000) < damaged {
                for _ in 0..=self.draw(3) {
                    let bit = self.draw(octets.len() as u64 * 8) as usize;
                    octets[bit / 8] ^= 1 << (bit % 8);
                }
            }
            let way = US + self.draw((way_us_max - 1) * US + 1);
            self.at(self.now + Ps(way), event(octets));
        }
    }

    /// Requests that were sent for the first time, and accesses that were begun.
    pub(crate) fn sent_and_executed(&self) -> (u64, u64) {
        let nodes = 0..self.memories.len();
        let sent = nodes.map(|node| {
            let counters = self.compute.requester_counters(NodeIndex(node as u16));
            counters.expect("a memory node").sent
        });
        let executed = self.memories.iter().map(|m| m.node.counters().accesses);
        (sent.sum(), executed.sum())
    }

    /// The bytes of a line of CMem, wherever they are.
    pub(crate) fn stored(&self, setup: &Setup, line: u64) -> LineData {
        let section = line / SECTION_LINES;
        let frame = setup.sections as u64 - 1 - section;
        let memory = &self.memories[section as usize % setup.memories];
        let at = frame * SECTION_LINES + line % SECTION_LINES;
        memory.lines.get(&at).copied().unwrap_or([0; 64])
    }
}

impl Memory {
    fn done(&mut self, access: Access) {
        let Access { handle, line, request, .. } = access;
        let stored = self.lines.entry(line.number()).or_insert([0; 64]);
        match request {
            Request::Read => {
                let data = *stored;
                return self.node.on_read(handle, Some(data));
            }
            Request::Write(data) => *stored = data,
            Request::MaskedWrite(mask, data) => mask.merge(&data, stored),
        }
        self.written(handle);
    }

    fn written(&mut self, handle: AccessHandle) {
        self.node.on_written(handle);
    }
}

/// Both kinds, for loops.
pub(crate) const KINDS: [Retransmission; 2] = [Retransmission::Selective, Retransmission::GoBackN];
