//! A latency distribution thinned to what a figure can show.

use ethermem_units::Ps;
use hdrhistogram::Histogram;

/// Even steps of the share below the tail.
const BODY_STEPS: u64 = 160;
/// Shares from here on are all kept apart: the tail is what a latency figure is read for.
const TAIL_SHARES: [f64; 6] = [0.995, 0.999, 0.9995, 0.9999, 0.99995, 0.99999];

/// A point of a cumulative distribution: exactly `share` of the messages took at most `latency_ns`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CdfPoint {
    /// Latency in nanoseconds.
    pub latency_ns: f64,
    /// Share of messages, over 0 and at most 1.
    pub share: f64,
}

/// At most `BODY_STEPS + TAIL_SHARES.len() + 2` points, the first and the last bin among them.
/// Each lies on the edge of a bin, where the count below is exact.
pub(super) fn cdf_points(latency_ps: &Histogram<u64>, max: Ps) -> Vec<CdfPoint> {
    let total = latency_ps.len();
    let mut points = Vec::new();
    let mut seen = 0;
    let mut wanted = Wanted::default();
    for bin in latency_ps.iter_recorded() {
        seen += bin.count_since_last_iteration();
        let share = seen as f64 / total as f64;
        if points.is_empty() || seen == total || share >= wanted.share() {
            let edge = Ps(bin.value_iterated_to()).min(max);
            points.push(CdfPoint { latency_ns: edge.as_ns_f64(), share });
            wanted.pass(share);
        }
    }
    points
}

/// The next share worth a point.
#[derive(Default)]
struct Wanted {
    body: u64,
    tail: usize,
}

impl Wanted {
    fn share(&self) -> f64 {
        let body = self.body as f64 / BODY_STEPS as f64;
        TAIL_SHARES.get(self.tail).map_or(body, |tail| body.min(*tail))
    }

    fn pass(&mut self, share: f64) {
        self.body = (share * BODY_STEPS as f64) as u64 + 1;
        while TAIL_SHARES.get(self.tail).is_some_and(|tail| *tail <= share) {
            self.tail += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(values: impl IntoIterator<Item = u64>) -> Histogram<u64> {
        let mut histogram = Histogram::new(4).unwrap();
        for value in values {
            histogram.record(value).unwrap();
        }
        histogram
    }

    #[test]
    fn few_values_are_all_there() {
        let points = cdf_points(&histogram([1_000, 3_000, 3_000, 8_000]), Ps(8_000));
        let expected = [(1.0, 0.25), (3.0, 0.75), (8.0, 1.0)];
        let expected = expected.map(|(latency_ns, share)| CdfPoint { latency_ns, share });
        assert_eq!(points, expected);
    }

    #[test]
    fn nothing_has_no_points() {
        assert!(cdf_points(&histogram([]), Ps::ZERO).is_empty());
    }

    #[test]
    fn many_values_are_thinned_and_every_point_is_exact() {
        let points = cdf_points(&histogram(1..=1_000_000), Ps(1_000_000));
        assert!((150..=168).contains(&points.len()), "{} points", points.len());
        for point in &points {
            let at_most = (point.latency_ns * 1_000.0).round();
            assert!((point.share - at_most / 1e6).abs() < 1e-12, "{point:?}");
        }
        assert!(points.is_sorted_by(|a, b| a.latency_ns < b.latency_ns && a.share < b.share));
        let tail = points.iter().filter(|point| point.share > 0.995).count();
        assert!(tail >= 5, "{tail} points in the tail");
        assert_eq!(points.last().map(|point| point.share), Some(1.0));
    }
}
