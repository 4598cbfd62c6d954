//! What waits in front of a transmitter, where someone else orders it.

use ethermem_units::{Blocks, Ps};

/// Blocks that wait, the most of them, and their mean over time.
#[derive(Clone, Copy, Debug)]
pub struct Backlog {
    /// The time of a block on the link.
    slot: Ps,
    blocks: Blocks,
    /// The longest that what waits, and the rest of what is being sent, takes the link.
    longest: Ps,
    /// Sum over time of blocks times picoseconds, until `since`.
    area: u128,
    since: Ps,
}

impl Backlog {
    /// Nothing, in front of a link on which a block takes `slot`.
    #[must_use]
    pub fn new(slot: Ps) -> Backlog {
        Backlog { slot, blocks: Blocks(0), longest: Ps::ZERO, area: 0, since: Ps::ZERO }
    }

    /// `blocks` more wait, until the link is free at `free` at the earliest.
    #[inline]
    pub fn add(&mut self, now: Ps, blocks: Blocks, free: Ps) {
        self.pass(now);
        self.blocks += blocks;
        let sending = free.saturating_sub(now);
        self.longest = self.longest.max(self.slot * self.blocks.0 + sending);
    }

    /// `blocks` come when nothing waits and the link is free, and leave at once.
    #[inline]
    pub fn pass_through(&mut self, blocks: Blocks) {
        self.longest = self.longest.max(self.slot * blocks.0);
    }

    /// `blocks` wait no more.
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

    /// Blocks that wait now.
    #[inline]
    #[must_use]
    pub fn blocks(&self) -> Blocks {
        self.blocks
    }

    /// The most blocks that ever waited, with those being sent.
    #[must_use]
    pub fn max(&self) -> Blocks {
        Blocks(self.longest.0.div_ceil(self.slot.0))
    }

    /// Mean blocks waiting until `ended`.
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
        // A block has begun to leave.
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
