//! `ethermem emulate`: what a network would cost a program.

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use ethermem_trace::Access;
use ethermem_units::Ns;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::Statistics;

use crate::counted::{Counted, CountedRun, Pair};
use crate::counts::Counts;
use crate::delay::Delay;
use crate::error::Error;
use crate::pager::Local;
use crate::place::Placement;
use crate::protocol::PAGE_BYTES;
use crate::record::{Nothing, Recorder};
use crate::run::{Options, run};
use crate::waits::Waits;

/// Largest slowdown that the OSDI'16 study lets a network cost (Table 3: a loss of 5 %).
pub const LOSS_MAX: f64 = 1.05;
/// An interval of a slowdown whose ends differ by more than this factor says too little.
const WIDTH_MAX: f64 = 1.25;
/// An interval that is narrower than this factor does not get much narrower by more repeats.
const WIDTH_MIN: f64 = 1.02;

/// A slowdown compared with a limit, by its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The whole interval is.
    Within,
    /// No part of the interval is.
    Above,
    /// The limit is in the interval, or there is no interval.
    Undecided,
}

/// How often a program runs with a network's delays, and as often without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repeats {
    /// Number of repeats in any case.
    pub least: u32,
    /// Number of repeats at which it ends, whatever is known.
    pub most: u32,
}

impl Repeats {
    /// True if neither the clock's slowdown nor that of waits needs a further repeat, or if none is
    /// allowed. One that tells enough is enough: by waits it does on a busy machine, too.
    fn are_enough(self, done: u32, clock: &Estimate, waits: Option<&Counted>) -> bool {
        let is_known =
            || clock.is_useful() || waits.is_some_and(|counted| counted.slowdown.is_useful());
        done >= self.most || (done >= self.least && is_known())
    }
}

/// A mean of repeats, with its 95 % confidence interval (Student's t).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Lower end of the interval; `None` for one repeat.
    pub low: Option<f64>,
    /// Upper end of the interval; `None` for one repeat.
    pub high: Option<f64>,
}

impl Estimate {
    /// Compares a slowdown with a limit.
    #[must_use]
    pub fn verdict(&self, limit: f64) -> Verdict {
        match (self.low, self.high) {
            (_, Some(high)) if high <= limit => Verdict::Within,
            (Some(low), _) if low > limit => Verdict::Above,
            _ => Verdict::Undecided,
        }
    }

    /// True if two intervals have a part in common.
    fn overlaps(&self, other: &Estimate) -> bool {
        let begins_in = |one: &Estimate, other: &Estimate| one.low <= other.high;
        self.low.is_some() && begins_in(self, other) && begins_in(other, self)
    }

    /// True if the interval of a slowdown decides about [`LOSS_MAX`] and is narrow enough to mean
    /// something, or if it is so narrow that the slowdown is just at the limit.
    fn is_useful(&self) -> bool {
        let (Some(low), Some(high)) = (self.low, self.high) else { return false };
        let width = high / low;
        width <= WIDTH_MIN || (width <= WIDTH_MAX && self.verdict(LOSS_MAX) != Verdict::Undecided)
    }

    /// The mean of ratios, with the interval of their logarithms, so that it is never below zero.
    pub(crate) fn of_ratios(ratios: &[f64]) -> Estimate {
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        let (mean, half) = mean_and_half(&logs);
        let bound = |sign: f64| half.map(|half| (mean + sign * half).exp());
        Estimate { mean: mean.exp(), low: bound(-1.0), high: bound(1.0) }
    }

    pub(crate) fn of(values: &[f64]) -> Estimate {
        let (mean, half) = mean_and_half(values);
        Estimate { mean, low: half.map(|half| mean - half), high: half.map(|half| mean + half) }
    }
}

fn mean_and_half(values: &[f64]) -> (f64, Option<f64>) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    let t = StudentsT::new(0.0, 1.0, count - 1.0).expect("at least one degree of freedom");
    (mean, Some(t.inverse_cdf(0.975) * (variance / count).sqrt()))
}

/// Pearson's correlation coefficient; `None` for fewer than three points or where all x or all y
/// are equal.
#[must_use]
pub fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    if points.len() < 3 {
        return None;
    }
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let coefficient = (&x).covariance(&y) / ((&x).std_dev() * (&y).std_dev());
    coefficient.is_finite().then_some(coefficient)
}

/// Accuracy of the emulated delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Accuracy {
    /// Number of delayed accesses.
    pub accesses: u64,
    /// Mean of the requested delays in nanoseconds.
    pub wanted_mean_ns: f64,
    /// Mean deviation from the requested delay, in percent of it.
    pub error_mean_percent: f64,
    /// 99th percentile of the deviation from the requested delay, in percent of it.
    pub error_p99_percent: f64,
}

/// The cost of one network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Emulation {
    /// Fraction of the program's peak memory that may be local.
    pub local_share: f64,
    /// Memory that may be local, in bytes.
    pub local_bytes: u64,
    /// Description of the network.
    pub network: String,
    /// Duration with all memory local, in seconds.
    pub local_seconds: f64,
    /// Duration in seconds with remote memory but no emulated delay.
    pub undelayed_seconds: Estimate,
    /// Duration in seconds with the network's delays.
    pub delayed_seconds: Estimate,
    /// Delayed duration over undelayed duration.
    pub slowdown: Estimate,
    /// The slowdown compared with 5 % ([`LOSS_MAX`]).
    pub within_5_percent: Verdict,
    /// The cost by counted waits; `None` where the kernel does not account for processors.
    #[serde(default)]
    pub counted: Option<Counted>,
    /// Number of runs with delays, and of runs without.
    pub repeats: u32,
    /// Traffic to and from remote memory without delays, in Gb/s.
    pub swap_gbps: f64,
    /// Counters of the last delayed run.
    pub counts: Counts,
    /// Accuracy of the delays.
    pub accuracy: Accuracy,
}

impl Emulation {
    /// The slowdown compared with 5 %: by waits, which do not depend on what else runs. Where they
    /// do not decide, the clock does, if its interval has a part of theirs.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Some(counted) = &self.counted else { return self.within_5_percent };
        match counted.within_5_percent {
            Verdict::Undecided if counted.slowdown.overlaps(&self.slowdown) => {
                self.within_5_percent
            }
            by_waits => by_waits,
        }
    }
}

/// A network to be emulated.
#[derive(Clone, Debug)]
pub struct Network {
    /// Description of the network.
    pub name: String,
    /// Delays of its accesses.
    pub delay: Delay,
}

/// The result of an emulation, or the exit status of a failed run.
#[derive(Debug)]
pub enum Emulated {
    /// Every run exited with 0.
    Done(Box<Emulation>),
    /// A run failed with this status.
    Failed(ExitStatus),
}

struct Watch {
    /// Waits of the last run.
    waits: Waits,
    wanted_ns: u128,
    off_ns: u128,
    /// Deviations in hundredths of a percent.
    off: Histogram<u64>,
}

impl Watch {
    fn new() -> Watch {
        let off = Histogram::new(3).expect("3 digits are allowed");
        Watch { waits: Waits::default(), wanted_ns: 0, off_ns: 0, off }
    }

    fn accuracy(&self) -> Accuracy {
        let accesses = self.off.len();
        if accesses == 0 || self.wanted_ns == 0 {
            return Accuracy::default();
        }
        Accuracy {
            accesses,
            wanted_mean_ns: self.wanted_ns as f64 / accesses as f64,
            error_mean_percent: self.off_ns as f64 / self.wanted_ns as f64 * 100.0,
            error_p99_percent: self.off.value_at_quantile(0.99) as f64 / 100.0,
        }
    }
}

impl Recorder for Watch {
    fn access(&mut self, _: &Access) {}

    fn delayed(&mut self, wanted: Duration, real: Duration) {
        let (wanted, off) = (wanted.as_nanos(), wanted.abs_diff(real).as_nanos());
        self.wanted_ns += wanted;
        self.off_ns += off;
        let share = off * 10_000 / wanted.max(1);
        self.off.saturating_record(u64::try_from(share).unwrap_or(u64::MAX));
    }

    fn waits(&mut self, process: u32, thread: u32, from: Ns, until: Ns) {
        self.waits.wait(process, thread, from, until);
    }
}

/// One run with a network's delays.
#[derive(Clone, Debug, Serialize)]
pub struct DelayedRun {
    /// Description of the network.
    pub network: String,
    /// Duration from start to end.
    pub seconds: f64,
    /// Counters of the run.
    pub counts: Counts,
    /// Accuracy of the delays.
    pub accuracy: Accuracy,
    /// Waits of the run; `None` where the kernel does not account for processors.
    pub counted: Option<CountedRun>,
}

/// Runs `command` once with the delays of `network`, for programs whose speed is measured by their
/// users, such as a server's clients. `placement` is that of pager and program.
///
/// # Errors
///
/// As [`run()`].
pub fn emulate_once(
    command: &[OsString],
    network: &Network,
    local: Local,
    prefetch: bool,
    placement: Placement,
) -> Result<(ExitStatus, DelayedRun), Error> {
    let delay = network.delay.clone();
    let options = Options { prefetch, delay, placement, accounts: true, ..Options::new(local) };
    let mut watch = Watch::new();
    let outcome = run(command, &options, &mut watch)?;
    let seconds = outcome.elapsed.as_secs_f64();
    let run = DelayedRun {
        network: network.name.clone(),
        seconds,
        counts: outcome.counts,
        accuracy: watch.accuracy(),
        counted: outcome.account.map(|account| CountedRun::new(seconds, &account, &watch.waits)),
    };
    Ok((outcome.status, run))
}

/// Runs `command` alternately without and with the delays of `network`, with a share of its memory
/// local, until the repeats are enough. `peak_bytes` and `local_seconds` come from a run with all
/// memory local. `placement` is that of pager and program in all runs.
///
/// # Errors
///
/// As [`run()`].
pub fn emulate(
    command: &[OsString],
    network: &Network,
    local_share: f64,
    (peak_bytes, local_seconds): (u64, f64),
    prefetch: bool,
    placement: Placement,
    repeats: Repeats,
) -> Result<Emulated, Error> {
    let local_bytes = (peak_bytes as f64 * local_share) as u64;
    let local = if local_share >= 1.0 { Local::All } else { Local::Bytes(local_bytes) };
    let plain = Options { prefetch, placement, accounts: true, ..Options::new(local) };
    let delayed = Options { delay: network.delay.clone(), accounts: false, ..plain.clone() };
    let mut watch = Watch::new();
    let (mut without, mut with, mut swap) = (Vec::new(), Vec::new(), Vec::new());
    let (mut ratios, mut pairs, mut done) = (Vec::new(), Vec::new(), 0);
    let (slowdown, counted, counts) = loop {
        let first = run(command, &plain, &mut Nothing)?;
        // A run that failed or was ended by a signal is the last one.
        if !first.status.success() {
            return Ok(Emulated::Failed(first.status));
        }
        watch.waits = Waits::default();
        let second = run(command, &delayed, &mut watch)?;
        if !second.status.success() {
            return Ok(Emulated::Failed(second.status));
        }
        let seconds = first.elapsed.as_secs_f64();
        without.push(seconds);
        with.push(second.elapsed.as_secs_f64());
        let moved =
            first.counts.read_pages + first.counts.prefetched_pages + first.counts.written_pages;
        let bits = (moved * PAGE_BYTES as u64 * 8) as f64;
        swap.push(bits / seconds / 1e9);
        ratios.push(second.elapsed.as_secs_f64() / seconds);
        pairs.extend(first.account.map(|account| Pair::new(seconds, &account, &watch.waits)));
        done += 1;
        let slowdown = Estimate::of_ratios(&ratios);
        let counted = (pairs.len() == without.len()).then(|| Counted::of(&pairs));
        if repeats.are_enough(done, &slowdown, counted.as_ref()) {
            break (slowdown, counted, second.counts);
        }
    };
    Ok(Emulated::Done(Box::new(Emulation {
        local_share,
        local_bytes,
        network: network.name.clone(),
        local_seconds,
        undelayed_seconds: Estimate::of(&without),
        delayed_seconds: Estimate::of(&with),
        slowdown,
        within_5_percent: slowdown.verdict(LOSS_MAX),
        counted,
        repeats: done,
        swap_gbps: Estimate::of(&swap).mean,
        counts,
        accuracy: watch.accuracy(),
    })))
}

#[cfg(test)]
mod tests {
    use super::{Estimate, Repeats, Verdict, correlation};
    use crate::counted::Counted;

    #[test]
    fn an_interval_decides_and_a_mean_does_not() {
        let verdict = |low: f64, high: f64| {
            let mean = low.midpoint(high);
            Estimate { mean, low: Some(low), high: Some(high) }.verdict(1.05)
        };
        assert_eq!(verdict(0.99, 1.05), Verdict::Within);
        assert_eq!(verdict(1.051, 1.2), Verdict::Above);
        assert_eq!(verdict(0.9, 1.06), Verdict::Undecided);
        assert_eq!(verdict(1.05, 1.06), Verdict::Undecided, "1.05 is within");
        // Found on a busy machine, and once told as fine.
        assert_eq!(verdict(0.0, 15_723_983.0), Verdict::Undecided);
        assert_eq!(Estimate::of_ratios(&[3.0]).verdict(1.05), Verdict::Undecided, "no interval");
    }

    #[test]
    fn repeats_end_when_they_tell_something_or_there_were_enough() {
        let repeats = Repeats { least: 3, most: 12 };
        let of = |low, high| Estimate { mean: 1.0, low: Some(low), high: Some(high) };
        let enough = |done, low, high| repeats.are_enough(done, &of(low, high), None);
        assert!(!enough(2, 1.0, 1.01), "too few");
        assert!(enough(3, 1.0, 1.01));
        assert!(enough(3, 1.2, 1.4) && !enough(3, 1.2, 1.6), "over the limit, but by how much");
        assert!(!enough(11, 1.0, 1.1) && enough(12, 1.0, 1.1), "the limit is in it");
        assert!(enough(3, 1.045, 1.06), "just at the limit");
        let one = Estimate::of_ratios(&[1.0]);
        assert!(!Repeats { least: 1, most: 2 }.are_enough(1, &one, None));

        let by_waits = |slowdown| Counted { slowdown, ..Counted::of(&[]) };
        let unclear = of(0.8, 1.4);
        assert!(repeats.are_enough(3, &unclear, Some(&by_waits(of(1.01, 1.02)))), "waits decide");
        assert!(!repeats.are_enough(3, &unclear, Some(&by_waits(of(1.0, 1.1)))), "nor do waits");
        assert!(repeats.are_enough(3, &of(1.2, 1.3), Some(&by_waits(of(1.0, 1.1)))), "the clock");
    }

    #[test]
    fn intervals_are_those_of_the_textbook() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]);
        // t of two degrees at 0.975 is 4.3027; the standard error is 1 / sqrt 3.
        assert!((estimate.high.expect("three values") - (2.0 + 4.3027 / 3f64.sqrt())).abs() < 1e-3);
        assert_eq!(Estimate::of(&[2.5]).high, None);
        let ratios = Estimate::of_ratios(&[1.0, 4.0]);
        assert!((ratios.mean - 2.0).abs() < 1e-12 && ratios.low.expect("two") > 0.0);
    }

    #[test]
    fn correlations_are_those_of_the_textbook() {
        let of = |points: &[(f64, f64)]| correlation(points);
        // Around the means the products sum to 4, the squares to 5 and 5.
        let r = of(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 4.0)]).expect("four points");
        assert!((r - 0.8).abs() < 1e-12, "{r}");
        let r = of(&[(1.0, 9.0), (2.0, 6.0), (3.0, 3.0)]).expect("three points");
        assert!((r + 1.0).abs() < 1e-12, "{r}");
        assert_eq!(of(&[(1.0, 1.0), (2.0, 2.0)]), None, "two points are always on a line");
        assert_eq!(of(&[(1.0, 1.0), (2.0, 1.0), (3.0, 1.0)]), None, "nothing varies");
    }
}
