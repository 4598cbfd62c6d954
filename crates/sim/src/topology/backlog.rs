//! What waits in front of a transmitter, where someone else orders it.

use ethermem_units::{Blocks, Ps};

/// Blocks that wait, the most of them, and their mean over time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Backlog {
    blocks: Blocks,
    max: Blocks,
    /// Sum over time of blocks times picoseconds, until `since`.
    area: u128,
    since: Ps,
}

impl Backlog {
    /// `blocks` more wait, behind `sending` that have not left.
    #[inline]
    pub fn add(&mut self, now: Ps, blocks: Blocks, sending: Blocks) {
        self.pass(now);
        self.blocks += blocks;
        self.max = self.max.max(self.blocks + sending);
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
        self.max
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
        let mut backlog = Backlog::default();
        backlog.add(Ps(10), Blocks(4), Blocks(1));
        backlog.add(Ps(20), Blocks(2), Blocks(0));
        backlog.remove(Ps(30), Blocks(4));
        backlog.remove(Ps(50), Blocks(2));
        assert_eq!((backlog.blocks(), backlog.max()), (Blocks(0), Blocks(6)));
        // 4 blocks for 10 ps, 6 for 10, 2 for 20.
        assert_eq!(backlog.mean(Ps(100)), 1.4);
    }
}
