//! The longest datagram that the path carries in both directions. It is found by probes of that
//! length, which are answered by datagrams of equal length (RFC 8899, packetization layer path MTU
//! discovery).
//!
//! Operations use datagrams that are known to pass, so the search delays none. A long probe is
//! followed by a short one. If only the short one is answered, the path does not carry the long
//! one. If neither is answered, nothing is learnt.

use ethermem_units::Ns;

/// A length fails after this many tries (`MAX_PROBES` of the RFC).
const TRIES: u32 = 3;
/// The search ends within this many bytes of a length that fails.
const CLOSE_BYTES: usize = 8;
/// Time after which the search is repeated, in case the path carries more by then
/// (`PMTU_RAISE_TIMER`).
const RAISE_AFTER: Ns = Ns(600_000_000_000);

/// What is known of a path, and the search for a longer datagram.
#[derive(Debug)]
pub(super) struct PathSearch {
    /// Bytes that every path carries.
    base: usize,
    /// Maximum bytes that the carrier accepts.
    most: usize,
    /// Length of the longest probe that was answered.
    carries: usize,
    /// Length of the shortest probe that failed, or one more than `most`.
    fails: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// No search until this time; `None` means for ever.
    Rests(Option<Ns>),
    Tries(Try),
}

#[derive(Debug)]
struct Try {
    bytes: usize,
    /// Number of failed tries of this length.
    failed: u32,
    /// Number of consecutive tries without an answer to the short probe either.
    silent: u32,
    step: Step,
}

#[derive(Debug)]
enum Step {
    Long,
    Short,
    Waits { short: u64, is_heard: bool, due: Ns },
}

/// A probe to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    /// A datagram of this many octets.
    Long(usize),
    /// A datagram of the least length.
    Short,
}

impl PathSearch {
    /// A path that carries at least `base` bytes, by a carrier that accepts `most`.
    pub(super) fn new(base: usize, most: usize) -> PathSearch {
        let state = State::Rests(None);
        let mut path = PathSearch { base, most, carries: base, fails: most + 1, state };
        path.go_on(Ns::ZERO);
        path
    }

    /// Length of the longest datagram that is known to pass.
    pub(super) fn carries(&self) -> usize {
        self.carries
    }

    /// True while the search is in progress.
    pub(super) fn is_searched(&self) -> bool {
        matches!(self.state, State::Tries(_))
    }

    /// The time at which a probe is due.
    pub(super) fn due(&self) -> Option<Ns> {
        match &self.state {
            State::Rests(until) => *until,
            State::Tries(Try { step: Step::Waits { due, .. }, .. }) => Some(*due),
            State::Tries(_) => Some(Ns::ZERO),
        }
    }

    /// The probe to send now; `request` is the number of its request. `wait` gives the time an
    /// answer may take, for a number of tries in vain.
    pub(super) fn next(
        &mut self,
        now: Ns,
        request: u64,
        wait: impl Fn(u32) -> Ns,
    ) -> Option<Probe> {
        if self.due().is_none_or(|due| due > now) {
            return None;
        }
        if let State::Rests(_) = self.state {
            self.fails = self.most + 1;
            self.go_on(now);
        }
        if let State::Tries(Try { bytes, failed, silent, step }) = &mut self.state
            && let Step::Waits { is_heard, .. } = *step
        {
            *step = Step::Long;
            if is_heard {
                (*failed, *silent) = (*failed + 1, 0);
            } else {
                *silent += 1;
            }
            if *failed == TRIES {
                self.fails = *bytes;
                if self.carries >= self.fails {
                    self.carries = self.base;
                }
                self.go_on(now);
            }
        }
        let State::Tries(Try { bytes, silent, step, .. }) = &mut self.state else { return None };
        if let Step::Long = step {
            *step = Step::Short;
            return Some(Probe::Long(*bytes));
        }
        let due = now.saturating_add(wait(*silent));
        *step = Step::Waits { short: request, is_heard: false, due };
        Some(Probe::Short)
    }

    /// Records that a datagram of `bytes` octets answered a probe. Another answer may take `wait`.
    pub(super) fn heard(&mut self, now: Ns, request: u64, bytes: usize, wait: Ns) {
        // If the answer was only late, longer probes may pass, too.
        if bytes >= self.fails {
            self.fails = self.most + 1;
        }
        self.carries = self.carries.max(bytes.min(self.most));
        let State::Tries(tried) = &mut self.state else { return };
        if bytes >= tried.bytes {
            self.go_on(now);
        } else if let Step::Waits { short, is_heard, due } = &mut tried.step
            && *short == request
        {
            (*is_heard, *due) = (true, now.saturating_add(wait));
        }
    }

    /// Records that datagrams stay unanswered, so that the path may carry less than before.
    pub(super) fn doubt(&mut self) {
        if let State::Rests(_) = self.state
            && self.carries > self.base
        {
            self.try_bytes(self.carries);
        }
    }

    /// Records that the carrier accepts no more than this.
    pub(super) fn narrow(&mut self, now: Ns, bytes: usize) {
        if bytes >= self.most {
            return;
        }
        self.most = bytes.max(self.base);
        self.carries = self.carries.min(self.most);
        self.fails = self.fails.min(self.most + 1);
        self.go_on(now);
    }

    fn go_on(&mut self, now: Ns) {
        if self.fails - self.carries > CLOSE_BYTES {
            let all = self.fails > self.most;
            self.try_bytes(if all { self.most } else { (self.carries + self.fails) / 2 });
        } else {
            let raise = self.carries < self.most;
            self.state = State::Rests(raise.then(|| now.saturating_add(RAISE_AFTER)));
        }
    }

    fn try_bytes(&mut self, bytes: usize) {
        self.state = State::Tries(Try { bytes, failed: 0, silent: 0, step: Step::Long });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIP: u64 = 100;

    fn wait(silent: u32) -> Ns {
        Ns((2 * TRIP) << silent)
    }

    /// Probes a path that carries `limit` until no probe is due for long. Returns the number of
    /// probes, and the time of the end.
    fn probe(path: &mut PathSearch, limit: usize, from: u64) -> (u64, Ns) {
        let (mut now, mut sent) = (Ns(from), 0);
        while let Some(due) = path.due().filter(|due| due.0 < now.0 + RAISE_AFTER.0 / 2) {
            now = now.max(due);
            let Some(probe) = path.next(now, sent, wait) else { continue };
            let bytes = if let Probe::Long(bytes) = probe { bytes } else { 60 };
            if bytes <= limit {
                path.heard(Ns(now.0 + TRIP), sent, bytes, wait(0));
            }
            sent += 1;
        }
        (sent, now)
    }

    #[test]
    fn a_path_that_carries_all_takes_one_probe() {
        let mut path = PathSearch::new(1200, 8972);
        assert_eq!((path.carries(), path.due()), (1200, Some(Ns::ZERO)));
        assert_eq!(probe(&mut path, 9000, 0).0, 1);
        assert_eq!((path.carries(), path.due()), (8972, None));
    }

    #[test]
    fn a_path_that_drops_what_is_long_is_found_to_within_8_octets() {
        for most in [1472, 8972, 65_507] {
            for limit in (1200..most).step_by(37) {
                let mut path = PathSearch::new(1200, most);
                let (sent, ended) = probe(&mut path, limit, 0);
                let carries = path.carries();
                assert!(carries <= limit && limit < carries + CLOSE_BYTES, "{carries} of {limit}");
                assert!(sent <= 6 * 17, "{sent} of {most}");
                // The path may carry more later.
                let again = path.due().expect("it is tried again");
                assert!(again >= Ns(ended.0 + RAISE_AFTER.0));
                assert_eq!(path.next(Ns(again.0 - 1), 0, wait), None);
                probe(&mut path, usize::MAX, again.0);
                assert_eq!((path.carries(), path.due()), (most, None));
            }
        }
    }

    #[test]
    fn of_a_node_that_is_silent_nothing_is_learnt() {
        let mut path = PathSearch::new(1200, 8972);
        let mut now = Ns::ZERO;
        let mut long = 0;
        for request in 0..40 {
            now = now.max(path.due().expect("it is not over"));
            long += u64::from(path.next(now, request, wait) == Some(Probe::Long(8972)));
        }
        assert_eq!((long, path.carries()), (20, 1200));
        assert!(now > Ns(TRIP << 19), "each waits twice as long as the one before");
        assert_eq!(probe(&mut path, 8972, now.0).0, 1);
        assert_eq!(path.carries(), 8972);
    }

    #[test]
    fn a_path_that_carries_less_than_it_did_is_searched_once_it_is_doubted() {
        let mut path = PathSearch::new(1200, 8972);
        probe(&mut path, 8972, 0);
        path.doubt();
        assert_eq!(path.carries(), 8972, "until it fails");
        assert_eq!(probe(&mut path, 8972, 5_000).0, 1);
        assert_eq!((path.carries(), path.due()), (8972, None));
        path.doubt();
        probe(&mut path, 1472, 9_000);
        assert!((1465..=1472).contains(&path.carries()), "{}", path.carries());
    }

    #[test]
    fn what_comes_late_counts() {
        let mut path = PathSearch::new(1200, 8972);
        probe(&mut path, 1472, 0);
        path.heard(Ns(1), 0, 8972, wait(0));
        assert_eq!(path.carries(), 8972);
    }

    #[test]
    fn the_carrier_may_come_to_know_that_it_takes_less() {
        let mut path = PathSearch::new(1200, 8972);
        assert_eq!(path.next(Ns(1), 1, wait), Some(Probe::Long(8972)));
        path.narrow(Ns(2), 1472);
        assert_eq!(path.next(Ns(3), 2, wait), Some(Probe::Long(1472)));
        path.heard(Ns(4), 2, 1472, wait(0));
        assert_eq!((path.carries(), path.due()), (1472, None));
        path.narrow(Ns(5), 100);
        assert_eq!(path.carries(), 1200);
    }
}
