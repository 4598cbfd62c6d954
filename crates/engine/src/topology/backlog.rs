//! The backlog in front of a transmitter, if the transmitter does not order it itself.

use ethermem_units::{Blocks, Ps};

/// The number of blocks that wait, its maximum, and its mean over time.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// The time of a block on the link.
    slot: Ps,
    blocks: Blocks,
    /// Maximum time that the backlog, with the rest of the item being sent, takes on the link.
    longest: Ps,
    /// Sum over time of blocks times picoseconds, until `since`.
    area: u128,
    since: Ps,
}

impl Backlog {
    /// An empty backlog in front of a link on which a block takes `slot`.
    #[must_use]
    pub fn new(slot: Ps) -> Backlog {
        Backlog { slot, blocks: Blocks(0), longest: Ps::ZERO, area: 0, since: Ps::ZERO }
    }

    /// Adds `blocks` that wait until the link is free, at `free` at the earliest.
    #[inline]
    pub fn add(&mut self, now: Ps, blocks: Blocks, free: Ps) {
        self.pass(now);
        self.blocks += blocks;
        let sending = free.saturating_sub(now);
        self.longest = self.longest.max(self.slot * self.blocks.0 + sending);
    }

    /// Counts `blocks` that arrive at an empty backlog and a free link, and leave at once.
    #[inline]
    pub fn pass_through(&mut self, blocks: Blocks) {
        self.longest = self.longest.max(self.slot * blocks.0);
    }

    /// Removes `blocks`.
    #[inline]
    pub fn remove(&mut self, now: Ps, blocks: Blocks) {
        self.pass(now);
        self.blocks -= blocks;
    }

    #[inline]
    fn pass(&mut self, now: Ps) {
        self.area += u128::from(self.blocks.0) * u128::from((now - self.since).0);
        self.since = now;
    }

    /// Number of blocks that wait now.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// Maximum number of blocks that ever waited, including blocks being sent.
    #[must_use]
    pub fn max(&self) -> Blocks {
        Blocks(self.longest.0.div_ceil(self.slot.0))
    }

    /// Mean number of blocks that waited until `ended`.
    #[must_use]
    pub fn mean(&self, ended: Ps) -> f64 {
        if ended == Ps::ZERO { 0.0 } else { self.area as f64 / ended.0 as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_is_averaged_over_time() {
        let mut backlog = Backlog::new(Ps(5));
        // One block has begun to leave.
        backlog.add(Ps(10), Blocks(4), Ps(13));
        backlog.add(Ps(20), Blocks(2), Ps(13));
        backlog.remove(Ps(30), Blocks(4));
        backlog.remove(Ps(50), Blocks(2));
        assert_eq!((backlog.blocks(), backlog.max()), (Blocks(0), Blocks(6)));
        backlog.pass_through(Blocks(7));
        assert_eq!(backlog.max(), Blocks(7));
        // 4 blocks for 10 ps, 6 for 10, 2 for 20.
        assert_eq!(backlog.mean(Ps(100)), 1.4);
    }
}
