//! What one round of a probe yields, and what several rounds say together.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Digits of a duration that are kept: 0.1 %.
const DIGITS: u8 = 3;
/// Longer is counted as this: no probe waits so long.
const NS_MAX: u64 = 100_000_000_000;

/// How long operations took that were made one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Latency {
    pub(crate) p50_us: f64,
    pub(crate) p99_us: f64,
}

/// One round: `latency` where operations were made one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Round {
    pub(crate) latency: Option<Latency>,
    pub(crate) operations_per_s: f64,
}

/// Durations of one kind, in nanoseconds.
pub(crate) struct Samples(Histogram<u64>);

impl Samples {
    pub(crate) fn new() -> Samples {
        Samples(Histogram::new_with_max(NS_MAX, DIGITS).expect("it has 1 to 5 digits"))
    }

    pub(crate) fn add(&mut self, duration: Duration) {
        self.add_ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
    }

    pub(crate) fn add_ns(&mut self, ns: u64) {
        self.0.saturating_record(ns);
    }

    fn quantile_ns(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64
    }

    /// Each sample was one operation, made when the one before had ended. The rate is the plain
    /// mean, stolen time included.
    pub(crate) fn one_by_one(&self) -> Round {
        let us = |quantile| self.quantile_ns(quantile) / 1e3;
        let latency = Latency { p50_us: us(0.5), p99_us: us(0.99) };
        Round { latency: Some(latency), operations_per_s: 1e9 / self.0.mean().max(1.0) }
    }

    /// Each sample was so many operations, several under way at a time. The rate is that of the
    /// median sample, which time stolen by others moves little.
    pub(crate) fn in_batches(&self, operations: u64) -> Round {
        let rate = operations as f64 * 1e9 / self.quantile_ns(0.5).max(1.0);
        Round { latency: None, operations_per_s: rate }
    }
}

/// A quantity over the rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Spread {
    /// `None` of nothing.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Spread> {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (least, most) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = match sorted.len() % 2 {
            1 => sorted[middle],
            _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
        };
        Some(Spread { median, least, most })
    }
}

/// How one probe compares to its floor, round by round: time over time, or rate over rate where
/// either has no latency.
pub(crate) fn over_floor(own: &Round, floor: &Round) -> f64 {
    match (own.latency, floor.latency) {
        (Some(own), Some(floor)) => own.p50_us / floor.p50_us,
        _ => own.operations_per_s / floor.operations_per_s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_computed_from_their_samples() {
        let mut samples = Samples::new();
        for ns in 1..=1000 {
            samples.add(Duration::from_nanos(ns * 1000));
        }
        let round = samples.one_by_one();
        let latency = round.latency.unwrap();
        assert!((latency.p50_us / 500.0 - 1.0).abs() < 2e-3, "{latency:?}");
        assert!((latency.p99_us / 990.0 - 1.0).abs() < 2e-3, "{latency:?}");
        assert!((round.operations_per_s / 1998.0 - 1.0).abs() < 2e-3, "{round:?}");
        let round = samples.in_batches(100);
        assert_eq!(round.latency, None);
        assert!((round.operations_per_s / 2e5 - 1.0).abs() < 2e-3, "{round:?}");
    }

    #[test]
    fn a_spread_is_median_and_both_ends() {
        assert_eq!(Spread::of([]), None);
        let spread = Spread::of([3.0, 1.0, 10.0, 5.0]).unwrap();
        assert_eq!(spread, Spread { median: 4.0, least: 1.0, most: 10.0 });
        assert_eq!(Spread::of([3.0, 1.0, 10.0]).unwrap().median, 3.0);
    }

    #[test]
    fn times_are_held_against_times_and_rates_against_rates() {
        let round = |p50_us: Option<f64>, operations_per_s| Round {
            latency: p50_us.map(|p50_us| Latency { p50_us, p99_us: 0.0 }),
            operations_per_s,
        };
        assert_eq!(over_floor(&round(Some(6.0), 1.0), &round(Some(3.0), 1.0)), 2.0);
        assert_eq!(over_floor(&round(None, 1.0), &round(Some(3.0), 4.0)), 0.25);
    }
}
