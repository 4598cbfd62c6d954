//! Latencies of operations.

use ethermem_units::Ps;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Significant digits of the histogram: a percentile is at most 0.01 % above the exact one.
const SIGNIFICANT_DIGITS: u8 = 4;

/// Every doubling of the time has 2^6 buckets, whose edges are edges of the histogram's own bins.
const BUCKETS_LOG2: u32 = 6;

/// Latencies of one kind of operation: an exact sum and a histogram, in constant memory.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    operations: u64,
    sum_ps: u128,
    max: Ps,
    histogram_ps: Histogram<u64>,
}

/// Latencies of operations of one kind, each from its call to its result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LatencyStats {
    /// Kind of operation.
    pub op: &'static str,
    /// Number of measured operations.
    pub operations: u64,
    /// Mean latency in ns.
    pub mean_ns: f64,
    /// Median latency in ns.
    pub p50_ns: f64,
    /// 95th percentile in ns.
    pub p95_ns: f64,
    /// 99th percentile in ns.
    pub p99_ns: f64,
    /// 99.9th percentile in ns.
    pub p999_ns: f64,
    /// Largest latency in ns.
    pub max_ns: f64,
    /// The histogram in order of latency, without empty buckets.
    pub buckets: Vec<LatencyBucket>,
}

/// Operations of similar latency: a bucket's width is at most 1/64 of its lower edge.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LatencyBucket {
    /// Lower edge in ns, inclusive.
    pub from_ns: f64,
    /// Upper edge in ns, exclusive.
    pub below_ns: f64,
    /// Number of operations.
    pub operations: u64,
}

/// First and last picosecond of the bucket of a time.
fn bucket_ps(ps: u64) -> (u64, u64) {
    let shift = (u64::BITS - ps.leading_zeros()).saturating_sub(BUCKETS_LOG2 + 1);
    let from = ps >> shift << shift;
    (from, from + ((1 << shift) - 1))
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

    /// Statistics; `None` without operations.
    pub(crate) fn stats(&self, op: &'static str) -> Option<LatencyStats> {
        if self.operations == 0 {
            return None;
        }
        // The upper edge of a bin may exceed the largest value.
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
            buckets: self.buckets(),
        })
    }

    fn buckets(&self) -> Vec<LatencyBucket> {
        let mut buckets: Vec<LatencyBucket> = Vec::new();
        for bin in self.histogram_ps.iter_recorded() {
            let operations = bin.count_at_value();
            let (first, last) = bucket_ps(bin.value_iterated_to());
            let from_ns = Ps(first).as_ns_f64();
            match buckets.last_mut().filter(|bucket| bucket.from_ns == from_ns) {
                Some(bucket) => bucket.operations += operations,
                None => {
                    let below_ns = Ps(last.saturating_add(1)).as_ns_f64();
                    buckets.push(LatencyBucket { from_ns, below_ns, operations });
                }
            }
        }
        buckets
    }
}

/// Rate per second of `count` in a time.
pub(crate) fn per_second(count: u64, time: Ps) -> f64 {
    if time == Ps::ZERO { 0.0 } else { count as f64 / (time.0 as f64 * 1e-12) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Times of all magnitudes, in groups of similar values.
    fn times() -> impl Strategy<Value = Vec<u64>> {
        let time = (0..50_u32, any::<u64>()).prop_map(|(shift, bits)| (bits >> 14) >> shift);
        proptest::collection::vec((time, 1..40_usize), 1..30).prop_map(|groups| {
            let near = |(time, count)| (0..count).map(move |at| time + (time >> 9) * at as u64);
            groups.into_iter().flat_map(near).collect()
        })
    }

    /// True if the operation of a percentile is in the bucket that the counts give.
    fn is_in_its_bucket(stats: &LatencyStats, share: f64, percentile_ns: f64) -> bool {
        let wanted = ((share * stats.operations as f64).ceil() as u64).max(1);
        let mut count = 0;
        let reached = |bucket: &&LatencyBucket| {
            count += bucket.operations;
            count >= wanted
        };
        let bucket = stats.buckets.iter().find(reached).unwrap();
        bucket.from_ns <= percentile_ns && percentile_ns < bucket.below_ns
    }

    proptest! {
        #[test]
        fn buckets_have_every_operation_and_agree_with_the_percentiles(times in times()) {
            let mut latencies = Latencies::new();
            times.iter().for_each(|&ps| latencies.record(Ps(ps)));
            let stats = latencies.stats("read").unwrap();
            let sum: u64 = stats.buckets.iter().map(|bucket| bucket.operations).sum();
            prop_assert_eq!(sum, stats.operations);
            for pair in stats.buckets.windows(2) {
                prop_assert!(pair[0].below_ns <= pair[1].from_ns, "{pair:?}");
            }
            // Each bucket holds exactly the times between its edges.
            for bucket in &stats.buckets {
                prop_assert!(bucket.operations > 0);
                let edges = bucket.from_ns..bucket.below_ns;
                let inside = times.iter().filter(|&&ps| edges.contains(&Ps(ps).as_ns_f64()));
                prop_assert_eq!(inside.count() as u64, bucket.operations, "{:?}", bucket);
                let width = bucket.below_ns - bucket.from_ns;
                prop_assert!(width <= (bucket.from_ns / 64.0).max(0.001) * 1.000_001);
            }
            let percentiles = [
                (0.5, stats.p50_ns),
                (0.95, stats.p95_ns),
                (0.99, stats.p99_ns),
                (0.999, stats.p999_ns),
                (1.0, stats.max_ns),
            ];
            for (share, percentile_ns) in percentiles {
                prop_assert!(is_in_its_bucket(&stats, share, percentile_ns), "{share} {stats:?}");
            }
        }
    }

    #[test]
    fn buckets_by_hand() {
        let mut latencies = Latencies::new();
        for ns in [100, 100, 101, 102, 300] {
            latencies.record(Ps::from_ns(ns));
        }
        let bucket =
            |from_ns, below_ns, operations| LatencyBucket { from_ns, below_ns, operations };
        // Buckets are 1.024 ns wide between 2^16 and 2^17 ps, and 4.096 ns between 2^18 and 2^19
        // ps.
        let expected = [
            bucket(99.328, 100.352, 2),
            bucket(100.352, 101.376, 1),
            bucket(101.376, 102.4, 1),
            bucket(299.008, 303.104, 1),
        ];
        assert_eq!(latencies.stats("read").unwrap().buckets, expected);
    }

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
