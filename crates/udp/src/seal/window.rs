//! The replay window of a sender, as in IPsec (RFC 4303 section 3.4.3).

/// Number of datagrams that may overtake one without invalidating it. Datagrams of a client with
/// several paths overtake each other by what the fast paths carry in a slow one's time.
const BITS: u64 = 4096;
const WORDS: usize = (BITS / 64) as usize;

/// The most recent numbers received.
#[derive(Clone, Debug)]
pub(super) struct ReplayWindow {
    highest: u64,
    /// Bit `n % BITS` is set if number `n` was received, for the numbers up to the highest.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// The window before the first datagram.
    pub(super) const EMPTY: ReplayWindow = ReplayWindow { highest: 0, seen: [0; WORDS] };

    /// True if a number was not received, and is not too old to tell.
    pub(super) fn is_new(&self, number: u64) -> bool {
        if number > self.highest {
            return true;
        }
        self.highest - number < BITS && self.seen[word(number)] & bit(number) == 0
    }

    /// Records a verified number that is new by [`ReplayWindow::is_new`].
    pub(super) fn came(&mut self, number: u64) {
        if number > self.highest {
            let passed = number - self.highest;
            if passed >= BITS {
                self.seen = [0; WORDS];
            } else {
                for skipped in self.highest + 1..number {
                    self.seen[word(skipped)] &= !bit(skipped);
                }
            }
            self.highest = number;
        }
        self.seen[word(number)] |= bit(number);
    }
}

fn word(number: u64) -> usize {
    (number / 64) as usize % WORDS
}

fn bit(number: u64) -> u64 {
    1 << (number % 64)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_number_is_good_once_and_the_first_may_be_any() {
        for first in [0, 1, 5, u64::MAX] {
            let mut window = ReplayWindow::EMPTY;
            assert!(window.is_new(first));
            window.came(first);
            assert!(!window.is_new(first), "{first}");
        }
    }

    proptest! {
        #[test]
        fn it_is_a_set_of_the_last_numbers(
            steps in prop::collection::vec((0_u64..10_000, any::<bool>()), 1..400),
        ) {
            let (mut window, mut came) = (ReplayWindow::EMPTY, BTreeSet::new());
            let mut base = 0;
            for (step, forward) in steps {
                let number = if forward { base + step } else { base.saturating_sub(step) };
                let highest = came.last().copied().unwrap_or(0);
                let new = !came.contains(&number) && (number > highest || highest - number < BITS);
                prop_assert_eq!(window.is_new(number), new, "{} after {}", number, highest);
                if new {
                    window.came(number);
                    came.insert(number);
                }
                base = base.max(number);
            }
        }
    }
}
