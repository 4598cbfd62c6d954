//! Where a frame waits for its /T/.

use ethermem_units::Bytes;
use ethermem_wire::{Block, frame_blocks};

/// Longest frame that is taken, with its FCS: a jumbo frame of 9,018 B and a VLAN tag.
pub const FRAME_BYTES_MAX: usize = 9_022;

/// Blocks of the longest frame; one more for a start on lane 4.
pub(super) const FRAME_BLOCKS_MAX: usize =
    frame_blocks(Bytes(FRAME_BYTES_MAX as u64)).0 as usize + 1;

/// Idles kept of the gap after a frame, where a frame follows before this one went up: as many as
/// the decoder needs, and no more than the line had, so that frames go up as fast as they come.
const GAP_BLOCKS: usize = 2;

/// Blocks in order; those of a frame can be read once it is whole.
///
/// Frames are read out while the next one comes in. Both move at most a block a slot, and reading
/// pauses only when nothing whole is left, so what waits never exceeds the longest frame and a gap.
#[derive(Clone, Debug)]
pub(super) struct FrameBuffer {
    blocks: Box<[Block]>,
    head: usize,
    /// Blocks of whole frames.
    whole: usize,
    /// Blocks after those, of the frame under way.
    partial: usize,
    /// Idles that may still be kept of the gap after the last frame.
    gap: usize,
    overflown: bool,
}

impl FrameBuffer {
    pub(super) fn new() -> FrameBuffer {
        FrameBuffer {
            blocks: vec![Block::IDLE; FRAME_BLOCKS_MAX + GAP_BLOCKS].into_boxed_slice(),
            head: 0,
            whole: 0,
            partial: 0,
            gap: 0,
            overflown: false,
        }
    }

    /// Adds a block to the frame under way.
    pub(super) fn push(&mut self, block: Block) {
        let len = self.whole + self.partial;
        if len == self.blocks.len() {
            self.overflown = true;
            return;
        }
        let tail = (self.head + len) % self.blocks.len();
        self.blocks[tail] = block;
        self.partial += 1;
    }

    /// The frame under way is whole, and of no more than [`FRAME_BYTES_MAX`].
    pub(super) fn commit(&mut self) {
        assert!(!self.overflown, "a frame that is not too long found no room");
        self.whole += std::mem::take(&mut self.partial);
        self.gap = GAP_BLOCKS;
    }

    /// A slot between frames.
    pub(super) fn pass_gap(&mut self) {
        if self.gap > 0 && self.whole > 0 {
            self.push(Block::IDLE);
            self.whole += std::mem::take(&mut self.partial);
            self.gap -= 1;
        }
    }

    /// Drops the frame under way.
    pub(super) fn drop_partial(&mut self) {
        self.partial = 0;
        self.overflown = false;
    }

    /// Drops all frames.
    pub(super) fn clear(&mut self) {
        self.drop_partial();
        self.whole = 0;
    }

    pub(super) fn pop(&mut self) -> Option<Block> {
        if self.whole == 0 {
            return None;
        }
        let block = self.blocks[self.head];
        self.head = (self.head + 1) % self.blocks.len();
        self.whole -= 1;
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_read_when_it_is_whole_and_never_when_it_was_dropped() {
        let mut buffer = FrameBuffer::new();
        buffer.push(Block::data(1));
        assert_eq!(buffer.pop(), None);
        buffer.drop_partial();
        buffer.push(Block::data(2));
        buffer.push(Block::data(3));
        buffer.commit();
        buffer.push(Block::data(4));
        assert_eq!(buffer.pop(), Some(Block::data(2)));
        assert_eq!(buffer.pop(), Some(Block::data(3)));
        assert_eq!(buffer.pop(), None);
    }

    #[test]
    fn what_does_not_fit_leaves_no_trace() {
        let mut buffer = FrameBuffer::new();
        for n in 0..2_000 {
            buffer.push(Block::data(n));
        }
        buffer.drop_partial();
        buffer.push(Block::data(7));
        buffer.commit();
        assert_eq!(buffer.pop(), Some(Block::data(7)));
        assert_eq!(buffer.pop(), None);
    }
}
