//! How long operations took.

use ethermem_units::Ps;
use hdrhistogram::Histogram;
use serde::Serialize;

/// A percentile is at most 0.01 % above the exact one.
const SIGNIFICANT_DIGITS: u8 = 4;

/// The times of one kind of operation: an exact sum beside a histogram, at constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    operations: u64,
    sum_ps: u128,
    max: Ps,
    histogram_ps: Histogram<u64>,
}

/// What operations of a kind took, each from its call to its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyStats {
    /// Which kind.
    pub op: &'static str,
    /// How many were measured.
    pub operations: u64,
    /// Their mean.
    pub mean_ns: f64,
    /// Half of them took at most this.
    pub p50_ns: f64,
    /// 95 of 100 did.
    pub p95_ns: f64,
    /// 99 of 100 did.
    pub p99_ns: f64,
    /// 999 of 1,000 did.
    pub p999_ns: f64,
    /// The longest.
    pub max_ns: f64,
}

impl Latencies {
    pub(crate) fn new() -> Latencies {
        let histogram = Histogram::new(SIGNIFICANT_DIGITS).expect("at most 5 digits");
        Latencies { operations: 0, sum_ps: 0, max: Ps::ZERO, histogram_ps: histogram }
    }

    pub(crate) fn record(&mut self, latency: Ps) {
        self.operations += 1;
        self.sum_ps += u128::from(latency.0);
        self.max = self.max.max(latency);
        self.histogram_ps.record(latency.0).expect("the histogram grows");
    }

    pub(crate) fn add(&mut self, other: &Latencies) {
        self.operations += other.operations;
        self.sum_ps += other.sum_ps;
        self.max = self.max.max(other.max);
        self.histogram_ps.add(&other.histogram_ps).expect("the histogram grows");
    }

    /// `None` where there is nothing to tell.
    pub(crate) fn stats(&self, op: &'static str) -> Option<LatencyStats> {
        if self.operations == 0 {
            return None;
        }
        // The upper edge of a bin may lie past the largest value seen.
        let quantile =
            |share| Ps(self.histogram_ps.value_at_quantile(share)).min(self.max).as_ns_f64();
        Some(LatencyStats {
            op,
            operations: self.operations,
            mean_ns: self.sum_ps as f64 / self.operations as f64 / 1000.0,
            p50_ns: quantile(0.5),
            p95_ns: quantile(0.95),
            p99_ns: quantile(0.99),
            p999_ns: quantile(0.999),
            max_ns: self.max.as_ns_f64(),
        })
    }
}

/// How many there were in a second of a time.
pub(crate) fn per_second(count: u64, time: Ps) -> f64 {
    if time == Ps::ZERO { 0.0 } else { count as f64 / (time.0 as f64 * 1e-12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hundred_by_hand() {
        let (mut all, mut rest) = (Latencies::new(), Latencies::new());
        for ns in 1..=100 {
            let half = if ns <= 50 { &mut all } else { &mut rest };
            half.record(Ps::from_ns(ns));
        }
        all.add(&rest);
        let stats = all.stats("read").unwrap();
        assert_eq!((stats.operations, stats.mean_ns, stats.max_ns), (100, 50.5, 100.0));
        for (found, exact) in [(stats.p50_ns, 50.0), (stats.p95_ns, 95.0), (stats.p99_ns, 99.0)] {
            assert!(found >= exact && found <= exact * 1.0001, "{found}, exact {exact}");
        }
        assert_eq!(stats.p999_ns, 100.0);
        assert_eq!(Latencies::new().stats("read"), None);
        assert_eq!(per_second(3, Ps::from_ns(1500)), 2e6);
    }
}
