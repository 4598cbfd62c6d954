//! The load of an end, which changes over time: frames of all sizes and messages of all kinds.

use ethermem_edm::phy::{ABORT, FRAME_BYTES_MAX, FaultSignal, LOCAL_FAULT};
use ethermem_wire::{Block, BlockType, EdmControl, FrameBlocks, SubType};

use crate::end::End;
use crate::ethernet::frame;
use crate::messages::message;
use crate::rng::Rng;
use crate::sealed::sealed;

/// Mean number of slots until the load changes.
const EPOCH_SLOTS: u64 = 3_000;
/// Number of /MD/ blocks of the longest chunk plus one, so that some chunks are too long.
const MD_BLOCKS_MAX: u64 = 515;

#[derive(Default)]
pub(crate) struct Traffic {
    slots_left: u64,
    /// Percentage of idle slots in which a frame arrives.
    frames: u64,
    messages: u64,
    /// True if bits flip and unsolicited blocks arrive.
    errors: bool,
    strange: bool,
}

impl Traffic {
    /// True if the links have errors.
    pub(crate) fn has_errors(&self) -> bool {
        self.errors
    }

    /// Begins a slot.
    pub(crate) fn slot(&mut self, end: &mut End, rng: &mut Rng) {
        if self.slots_left == 0 {
            let load = |rng: &mut Rng| [0, 1, 10, 50, 100][rng.below(5) as usize];
            let (frames, messages) = (load(rng), load(rng));
            let (errors, strange) = (rng.percent(50), rng.percent(40));
            let slots_left = rng.below(2 * EPOCH_SLOTS);
            *self = Traffic { slots_left, frames, messages, errors, strange };
        }
        self.slots_left = self.slots_left.saturating_sub(1);
        if end.encoder.is_idle() && rng.percent(self.frames) {
            send_frame(end, rng, self.errors);
        }
        if end.is_up() && end.units.is_empty() && rng.percent(self.messages) {
            (0..=rng.below(4)).for_each(|_| end.units.push(unit(rng, self.strange)));
        }
    }

    /// Draws, rarely, a block that replaces a sent one, of the kinds that a link must tell apart.
    pub(crate) fn strange(&self, near: &End, rng: &mut Rng) -> Option<Block> {
        if !self.strange || rng.below(1_500) > 0 {
            return None;
        }
        let said = near.signal();
        Some(match rng.below(8) {
            0 => FaultSignal {
                failure: said.heard.wrapping_add(rng.below(2) as u8),
                heard: said.failure.wrapping_sub(rng.below(2) as u8),
                ready: rng.percent(50),
            }
            .block(),
            1 => LOCAL_FAULT,
            2 => ABORT,
            3 => Block::IDLE,
            4 => {
                let sub_type = SubType::ALL[rng.below(SubType::ALL.len() as u64) as usize];
                EdmControl::new(sub_type, rng.next()).encode()
            }
            5 => Block::data(rng.next()),
            6 => {
                let fault = rng.below(3) << 16 | (rng.below(3) << 16) << 32;
                Block::control(any_type(rng), fault)
            }
            _ => Block::control(any_type(rng), rng.next()),
        })
    }
}

fn any_type(rng: &mut Rng) -> BlockType {
    BlockType::ALL[rng.below(BlockType::ALL.len() as u64) as usize]
}

/// Draws a unit of memory blocks with correct checks. A `strange` unit has fields that no sender
/// sets.
fn unit(rng: &mut Rng, strange: bool) -> Vec<Block> {
    if strange && rng.percent(70) {
        let words = if rng.percent(2) { rng.below(MD_BLOCKS_MAX) } else { rng.below(12) };
        let words: Vec<u64> =
            (0..words).map(|_| rng.next() >> (8 * rng.below(9)).min(63)).collect();
        // Few bits are set, so that reserved bits are often clear.
        let start = rng.next() & rng.next() & rng.next();
        return sealed(start, &words, rng.percent(70)).collect();
    }
    let bytes = if rng.percent(2) { 4_096 } else { 1 + rng.below(256) };
    let data = rng.bytes(bytes as usize);
    let mut blocks: Vec<Block> = message(rng, &data).blocks().collect();
    if blocks.len() > 1 && rng.percent(5) {
        blocks.truncate(1 + rng.below(blocks.len() as u64 - 1) as usize);
        blocks.push(ABORT);
    }
    blocks
}

fn send_frame(end: &mut End, rng: &mut Rng, strange: bool) {
    let bytes = match rng.below(20) {
        0..10 => 64,
        10 | 11 => 1_518,
        12 => 9_018,
        13..16 => FRAME_BYTES_MAX as u64 - 5 + rng.below(10),
        _ => 60 + rng.below(1_500),
    };
    let frame = frame(rng, bytes as usize);
    if !strange || rng.percent(50) {
        end.encoder.send(&frame);
        return;
    }
    let mut blocks: Vec<Block> =
        if rng.percent(50) { lane_four(&frame) } else { FrameBlocks::new(&frame).collect() };
    if rng.percent(30) {
        blocks.truncate(1 + rng.below(blocks.len() as u64 - 1) as usize);
        blocks.push(ABORT);
    } else if rng.percent(40) {
        let at = if rng.percent(60) { 0 } else { rng.below(blocks.len() as u64) as usize };
        blocks[at] = damaged(blocks[at], rng);
    }
    end.encoder.blocks.extend(blocks.into_iter().map(Some).chain([None]));
}

/// Flips a bit of a data block, or a bit behind the type of a control block.
fn damaged(block: Block, rng: &mut Rng) -> Block {
    let bit = 1 << (8 + rng.below(56));
    let payload = block.payload() ^ bit;
    Block::from_line(block.sync() as u8, payload).expect("the header is sound")
}

/// A frame that starts on lane 4: three octets of its preamble, then four and its first four.
fn lane_four(frame: &[u8]) -> Vec<Block> {
    let preamble = [0x55, 0x55, 0x55, 0xd5];
    let octets = [&preamble[..], frame].concat();
    let mut blocks = vec![Block::control(BlockType::ControlStart, 0x55_5555 << 32)];
    let whole = octets.chunks_exact(8);
    let rest = whole.remainder();
    let word = |octets: &[u8]| octets.iter().rev().fold(0, |word, &o| word << 8 | u64::from(o));
    blocks.extend(whole.map(|octets| Block::data(word(octets))));
    let terminate = BlockType::terminate(rest.len()).expect("fewer than eight octets are left");
    blocks.push(Block::control(terminate, word(rest)));
    blocks
}
