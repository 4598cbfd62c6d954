//! The Ethernet side of a link: frames, MAC and encoder.

use std::collections::VecDeque;

use ethermem_edm::phy::ENCODER_LATENCY_SLOTS;
use ethermem_units::{Blocks, Bytes};
use ethermem_wire::{Block, FrameBlocks, InterPacketGap, frame_blocks, frame_check_sequence};

use crate::rng::Rng;

/// A frame of `bytes` with its FCS.
pub(crate) fn frame(rng: &mut Rng, bytes: usize) -> Vec<u8> {
    let mut frame = rng.bytes(bytes - 4);
    frame.extend(frame_check_sequence(&frame).to_le_bytes());
    frame
}

/// MAC and encoder. They deliver a block for each slot in which the transmitter was ready, a
/// latency later; gaps between frames are as in IEEE 802.3.
#[derive(Default)]
pub(crate) struct Encoder {
    pub(crate) blocks: VecDeque<Option<Block>>,
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

    /// The block that arrives at the transmitter in this slot.
    pub(crate) fn arrive(&mut self) -> Option<Block> {
        if self.in_flight.len() < ENCODER_LATENCY_SLOTS {
            return None;
        }
        self.in_flight.pop_front().flatten()
    }

    /// Takes the transmitter's ready signal of this slot.
    pub(crate) fn hear(&mut self, ready: bool) {
        let block = if ready { self.blocks.pop_front().flatten() } else { None };
        self.in_flight.push_back(block);
    }
}
