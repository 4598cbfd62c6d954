//! A latency distribution, thinned to what a figure can show.

use ethermem_units::Ps;
use hdrhistogram::Histogram;
use serde::Serialize;

/// Number of even steps of the share, where most messages are.
const BODY_STEPS: u64 = 250;
/// Beyond the even steps, there is a point each time that the remaining share has fallen by this
/// factor. This gives 22 points per decade, as a latency figure is read for its tail.
const TAIL_RATIO: f64 = 0.9;

/// Shares that tables quote.
const QUOTED_SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A point of a cumulative distribution: exactly `share` of the messages took at most `latency_ns`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CdfPoint {
    /// Latency in nanoseconds.
    pub latency_ns: f64,
    /// Share of messages, over 0 and at most 1.
    pub share: f64,
}

/// Points at the first bin, the last bin, and each step between: some 450 for 10^10 messages. Each
/// lies on the edge of a bin, where the count below is exact.
pub(super) fn cdf_points(latency_ps: &Histogram<u64>, max: Ps) -> Vec<CdfPoint> {
    let total = latency_ps.len();
    let mut points = Vec::new();
    let mut seen = 0;
    let mut wanted = 0.0;
    for bin in latency_ps.iter_recorded() {
        seen += bin.count_since_last_iteration();
        let share = seen as f64 / total as f64;
        if points.is_empty() || seen == total || share >= wanted {
            let edge = Ps(bin.value_iterated_to()).min(max);
            points.push(CdfPoint { latency_ns: edge.as_ns_f64(), share });
            wanted = next_share(share);
        }
    }
    points
}

/// The next share after `share` that gets a point.
fn next_share(share: f64) -> f64 {
    let body = ((share * BODY_STEPS as f64).floor() + 1.0) / BODY_STEPS as f64;
    let tail = 1.0 - (1.0 - share) * TAIL_RATIO;
    let quoted = QUOTED_SHARES.into_iter().filter(|quoted| *quoted > share);
    quoted.fold(body.min(tail), f64::min)
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
    fn quoted_percentiles_are_kept_exact() {
        let latency_ps = histogram((1..=10_000).map(|value| value * value));
        let points = cdf_points(&latency_ps, Ps(100_000_000));
        for share in QUOTED_SHARES {
            let point = points.iter().find(|point| point.share >= share).unwrap();
            let exact = Ps(latency_ps.value_at_quantile(share));
            assert_eq!(point.latency_ns, exact.as_ns_f64(), "at {share}");
        }
    }

    #[test]
    fn many_values_are_thinned_and_every_point_is_exact() {
        let points = cdf_points(&histogram(1..=1_000_000), Ps(1_000_000));
        assert!((250..=350).contains(&points.len()), "{} points", points.len());
        for point in &points {
            let at_most = (point.latency_ns * 1_000.0).round();
            assert!((point.share - at_most / 1e6).abs() < 1e-12, "{point:?}");
        }
        assert!(points.is_sorted_by(|a, b| a.latency_ns < b.latency_ns && a.share < b.share));
        let tail = points.iter().filter(|point| (0.99..0.999).contains(&point.share)).count();
        assert!((18..=24).contains(&tail), "{tail} points in a decade of the tail");
        assert_eq!(points.last().map(|point| point.share), Some(1.0));
    }
}
