//! How long a node has been silent while it was asked.

use ethermem_units::Ns;

/// Times of a client's clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Silence {
    /// When the node was asked first since it was last heard.
    asked: Ns,
    heard: Ns,
}

impl Silence {
    /// A request leaves. `is_first` if no other one is under way.
    pub(super) fn sent(&mut self, now: Ns, is_first: bool) {
        // A request that follows a lost one goes on with the same silence.
        if is_first && self.heard >= self.asked {
            self.asked = now;
        }
    }

    /// Something arrived from the node.
    pub(super) fn heard(&mut self, now: Ns) {
        self.heard = now;
    }

    /// The time since which the node is silent: it has not been heard, though it was asked.
    pub(super) fn since(&self) -> Ns {
        self.asked.max(self.heard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_begins_with_a_request_and_ends_with_an_answer() {
        let mut silence = Silence::default();
        silence.sent(Ns(100), true);
        silence.sent(Ns(150), false);
        assert_eq!(silence.since(), Ns(100));
        silence.heard(Ns(200));
        assert_eq!(silence.since(), Ns(200));
        // An hour without a request is no silence.
        silence.sent(Ns(9_000), true);
        assert_eq!(silence.since(), Ns(9_000));
        // The request was lost, and another one follows.
        silence.sent(Ns(11_000), true);
        assert_eq!(silence.since(), Ns(9_000));
    }
}
