//! The statistics of one kind of message: exact sums, and histograms.

use ethermem_units::Ps;
use hdrhistogram::{Counter, Histogram};

use super::MessageWay;
use super::cdf::cdf_points;
use super::result::KindStats;

/// Number of steps in which a slowdown of 1 is counted: percentiles of unloaded runs lie close to
/// 1.
const SLOWDOWN_STEPS: u64 = 10_000;
/// Number of exact digits: a percentile is at most 0.01 % above the exact one, and never below it.
const SIGNIFICANT_DIGITS: u8 = 4;
/// The latency up to which a histogram reserves room at the start, which costs nothing until it is
/// used. Beyond it the histogram grows by itself.
const LATENCY_USUAL: Ps = Ps(1 << 30);
/// The slowdown up to which a histogram reserves room at the start.
const SLOWDOWN_USUAL: u64 = 1 << 10;

#[derive(Clone, Debug)]
pub(super) struct KindRecorder {
    pub(super) messages: u64,
    payload_bytes: u64,
    /// 10^7 messages of 30 minutes each would overflow 64 bits of picoseconds.
    latency_ps_sum: u128,
    latency_max: Ps,
    slowdown_sum: f64,
    slowdown_min: f64,
    slowdown_max: f64,
    latency_ps: Histogram<u64>,
    slowdown_steps: Histogram<u64>,
}

impl KindRecorder {
    pub(super) fn new() -> KindRecorder {
        let histogram = |usual| {
            let histogram = Histogram::new_with_max(usual, SIGNIFICANT_DIGITS);
            let mut histogram = histogram.expect("at most 5 digits, a maximum over 2");
            histogram.auto(true);
            histogram
        };
        KindRecorder {
            messages: 0,
            payload_bytes: 0,
            latency_ps_sum: 0,
            latency_max: Ps::ZERO,
            slowdown_sum: 0.0,
            slowdown_min: f64::INFINITY,
            slowdown_max: 0.0,
            latency_ps: histogram(LATENCY_USUAL.0),
            slowdown_steps: histogram(SLOWDOWN_USUAL * SLOWDOWN_STEPS),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, bytes: u64, latency: Ps, alone: Ps) {
        assert!(alone > Ps::ZERO, "a message takes time alone");
        let slowdown = latency.0 as f64 / alone.0 as f64;
        self.messages += 1;
        self.payload_bytes += bytes;
        self.latency_ps_sum += u128::from(latency.0);
        self.latency_max = self.latency_max.max(latency);
        self.slowdown_sum += slowdown;
        self.slowdown_min = self.slowdown_min.min(slowdown);
        self.slowdown_max = self.slowdown_max.max(slowdown);
        // A histogram clamps values that it cannot hold, but every u64 fits these two.
        self.latency_ps.record(latency.0).expect("the histogram grows");
        self.slowdown_steps.record(steps(latency, alone)).expect("the histogram grows");
    }

    pub(super) fn add(&mut self, other: &KindRecorder) {
        self.messages += other.messages;
        self.payload_bytes += other.payload_bytes;
        self.latency_ps_sum += other.latency_ps_sum;
        self.latency_max = self.latency_max.max(other.latency_max);
        self.slowdown_sum += other.slowdown_sum;
        self.slowdown_min = self.slowdown_min.min(other.slowdown_min);
        self.slowdown_max = self.slowdown_max.max(other.slowdown_max);
        self.latency_ps.add(&other.latency_ps).expect("the histogram grows");
        self.slowdown_steps.add(&other.slowdown_steps).expect("the histogram grows");
    }

    pub(super) fn stats(&self) -> KindStats {
        let measured = |value: f64| (self.messages > 0).then_some(value);
        // The upper edge of a bin may lie past the largest value seen.
        let slowdown = |per_mille| {
            let steps = nearest_rank(&self.slowdown_steps, per_mille);
            measured((steps as f64 / SLOWDOWN_STEPS as f64).min(self.slowdown_max))
        };
        let latency_ns = |per_mille| {
            let ps = Ps(nearest_rank(&self.latency_ps, per_mille));
            measured(ps.min(self.latency_max).as_ns_f64())
        };
        KindStats {
            messages: self.messages,
            slowdown_mean: measured(self.slowdown_sum / self.messages as f64),
            slowdown_p50: slowdown(500),
            slowdown_p99: slowdown(990),
            slowdown_p999: slowdown(999),
            slowdown_min: measured(self.slowdown_min),
            slowdown_max: measured(self.slowdown_max),
            latency_ns_mean: measured(self.latency_ps_sum as f64 / self.messages as f64 / 1_000.0),
            latency_ns_p50: latency_ns(500),
            latency_ns_p99: latency_ns(990),
            latency_ns_p999: latency_ns(999),
            latency_ns_max: measured(self.latency_max.as_ns_f64()),
            bytes: self.payload_bytes,
            latency_cdf: cdf_points(&self.latency_ps, self.latency_max),
        }
    }
}

impl KindStats {
    /// The statistics of these messages.
    #[must_use]
    pub fn over<'w>(ways: impl Iterator<Item = &'w MessageWay>) -> KindStats {
        let mut recorder = KindRecorder::new();
        for MessageWay { message, finished, alone, .. } in ways {
            recorder.record(message.bytes.0, *finished - message.arrival, *alone);
        }
        recorder.stats()
    }
}

/// The bin edge at or above the `ceil(per_mille / 1000 * n)`-th smallest value; 0 for no values.
pub(super) fn nearest_rank<C: Counter>(histogram: &Histogram<C>, per_mille: u64) -> u64 {
    let total = histogram.len();
    if total == 0 {
        return 0;
    }
    let rank = (total * per_mille).div_ceil(1_000);
    // Half a rank is subtracted, so that the histogram's rounding up of a float product gives the
    // rank.
    histogram.value_at_quantile((rank as f64 - 0.5) / total as f64)
}

/// `latency / alone` in steps, rounded up, so that a percentile is never below the exact one.
#[inline]
fn steps(latency: Ps, alone: Ps) -> u64 {
    match latency.0.checked_mul(SLOWDOWN_STEPS) {
        Some(scaled) => scaled.div_ceil(alone.0),
        None => {
            let scaled = u128::from(latency.0) * u128::from(SLOWDOWN_STEPS);
            u64::try_from(scaled.div_ceil(u128::from(alone.0))).unwrap_or(u64::MAX)
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_slowdown_past_64_bits_of_steps_is_kept() {
        assert_eq!(steps(Ps(u64::MAX), Ps(u64::MAX)), SLOWDOWN_STEPS);
        assert_eq!(steps(Ps(u64::MAX), Ps(1)), u64::MAX);
        assert_eq!(steps(Ps(10_001), Ps(10_000)), 10_001);
        assert_eq!(steps(Ps(100_001), Ps(100_000)), 10_001, "rounded up");
    }

    proptest! {
        // Histograms that span microseconds to milliseconds are slow in builds without
        // optimisation.
        #![proptest_config(crate::property::cases(32))]

        #[test]
        fn percentiles_are_those_of_the_sorted_messages(
            runs in prop::collection::vec(
                (1_000_u64..1 << 32, 100_u64..1 << 22, any::<bool>()),
                1..400,
            )
        ) {
            // Two recorders are joined, as `all` is made of its kinds.
            let (mut all, mut other) = (KindRecorder::new(), KindRecorder::new());
            for (latency, alone, to_other) in &runs {
                let recorder = if *to_other { &mut other } else { &mut all };
                recorder.record(64, Ps(*latency), Ps(*alone));
            }
            all.add(&other);
            let all = all.stats();

            let mut latencies: Vec<f64> = runs.iter().map(|run| run.0 as f64 / 1e3).collect();
            let mut slowdowns: Vec<f64> =
                runs.iter().map(|run| run.0 as f64 / run.1 as f64).collect();
            latencies.sort_by(f64::total_cmp);
            slowdowns.sort_by(f64::total_cmp);
            let rank = |sorted: &[f64], per_mille: usize| {
                sorted[(sorted.len() * per_mille).div_ceil(1_000) - 1]
            };
            for (got, per_mille) in [
                (all.latency_ns_p50, 500),
                (all.latency_ns_p99, 990),
                (all.latency_ns_p999, 999),
                (all.latency_ns_max, 1_000),
            ] {
                let (got, exact) = (got.unwrap(), rank(&latencies, per_mille));
                prop_assert!((exact..=exact * 1.0001).contains(&got), "{got} for {exact}");
            }
            for (got, per_mille) in [
                (all.slowdown_p50, 500),
                (all.slowdown_p99, 990),
                (all.slowdown_p999, 999),
                (all.slowdown_max, 1_000),
            ] {
                let (got, exact) = (got.unwrap(), rank(&slowdowns, per_mille));
                let above = exact * 1.0001 + 0.0001;
                prop_assert!((exact..=above).contains(&got), "{got} for {exact}");
            }
            let mean = slowdowns.iter().sum::<f64>() / slowdowns.len() as f64;
            prop_assert!((all.slowdown_mean.unwrap() / mean - 1.0).abs() < 1e-12);
        }
    }
}
