//! The buffer in which a frame waits for its /T/.

use ethermem_units::Bytes;
use ethermem_wire::{Block, frame_blocks};

/// Longest frame that is accepted, FCS included: a jumbo frame of 9,018 B and a VLAN tag.
pub const FRAME_BYTES_MAX: usize = 9_022;

/// Blocks of the longest frame, plus one for a start on lane 4.
pub(super) const FRAME_BLOCKS_MAX: usize =
    frame_blocks(Bytes(FRAME_BYTES_MAX as u64)).0 as usize + 1;

/// Number of idles kept of the gap after a frame, where the next frame begins before this one went
/// up. The decoder needs as many, and the line had at least as many, so that frames go up as fast
/// as they arrive.
const GAP_BLOCKS: usize = 2;

/// Blocks in order; a frame's blocks can be read once the frame is whole.
///
/// Frames are read while the next frame arrives. Both move at most one block a slot, and reading
/// pauses only when no whole frame is left. So the backlog never exceeds the longest frame and a
/// gap.
#[derive(Clone, Debug)]
pub(super) struct FrameBuffer {
    blocks: Box<[Block]>,
    head: usize,
    /// Number of blocks of whole frames.
    whole: usize,
    /// Number of blocks after these, of the frame in progress.
    partial: usize,
    /// Number of idles that may still be kept of the gap after the last frame.
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

    /// Adds a block to the frame in progress.
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

    /// Marks the frame in progress as whole; it has at most [`FRAME_BYTES_MAX`].
    pub(super) fn commit(&mut self) {
        assert!(!self.overflown, "a frame that is not too long found no room");
        self.whole += std::mem::take(&mut self.partial);
        self.gap = GAP_BLOCKS;
    }

    /// Records a slot between frames.
    pub(super) fn pass_gap(&mut self) {
        if self.gap > 0 && self.whole > 0 {
            self.push(Block::IDLE);
            self.whole += std::mem::take(&mut self.partial);
            self.gap -= 1;
        }
    }

    /// Drops the frame in progress.
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
