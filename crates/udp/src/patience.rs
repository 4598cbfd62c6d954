//! The choice between polling and sleeping of a thread that waits for a datagram.
//!
//! Polling is quickest while the thread has its processor for itself. Where others want the same
//! processor, a polling thread keeps from running those it waits for, so it must sleep. The thread
//! finds out by what polling does to it: at intervals it reads how often the scheduler gave its
//! processor to another thread. `docs/internals/clio-transport.md` has the rules and what was
//! measured.

use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Number of fruitless polls from one sample to the next: tens of microseconds.
pub(crate) const POLLS_EACH_SAMPLE: u32 = 64;
/// Score at which the thread gives way.
const SCORE_MAX: u32 = 4;
/// A fruitless stretch of [`POLLS_EACH_SAMPLE`] polls that takes this long was interrupted: by
/// another program's turn, or by a quota of processor time.
const AWAY: Duration = Duration::from_millis(1);
/// Shortest and longest time for which a thread gives way. The time doubles each time that polling
/// proves wrong soon after.
const PAUSE_MIN: Duration = Duration::from_millis(10);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Number of samples after which polling has proved right.
const SAMPLES_OF_TRUST: u32 = 256;
/// Number of long gaps in succession after which polling does not pay.
const LONG_GAPS: u32 = 2;

/// What a thread does while there is no datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It looks again at once.
    Poll,
    /// It sleeps on the socket.
    Sleep,
}

/// The decision of one waiting thread, or of several that take turns.
#[derive(Debug)]
pub(crate) struct Patience {
    rule: Rule,
    /// Number of fruitless polls since the last sample.
    polls: u32,
    /// When the current stretch of fruitless polls began, if its start was sampled.
    stretch: Option<Instant>,
    /// The thread of the last sample, and its involuntary switches until then.
    seen: Option<(ThreadId, u64)>,
}

impl Patience {
    /// A thread that polls until it learns that it must not.
    pub(crate) fn new() -> Patience {
        Patience { rule: Rule::new(), polls: 0, stretch: None, seen: None }
    }

    /// A thread that gives way for an hour, whatever else runs.
    #[cfg(test)]
    pub(crate) fn giving_way() -> Patience {
        let mut patience = Patience::new();
        patience.rule.until = Some(Instant::now() + Duration::from_secs(3600));
        patience
    }

    /// A datagram arrived, or something was sent.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        self.stretch = None;
    }

    /// The thread sleeps, for a reason of its own or because it gives way.
    #[inline]
    pub(crate) fn sleep(&mut self) {
        (self.stretch, self.seen) = (None, None);
    }

    /// A poll found nothing.
    #[inline]
    pub(crate) fn fruitless(&mut self) -> Wait {
        if let Some(until) = self.rule.until {
            if Instant::now() < until {
                return Wait::Sleep;
            }
            self.rule.try_again();
            (self.polls, self.stretch, self.seen) = (0, None, None);
        }
        self.polls += 1;
        if self.polls < POLLS_EACH_SAMPLE {
            return Wait::Poll;
        }
        self.sample()
    }

    /// True right before the poll at which the next sample is taken: a yield now shows whether
    /// another thread wants this processor.
    pub(crate) fn is_sample_due(&self) -> bool {
        self.polls + 1 == POLLS_EACH_SAMPLE && self.rule.until.is_none()
    }

    /// True while the thread gives way to others.
    pub(crate) fn gives_way(&self) -> bool {
        self.rule.until.is_some()
    }

    /// Number of times that polling was given up.
    pub(crate) fn gave_way(&self) -> u64 {
        self.rule.gave_way
    }

    #[cold]
    fn sample(&mut self) -> Wait {
        self.polls = 0;
        let now = Instant::now();
        let thread = std::thread::current().id();
        let switches = involuntary_switches();
        let since = match self.seen {
            Some((seen, before)) if seen == thread => switches.saturating_sub(before),
            _ => 0,
        };
        let is_away = self.stretch.is_some_and(|from| now.duration_since(from) >= AWAY);
        self.stretch = Some(now);
        self.seen = Some((thread, switches));
        self.rule.sample(now, since, is_away)
    }
}

/// The rule, without a system.
#[derive(Debug)]
struct Rule {
    score: u32,
    /// Number of samples since polling began.
    samples: u32,
    pause: Duration,
    /// When polling is tried again; `None` while it polls.
    until: Option<Instant>,
    gave_way: u64,
}

impl Rule {
    fn new() -> Rule {
        Rule { score: 0, samples: 0, pause: PAUSE_MIN, until: None, gave_way: 0 }
    }

    /// Ends a pause.
    fn try_again(&mut self) {
        (self.until, self.score, self.samples) = (None, 0, 0);
    }

    /// Judges a stretch of polls by the number of `switches` to other threads, and whether it was
    /// away for long.
    fn sample(&mut self, now: Instant, switches: u64, is_away: bool) -> Wait {
        self.samples += 1;
        self.score = match (is_away, switches) {
            (true, _) => SCORE_MAX,
            (false, 0) => self.score.saturating_sub(1),
            (false, _) => self.score + 1,
        };
        if self.score < SCORE_MAX {
            if self.samples == SAMPLES_OF_TRUST {
                self.pause = PAUSE_MIN;
            }
            return Wait::Poll;
        }
        let is_soon = self.samples < SAMPLES_OF_TRUST && self.gave_way > 0;
        self.pause = if is_soon { (self.pause * 2).min(PAUSE_MAX) } else { PAUSE_MIN };
        self.until = Some(now + self.pause);
        self.gave_way += 1;
        Wait::Sleep
    }
}

/// The latest gaps between requests, which tell whether polling after a request pays.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    /// Number of long ones in succession.
    long: u32,
}

impl Gaps {
    /// A gap ended with a request.
    pub(crate) fn add(&mut self, is_long: bool) {
        self.long = if is_long { self.long.saturating_add(1) } else { 0 };
    }

    /// True if the thread polled in vain after each of the last requests.
    pub(crate) fn are_long(&self) -> bool {
        self.long >= LONG_GAPS
    }
}

/// How often the scheduler took the processor from this thread, or gave it away at a yield.
#[cfg(target_os = "linux")]
fn involuntary_switches() -> u64 {
    use nix::sys::resource::{UsageWho, getrusage};
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.map_or(0, |usage| u64::try_from(usage.involuntary_context_switches()).unwrap_or(0))
}

#[cfg(not(target_os = "linux"))]
fn involuntary_switches() -> u64 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds samples 25 us apart; returns how many of them asked to sleep.
    fn feed(rule: &mut Rule, now: &mut Instant, samples: &[(u64, bool)]) -> usize {
        let mut slept = 0;
        for &(switches, is_away) in samples {
            *now += Duration::from_micros(25);
            slept += usize::from(rule.sample(*now, switches, is_away) == Wait::Sleep);
            if rule.until.is_some() {
                return slept;
            }
        }
        slept
    }

    #[test]
    fn one_short_gap_makes_polling_pay_again() {
        let mut gaps = Gaps::default();
        for (is_long, are_long) in [(true, false), (true, true), (true, true)] {
            gaps.add(is_long);
            assert_eq!(gaps.are_long(), are_long);
        }
        gaps.add(false);
        assert!(!gaps.are_long());
        gaps.add(true);
        assert!(!gaps.are_long());
    }

    #[test]
    fn a_thread_alone_polls_for_ever() {
        let (mut rule, mut now) = (Rule::new(), Instant::now());
        assert_eq!(feed(&mut rule, &mut now, &[(0, false); 10_000]), 0);
        // Other work of the machine now and then changes nothing.
        for _ in 0..1_000 {
            assert_eq!(feed(&mut rule, &mut now, &[(1, false), (0, false)]), 0);
        }
    }

    #[test]
    fn a_processor_that_another_wants_is_given_away_after_a_few_samples() {
        let (mut rule, mut now) = (Rule::new(), Instant::now());
        assert_eq!(feed(&mut rule, &mut now, &[(1, false); 10]), 1);
        assert_eq!(rule.samples, SCORE_MAX);
        assert_eq!(rule.until, Some(now + PAUSE_MIN));
        let (mut rule, mut now) = (Rule::new(), Instant::now());
        assert_eq!(feed(&mut rule, &mut now, &[(0, true)]), 1);
    }

    #[test]
    fn pauses_grow_while_polling_stays_wrong_and_shrink_when_it_is_right_again() {
        let (mut rule, mut now) = (Rule::new(), Instant::now());
        let mut pauses = Vec::new();
        for _ in 0..10 {
            feed(&mut rule, &mut now, &[(1, false); 10]);
            pauses.push(rule.until.expect("it gives way") - now);
            rule.try_again();
        }
        assert_eq!(pauses[..3], [1, 2, 4].map(|times| PAUSE_MIN * times));
        assert_eq!(pauses[9], PAUSE_MAX);
        assert_eq!(feed(&mut rule, &mut now, &[(0, false); SAMPLES_OF_TRUST as usize]), 0);
        feed(&mut rule, &mut now, &[(1, false); 10]);
        assert_eq!(rule.until, Some(now + PAUSE_MIN));
    }

    #[test]
    fn a_sleep_of_its_own_is_no_absence() {
        let mut patience = Patience::new();
        for _ in 0..1_000 {
            for _ in 0..POLLS_EACH_SAMPLE - 1 {
                assert_eq!(patience.fruitless(), Wait::Poll);
            }
            patience.sleep();
        }
        // A stretch that began long ago would count as an absence.
        patience.stretch = Some(Instant::now() - 2 * AWAY);
        let slept = (0..POLLS_EACH_SAMPLE).any(|_| patience.fruitless() == Wait::Sleep);
        assert!(slept && patience.gave_way() == 1, "{patience:?}");
    }

    /// More threads than processors that yield take turns, and each turn is counted.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_share_processors_are_switched_and_count_it() {
        let threads = 4 * std::thread::available_parallelism().map_or(1, usize::from);
        let switches = || {
            let before = involuntary_switches();
            (0..10_000).for_each(|_| std::thread::yield_now());
            involuntary_switches() - before
        };
        let counted: u64 = std::thread::scope(|scope| {
            let all: Vec<_> = (0..threads).map(|_| scope.spawn(switches)).collect();
            all.into_iter().map(|one| one.join().expect("it ends")).sum()
        });
        assert!(counted > 0, "{threads} threads were never switched");
    }
}
