//! A size distribution in a few numbers.

use serde::Serialize;

use super::SizeDistribution;

/// The summary of a size distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SizeSummary {
    /// Mean bytes of a message.
    pub bytes_mean: f64,
    /// The 10th percentile of the bytes of messages.
    pub bytes_p10: u64,
    /// The median of the bytes of messages.
    pub bytes_p50: u64,
    /// The 90th percentile of the bytes of messages.
    pub bytes_p90: u64,
    /// The 99th percentile of the bytes of messages.
    pub bytes_p99: u64,
    /// Bytes of the largest message.
    pub bytes_max: u64,
    /// Standard deviation over mean: 0 for one size, over 1 for a heavy tail.
    pub variation: f64,
    /// Share of all bytes that the messages over `bytes_p90` carry: 0.1 if all sizes are equal.
    pub bytes_share_over_p90: f64,
    /// Share of all bytes that the messages over `bytes_p99` carry.
    pub bytes_share_over_p99: f64,
}

impl SizeSummary {
    /// Summarises a distribution; shares are of the largest 10 % and 1 % of the messages.
    #[must_use]
    pub fn of(sizes: &SizeDistribution) -> SizeSummary {
        let quantile = |share| sizes.quantile(share).0;
        let mean = sizes.mean_bytes();
        let [square] = sizes.expectation(|bytes| [(bytes.0 as f64 - mean).powi(2)]);
        SizeSummary {
            bytes_mean: mean,
            bytes_p10: quantile(0.1),
            bytes_p50: quantile(0.5),
            bytes_p90: quantile(0.9),
            bytes_p99: quantile(0.99),
            bytes_max: quantile(1.0),
            variation: square.sqrt() / mean,
            bytes_share_over_p90: share_of_largest(sizes, 0.1) / mean,
            bytes_share_over_p99: share_of_largest(sizes, 0.01) / mean,
        }
    }
}

/// Bytes that the largest `fraction` of the messages carry, per message of the run.
fn share_of_largest(sizes: &SizeDistribution, fraction: f64) -> f64 {
    let edge = sizes.quantile(1.0 - fraction);
    let [over_bytes, over] =
        sizes.expectation(|bytes| if bytes > edge { [bytes.0 as f64, 1.0] } else { [0.0, 0.0] });
    // Messages of the edge's own size fill the rest of the fraction.
    over_bytes + (fraction - over) * edge.0 as f64
}

#[cfg(test)]
mod tests {
    use ethermem_units::Bytes;

    use super::*;

    #[test]
    fn one_size_has_no_tail() {
        let summary = SizeSummary::of(&SizeDistribution::fixed(Bytes(64)));
        assert_eq!((summary.bytes_p10, summary.bytes_p50, summary.bytes_max), (64, 64, 64));
        assert_eq!((summary.bytes_mean, summary.variation), (64.0, 0.0));
        assert!((summary.bytes_share_over_p90 - 0.1).abs() < 1e-12, "{summary:?}");
        assert!((summary.bytes_share_over_p99 - 0.01).abs() < 1e-12, "{summary:?}");
    }

    #[test]
    fn a_heavy_tail_carries_most_bytes() {
        // 95 % of 100 B and 5 % of 10,000 B are 95 and 500 B of a mean of 595 B.
        let points = [(100, 0.95), (9_999, 0.95), (10_000, 1.0)];
        let summary = SizeSummary::of(&SizeDistribution::from_points(&points).unwrap());
        assert!((summary.bytes_mean - 595.0).abs() < 1e-9, "{summary:?}");
        // The largest tenth has 500 B of the large messages and half of it, 0.05 x 100 B, of the
        // small.
        assert!((summary.bytes_share_over_p90 - 505.0 / 595.0).abs() < 1e-9, "{summary:?}");
        assert!((summary.bytes_share_over_p99 - 100.0 / 595.0).abs() < 1e-9, "{summary:?}");
        let variance = 0.95 * 495.0_f64.powi(2) + 0.05 * 9_405.0_f64.powi(2);
        assert!((summary.variation - variance.sqrt() / 595.0).abs() < 1e-9, "{summary:?}");
    }
}
