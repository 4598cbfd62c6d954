//! A downlink as a first-come-first-served queue of blocks, for which only end times are computed.
//!
//! Chunks of several senders that arrive at one time alternate block by block. A control block
//! waits for the present blocks, and not for later ones. So a chunk's last block leaves when
//! everything that arrived before it has left.

use ethermem_units::{BLOCK_PAYLOAD_BYTES, Blocks, Bytes, Ps};

/// A chunk that is arriving, or has arrived and not left.
#[derive(Clone, Copy, Debug)]
struct Coming {
    name: u32,
    /// The time at which all of it has arrived.
    until: Ps,
}

/// The queue of one downlink.
#[derive(Debug, Default)]
pub(super) struct Egress {
    /// The time at which everything that has begun to arrive has left.
    free: Ps,
    /// Chunks that have not arrived completely.
    coming: Vec<Coming>,
    /// Number of granted blocks that have not begun to arrive.
    expected: Blocks,
    /// Number of granted bytes that no block carries: they are in flight for ever.
    left_over: Bytes,
}

impl Egress {
    /// Records blocks granted towards this downlink, and bytes that no block will carry.
    pub(super) fn expect(&mut self, blocks: Blocks, left_over: Bytes) {
        self.expected += blocks;
        self.left_over += left_over;
    }

    /// Adds a control block; returns the time of its slot.
    pub(super) fn control(&mut self, now: Ps, slot: Ps) -> Ps {
        self.coming.retain(|chunk| chunk.until > now);
        let to_come: u64 = self.coming.iter().map(|chunk| chunk.until.0 - now.0).sum();
        let queued = self.free.saturating_sub(now).0.saturating_sub(to_come);
        self.free = self.free.max(now) + slot;
        now + Ps(queued)
    }

    /// Adds a chunk whose first block has arrived; the rest follows without a gap. Reports to
    /// `moved` when each chunk that is still arriving will have left.
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

    /// The time at which at most `limit` will be in flight. `None` while it depends on blocks that
    /// have not begun to arrive.
    pub(super) fn within(&self, now: Ps, slot: Ps, limit: Bytes) -> Option<Ps> {
        let queued = self.free.saturating_sub(now);
        let queued_blocks = Blocks(queued.0.div_ceil(slot.0));
        let blocks = Bytes((self.expected + queued_blocks).0 * BLOCK_PAYLOAD_BYTES);
        // However many bytes are left over, a receiver without other traffic can be granted to.
        let under_way = blocks + self.left_over.min(limit);
        let over = Bytes(under_way.0.saturating_sub(limit.0)).to_blocks();
        (over <= queued_blocks).then(|| now + slot * over.0)
    }

    /// Number of granted blocks that have not begun to arrive.
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
        // From 10 on they alternate: 22 blocks of the second arrive before the first one's last.
        assert_eq!(ends(&mut egress, 10, 2, 32), [(1, 54), (2, 64)]);
        // Four blocks that arrive from 12 to 16 wait for the blocks that arrived by 16: 16 + 6 + 4.
        assert_eq!(ends(&mut egress, 12, 3, 4), [(1, 58), (2, 68), (3, 26)]);
        // A chunk that arrived completely is no longer moved.
        assert_eq!(ends(&mut egress, 40, 4, 1), [(2, 69), (4, 68)]);
    }

    #[test]
    fn control_waits_for_the_blocks_that_are_there() {
        let mut egress = Egress::default();
        ends(&mut egress, 0, 1, 32);
        assert_eq!(egress.control(at(5), SLOT), at(5));
        ends(&mut egress, 10, 2, 32);
        // By 20, 20 and 10 blocks and the control block have arrived; 20 have left.
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
        // 96 B are still to arrive, 4 B never will, and 256 B from 10 on.
        assert_eq!(egress.within(at(12), SLOT, limit), Some(at(23)));
        egress.chunk(at(50), (2, Blocks(12)), SLOT, |_, _| {});
        egress.expect(Blocks(32), Bytes(0));
        assert_eq!(egress.within(at(90), SLOT, limit), None);
        assert_eq!(egress.within(at(90), SLOT, Bytes(260)), Some(at(90)));
    }
}
