//! What the node's clock says at least.

use ethermem_units::Ns;

/// A part in so many that two clocks may drift apart: 200 in a million.
const DRIFT: u64 = 5_000;

/// Each answer says the node's time when it left; now it is that and the way's time at least. So
/// the estimate is never ahead of the node's clock, and what it says is over is over there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeClock {
    /// The node's time, at a time of ours: the answer that says most of the node's time now.
    heard: Option<(Ns, Ns)>,
}

impl NodeClock {
    /// An answer came.
    pub(super) fn hear(&mut self, now: Ns, node: Ns) {
        if self.at(now).is_none_or(|known| node > known) {
            self.heard = Some((node, now));
        }
    }

    /// The node's time now, or earlier; `None` before the first answer.
    pub(super) fn at(&self, now: Ns) -> Option<Ns> {
        let (node, heard) = self.heard?;
        let passed = now.saturating_sub(heard);
        Some(node.saturating_add(passed.saturating_sub(Ns(passed.0 / DRIFT))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_estimate_is_the_best_of_all_answers_and_never_ahead() {
        let mut clock = NodeClock::default();
        assert_eq!(clock.at(Ns(5)), None);
        // The node's clock is 1,000 ahead, and the way back takes 50, 10 and 90.
        for (sent, way) in [(100, 50), (200, 10), (300, 90)] {
            clock.hear(Ns(sent + way), Ns(1_000 + sent));
            let known = clock.at(Ns(sent + way)).expect("an answer came");
            assert!(known <= Ns(1_000 + sent + way));
        }
        assert_eq!(clock.at(Ns(390)), Some(Ns(1_380)));
    }
}
