//! What stands around the edges in the tests: an encoder with its MAC, frames, a memory side.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod history;
pub(crate) mod network;

use std::collections::VecDeque;

use ethermem_edm::phy::{ENCODER_LATENCY_SLOTS, MemorySource, Unit};
use ethermem_units::{Blocks, Bytes};
use ethermem_wire::{Block, FrameBlocks, InterPacketGap, frame_blocks, frame_check_sequence};

/// SplitMix64: the schedule of a run, from one seed.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }
}

/// A frame of `bytes` with its FCS.
pub(crate) fn frame(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut frame = rng.bytes(bytes - 4);
    frame.extend(frame_check_sequence(&frame).to_le_bytes());
    frame
}

/// MAC and encoder: a block for each slot in which the transmitter was ready, a latency later;
/// gaps between frames as IEEE 802.3 has them.
#[derive(Default)]
pub(crate) struct Encoder {
    blocks: VecDeque<Option<Block>>,
    gap: InterPacketGap,
    in_flight: VecDeque<Option<Block>>,
}

impl Encoder {
    pub(crate) fn send(&mut self, frame: &[u8]) {
        self.blocks.extend(FrameBlocks::new(frame).map(Some));
        let bytes = Bytes(frame.len() as u64);
        let Blocks(total) = self.gap.frame_blocks_with_gap(bytes);
        self.blocks.extend((frame_blocks(bytes).0..total).map(|_| None));
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.blocks.is_empty() && self.in_flight.iter().all(Option::is_none)
    }

    /// What arrives at the transmitter in this slot.
    pub(crate) fn arrive(&mut self) -> Option<Block> {
        if self.in_flight.len() < ENCODER_LATENCY_SLOTS {
            return None;
        }
        self.in_flight.pop_front().flatten()
    }

    /// What the transmitter said in this slot.
    pub(crate) fn hear(&mut self, ready: bool) {
        let block = if ready { self.blocks.pop_front().flatten() } else { None };
        self.in_flight.push_back(block);
    }
}

/// Units that wait, single blocks first.
#[derive(Default)]
pub(crate) struct Units {
    pub(crate) singles: VecDeque<Vec<Block>>,
    pub(crate) framed: VecDeque<Vec<Block>>,
    open: VecDeque<Block>,
}

impl Units {
    pub(crate) fn push(&mut self, blocks: Vec<Block>) {
        let queue = if blocks.len() == 1 { &mut self.singles } else { &mut self.framed };
        queue.push_back(blocks);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.singles.is_empty() && self.framed.is_empty() && self.open.is_empty()
    }
}

impl MemorySource for Units {
    fn head(&mut self) -> Option<Unit> {
        assert!(self.open.is_empty(), "asked for a head inside a unit");
        match (self.singles.is_empty(), self.framed.is_empty()) {
            (false, _) => Some(Unit::Single),
            (true, false) => Some(Unit::Framed),
            (true, true) => None,
        }
    }

    fn take(&mut self) -> (Block, bool) {
        if self.open.is_empty() {
            let unit = self.singles.pop_front().or_else(|| self.framed.pop_front());
            self.open.extend(unit.expect("a head was named"));
        }
        let block = self.open.pop_front().expect("units have blocks");
        (block, self.open.is_empty())
    }
}
