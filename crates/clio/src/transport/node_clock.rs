//! A lower bound of the node's clock.

use ethermem_units::Ns;

/// Two clocks may drift apart by one part in this number: 200 in a million.
const DRIFT: u64 = 5_000;

/// The estimate of the node's clock. Each answer carries the node's time when it left, and now the
/// time is at least as late. So the estimate is never ahead of the node's clock, and what is over
/// by the estimate is over at the node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NodeClock {
    /// The answer that gives the latest estimate: the node's time, at a time of the client's clock.
    heard: Option<(Ns, Ns)>,
}

impl NodeClock {
    /// Processes the clock of an answer.
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
