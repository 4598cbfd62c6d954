//! Chunks on their way through a switch. They are cut through while the port is free; otherwise
//! their blocks wait.

use std::collections::VecDeque;

use ethermem_wire::Block;

/// Maximum number of chunks that one egress port holds, whole or in part.
pub const EGRESS_CHUNKS_MAX: usize = 16;
/// Maximum number of blocks that one egress port holds.
pub const EGRESS_BLOCKS_MAX: usize = 512;

/// Identifies a chunk between its first block and its last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ChunkSlot(u8);

/// One egress port. Chunks leave in the order in which they began, each without a break. While one
/// chunk is cut through, chunks of other sources wait behind it. The scheduler frees a destination
/// when its chunk has passed, and so bounds the backlog. Both bounds are asserted.
#[derive(Debug)]
pub(super) struct Egress {
    slots: Vec<Slot>,
    order: VecDeque<ChunkSlot>,
    /// Numbers of chunks that began, and that left.
    opened: u64,
    left: u64,
    blocks: usize,
    blocks_max: usize,
}

#[derive(Debug)]
struct Slot {
    blocks: VecDeque<Block>,
    used: bool,
    whole: bool,
}

impl Egress {
    pub(super) fn new(chunk_blocks: usize) -> Egress {
        let slot =
            || Slot { blocks: VecDeque::with_capacity(chunk_blocks), used: false, whole: false };
        Egress {
            slots: (0..EGRESS_CHUNKS_MAX).map(|_| slot()).collect(),
            order: VecDeque::with_capacity(EGRESS_CHUNKS_MAX),
            opened: 0,
            left: 0,
            blocks: 0,
            blocks_max: 0,
        }
    }

    /// A mark between the chunks that have begun and later ones.
    pub(super) const fn mark(&self) -> u64 {
        self.opened
    }

    /// True if all chunks before a mark have left.
    pub(super) const fn has_passed(&self, mark: u64) -> bool {
        self.left >= mark
    }

    /// Begins a chunk.
    pub(super) fn open(&mut self) -> ChunkSlot {
        let free = self.slots.iter().position(|slot| !slot.used);
        let free = free.expect("a destination is granted to few sources at a time");
        let slot = ChunkSlot(free as u8);
        self.slots[free].used = true;
        self.slots[free].whole = false;
        self.order.push_back(slot);
        self.opened += 1;
        slot
    }

    /// Adds a block to a chunk; it may be the last one.
    pub(super) fn push(&mut self, slot: ChunkSlot, block: Block, last: bool) {
        assert!(self.blocks < EGRESS_BLOCKS_MAX, "an egress port holds {} blocks", self.blocks);
        let slot = &mut self.slots[usize::from(slot.0)];
        slot.blocks.push_back(block);
        slot.whole = last;
        self.blocks += 1;
        self.blocks_max = self.blocks_max.max(self.blocks);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.order.front().is_some_and(|slot| !self.slots[usize::from(slot.0)].blocks.is_empty())
    }

    /// The next block of the chunk that goes out, and whether it is the last.
    pub(super) fn pop(&mut self) -> (Block, bool) {
        let front = *self.order.front().expect("a chunk goes out");
        let slot = &mut self.slots[usize::from(front.0)];
        let block = slot.blocks.pop_front().expect("a chunk comes in as fast as it goes out");
        self.blocks -= 1;
        let last = slot.whole && slot.blocks.is_empty();
        if last {
            slot.used = false;
            self.order.pop_front();
            self.left += 1;
        }
        (block, last)
    }

    pub(super) fn clear(&mut self) {
        self.order.clear();
        self.left = self.opened;
        self.blocks = 0;
        for slot in &mut self.slots {
            slot.blocks.clear();
            slot.used = false;
        }
    }

    /// Maximum number of blocks held so far.
    pub(super) const fn blocks_max(&self) -> usize {
        self.blocks_max
    }
}
