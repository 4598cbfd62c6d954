//! What a network costs a program, from counted waits instead of the clock.

use serde::{Deserialize, Serialize};

use crate::emulate::{Estimate, LOSS_MAX, Verdict};
use crate::processors::Account;
use crate::waits::Waits;

/// The cost of a network by the waits that its delays cause, and by the time that the program would
/// take without them and without other programs. The clock's slowdown contains what else ran on the
/// machine, and this one does not.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// Time in seconds of a run during which at least one thread waited for the network.
    pub stopped_seconds: Estimate,
    /// Time in seconds for which the thread that waited longest did so.
    pub waited_seconds: Estimate,
    /// Duration in seconds with remote memory but no delay, less the time for which program and
    /// pager were ready to run and other programs had the processors.
    pub quiet_seconds: Estimate,
    /// 1 plus the waits over that duration. Where threads wait at different times, or several run
    /// at once, the interval has all that the program's order could make of it.
    pub slowdown: Estimate,
    /// That slowdown compared with 5 % ([`LOSS_MAX`]).
    pub within_5_percent: Verdict,
}

/// Waits of a single run, for tools that compare runs themselves (`emulate --once`).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CountedRun {
    /// Time in seconds during which at least one thread waited for the network.
    pub stopped_seconds: f64,
    /// Time in seconds for which the thread that waited longest did so.
    pub waited_seconds: f64,
    /// Duration in seconds, less the time for which program and pager were ready to run and other
    /// programs had the processors.
    pub quiet_seconds: f64,
    /// True if several threads of the program ran, or were ready, at once.
    pub parallel: bool,
}

impl CountedRun {
    pub(crate) fn new(seconds: f64, account: &Account, waits: &Waits) -> CountedRun {
        CountedRun {
            stopped_seconds: waits.any_seconds(),
            waited_seconds: waits.longest_seconds(),
            quiet_seconds: account.quiet_seconds(seconds),
            parallel: account.is_parallel(seconds),
        }
    }
}

/// A run without delays and one with them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    stopped: f64,
    waited: f64,
    quiet: f64,
    /// The undelayed duration that makes the least of the waits.
    longest: f64,
}

impl Pair {
    /// The pair of an undelayed run of `seconds` and the waits of a delayed one.
    pub(crate) fn new(seconds: f64, account: &Account, waits: &Waits) -> Pair {
        let quiet = account.quiet_seconds(seconds);
        let longest = if account.is_parallel(seconds) { seconds } else { quiet };
        Pair { stopped: waits.any_seconds(), waited: waits.longest_seconds(), quiet, longest }
    }

    /// The least and the largest slowdown that these waits can cause.
    fn bounds(&self) -> (f64, f64) {
        (1.0 + self.waited / self.longest, 1.0 + self.stopped / self.quiet)
    }
}

impl Counted {
    pub(crate) fn of(pairs: &[Pair]) -> Counted {
        let of =
            |value: fn(&Pair) -> f64| Estimate::of(&pairs.iter().map(value).collect::<Vec<f64>>());
        let (lows, highs): (Vec<f64>, Vec<f64>) = pairs.iter().map(Pair::bounds).unzip();
        let (lows, highs) = (Estimate::of_ratios(&lows), Estimate::of_ratios(&highs));
        let mean = (lows.mean * highs.mean).sqrt();
        let slowdown = Estimate { mean, low: lows.low, high: highs.high };
        Counted {
            stopped_seconds: of(|pair| pair.stopped),
            waited_seconds: of(|pair| pair.waited),
            quiet_seconds: of(|pair| pair.quiet),
            slowdown,
            within_5_percent: slowdown.verdict(LOSS_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counted, Pair};
    use crate::emulate::Verdict;

    fn pair(stopped: f64, waited: f64, quiet: f64, longest: f64) -> Pair {
        Pair { stopped, waited, quiet, longest }
    }

    #[test]
    fn one_thread_loses_what_it_waits() {
        let counted = Counted::of(&[pair(0.2, 0.2, 10.0, 10.0), pair(0.2, 0.2, 10.0, 10.0)]);
        assert!((counted.slowdown.mean - 1.02).abs() < 1e-9, "{counted:?}");
        assert_eq!(counted.within_5_percent, Verdict::Within);
        assert!((counted.quiet_seconds.mean - 10.0).abs() < 1e-9);
        let none = Counted::of(&[pair(0.0, 0.0, 1.0, 1.0), pair(0.0, 0.0, 1.3, 1.3)]);
        assert_eq!((none.slowdown.mean, none.slowdown.high), (1.0, Some(1.0)));
        assert_eq!(Counted::of(&[pair(9.0, 9.0, 1.0, 1.0)]).within_5_percent, Verdict::Undecided);
    }

    /// Threads that wait one after another stop the program for all of their waits, if each needs
    /// the other, or for those of one of them.
    #[test]
    fn what_the_order_of_threads_decides_is_in_the_interval() {
        let counted = Counted::of(&[pair(1.0, 0.2, 5.0, 10.0); 3]);
        let (low, high) = (counted.slowdown.low.expect("three"), counted.slowdown.high.expect("3"));
        assert!((low - 1.02).abs() < 1e-9 && (high - 1.2).abs() < 1e-9, "{counted:?}");
        assert_eq!(counted.within_5_percent, Verdict::Undecided);
    }
}
