//! A downlink as a queue of blocks, first come first served, of which only ends are reckoned.
//!
//! Chunks of several senders that come at the same time alternate block by block, and a control
//! block waits for the blocks that are there, not for those to come: a chunk's last block leaves
//! when all that came before it has.

use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes, Ps};

/// A chunk that comes in, or has come and not left.
#[derive(Clone, Copy, Debug)]
struct Coming {
    name: u32,
    /// When all of it has come.
    until: Ps,
}

/// What leaves by one downlink.
#[derive(Debug, Default)]
pub(super) struct Egress {
    /// When all that has begun to come has left.
    free: Ps,
    /// Chunks that have not come whole.
    coming: Vec<Coming>,
    /// Blocks granted that have not begun to come.
    expected: Blocks,
    /// Bytes granted that no block brings: they are under way for ever.
    left_over: Bytes,
}

impl Egress {
    /// Blocks were granted towards this downlink, and bytes that no block will bring.
    pub(super) fn expect(&mut self, blocks: Blocks, left_over: Bytes) {
        self.expected += blocks;
        self.left_over += left_over;
    }

    /// A control block; gives the slot at which it starts.
    pub(super) fn control(&mut self, now: Ps, slot: Ps) -> Ps {
        self.coming.retain(|chunk| chunk.until > now);
        let to_come: u64 = self.coming.iter().map(|chunk| chunk.until.0 - now.0).sum();
        let queued = self.free.saturating_sub(now).0.saturating_sub(to_come);
        self.free = self.free.max(now) + slot;
        now + Ps(queued)
    }

    /// The first block of a chunk has come; the rest follows without a gap. Tells `moved` when
    /// each chunk that is still coming in will have left.
    pub(super) fn chunk(
        &mut self,
        now: Ps,
        (name, blocks): (u32, Blocks),
        slot: Ps,
        mut moved: impl FnMut(u32, Ps),
    ) {
        self.coming.retain(|chunk| chunk.until > now);
        let length = slot * blocks.0;
        self.free = self.free.max(now) + length;
        self.expected -= blocks;
        self.coming.push(Coming { name, until: now + length });
        for chunk in &self.coming {
            let later: u64 =
                self.coming.iter().map(|other| other.until.saturating_sub(chunk.until).0).sum();
            moved(chunk.name, self.free.saturating_sub(Ps(later)).max(chunk.until));
        }
    }

    /// When no more than `limit` will be under way; `None` while that depends on what has not
    /// begun to come.
    pub(super) fn within(&self, now: Ps, slot: Ps, limit: Bytes) -> Option<Ps> {
        let queued = self.free.saturating_sub(now);
        let queued_blocks = Blocks(queued.0.div_ceil(slot.0));
        let blocks = Bytes((self.expected + queued_blocks).0 * BLOCK_PAYLOAD_BYTES);
        // However much is left over, a receiver to which nothing else comes can be granted to.
        let under_way = blocks + self.left_over.min(limit);
        let over = Bytes(under_way.0.saturating_sub(limit.0)).to_blocks();
        (over <= queued_blocks).then(|| now + slot * over.0)
    }

    /// Blocks granted that have not begun to come.
    pub(super) fn expected(&self) -> Blocks {
        self.expected
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: Ps = Ps(640);

    fn at(slots: u64) -> Ps {
        SLOT * slots
    }

    fn ends(egress: &mut Egress, now: u64, name: u32, blocks: u64) -> Vec<(u32, u64)> {
        let mut ends = Vec::new();
        egress.expect(Blocks(blocks), Bytes(0));
        egress.chunk(at(now), (name, Blocks(blocks)), SLOT, |name, end| {
            ends.push((name, end.0 / SLOT.0));
        });
        ends
    }

    #[test]
    fn chunks_that_come_together_alternate() {
        let mut egress = Egress::default();
        assert_eq!(ends(&mut egress, 0, 1, 32), [(1, 32)]);
        // From 10 on they alternate: 22 blocks of the second come before the first one's last.
        assert_eq!(ends(&mut egress, 10, 2, 32), [(1, 54), (2, 64)]);
        // Four blocks that come from 12 to 16 wait for what came by 16: 16 + 6 + 4.
        assert_eq!(ends(&mut egress, 12, 3, 4), [(1, 58), (2, 68), (3, 26)]);
        // What came whole is no longer moved.
        assert_eq!(ends(&mut egress, 40, 4, 1), [(2, 69), (4, 68)]);
    }

    #[test]
    fn control_waits_for_the_blocks_that_are_there() {
        let mut egress = Egress::default();
        ends(&mut egress, 0, 1, 32);
        assert_eq!(egress.control(at(5), SLOT), at(5));
        ends(&mut egress, 10, 2, 32);
        // At 20 there came 20 and 10, and the control block; 20 left.
        assert_eq!(egress.control(at(20), SLOT), at(31));
        assert_eq!(egress.control(at(500), SLOT), at(500));
    }

    #[test]
    fn what_is_under_way_counts_what_is_left_over() {
        let mut egress = Egress::default();
        let limit = Bytes(256);
        egress.expect(Blocks(32), Bytes(0));
        assert_eq!(egress.within(at(3), SLOT, limit), Some(at(3)));
        egress.expect(Blocks(12), Bytes(4));
        assert_eq!(egress.within(at(3), SLOT, limit), None);
        egress.chunk(at(10), (1, Blocks(32)), SLOT, |_, _| {});
        // 96 B to come, 4 that never will, and 256 from 10 on.
        assert_eq!(egress.within(at(12), SLOT, limit), Some(at(23)));
        egress.chunk(at(50), (2, Blocks(12)), SLOT, |_, _| {});
        egress.expect(Blocks(32), Bytes(0));
        assert_eq!(egress.within(at(90), SLOT, limit), None);
        assert_eq!(egress.within(at(90), SLOT, Bytes(260)), Some(at(90)));
    }
}
