//! Message sizes: fixed, or drawn from a cumulative distribution.

use ethermem_units::Bytes;

/// Maximum data bytes of one message of any workload; a fabric may allow fewer.
pub const MESSAGE_BYTES_MAX: u64 = 1 << 30;

/// Maximum number of sizes of a segment that [`SizeDistribution::expectation`] visits one by one. A
/// longer segment is sampled at as many evenly spaced sizes.
const EXPECTATION_SIZES_MAX: u64 = 16_384;

/// Smallest share of messages that is not taken for a rounding error.
pub(crate) const SHARE_MIN: f64 = 1e-12;

/// A distribution of message sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct SizeDistribution {
    segments: Vec<Segment>,
    /// `ends[i]` is the first draw past segment `i`, with the unit interval scaled to 2^64.
    ends: Vec<u64>,
    /// The number of sizes of segment `i` divided by the number of its draws.
    sizes_per_draw: Vec<f64>,
}

/// The whole sizes above `low` up to `high`, equally likely; a single size if `low + 1 == high`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Segment {
    low: u64,
    high: u64,
    probability: f64,
}

/// An invalid point of a cumulative distribution: what was found and what it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointError {
    /// Index of the point, from 0.
    pub index: usize,
    /// The error of the point.
    pub problem: String,
}

impl SizeDistribution {
    /// A distribution in which every message moves `bytes`.
    ///
    /// # Panics
    /// If `bytes` is 0 or over [`MESSAGE_BYTES_MAX`].
    #[must_use]
    pub fn fixed(bytes: Bytes) -> SizeDistribution {
        SizeDistribution::from_points(&[(bytes.0, 1.0)]).expect("1 B to 1 GiB")
    }

    /// The distribution with P(size <= s) = F(s) at every whole s. F is linear between `points`
    /// (size, cumulative probability). A size with two probabilities has their difference to
    /// itself; a probability with two sizes leaves a gap between them.
    ///
    /// # Errors
    /// [`PointError`] for a size out of range, an invalid probability, a point below the one
    /// before, and a last probability other than 1.
    pub fn from_points(points: &[(u64, f64)]) -> Result<SizeDistribution, PointError> {
        let mut segments: Vec<Segment> = Vec::new();
        let (mut size, mut cumulative) = (0, 0.0);
        for (index, &(next_size, next_cumulative)) in points.iter().enumerate() {
            check_point(index, (size, cumulative), (next_size, next_cumulative))?;
            let probability = next_cumulative - cumulative;
            // The probability at or below the first size belongs to that size.
            let low = if index == 0 || next_size == size { next_size - 1 } else { size };
            match segments.last_mut() {
                Some(last) if last.high == next_size && last.low == low => {
                    last.probability += probability;
                }
                _ if probability > 0.0 => {
                    segments.push(Segment { low, high: next_size, probability });
                }
                _ => {}
            }
            (size, cumulative) = (next_size, next_cumulative);
        }
        if (cumulative - 1.0).abs() > 1e-6 {
            let index = points.len().saturating_sub(1);
            let problem = format!("the last probability is {cumulative}: must be 1");
            return Err(PointError { index, problem });
        }
        Ok(SizeDistribution::of_segments(segments))
    }

    fn of_segments(segments: Vec<Segment>) -> SizeDistribution {
        let ends = ends(&segments);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let sizes_per_draw = segments
            .iter()
            .zip(starts.zip(&ends))
            .map(|(segment, (start, end))| {
                (segment.high - segment.low) as f64 / (end - start) as f64
            })
            .collect();
        SizeDistribution { segments, ends, sizes_per_draw }
    }

    /// The distribution of which a `share`, 0 to 1, has `bytes`, and the rest the sizes of this
    /// one.
    ///
    /// # Panics
    /// If `bytes` is 0 or over [`MESSAGE_BYTES_MAX`].
    #[must_use]
    pub fn mixed_with(&self, share: f64, bytes: Bytes) -> SizeDistribution {
        // Below this a share is what rounding has left of none.
        if share <= SHARE_MIN {
            return self.clone();
        }
        let one = SizeDistribution::fixed(bytes);
        if share >= 1.0 - SHARE_MIN {
            return one;
        }
        // Where the one size lies within a segment, that is cut, so that sizes stay in order.
        let pieces = self.segments.iter().flat_map(|&Segment { low, high, probability }| {
            let cuts = [bytes.0 - 1, bytes.0].map(|cut| cut.clamp(low, high));
            let each = probability * (1.0 - share) / (high - low) as f64;
            let piece = move |(low, high): (u64, u64)| {
                let probability = each * (high - low) as f64;
                Segment { low, high, probability }
            };
            [(low, cuts[0]), (cuts[0], cuts[1]), (cuts[1], high)].map(piece)
        });
        let mut segments: Vec<Segment> = pieces.filter(|piece| piece.low < piece.high).collect();
        let at = segments.partition_point(|segment| segment.high < bytes.0);
        match segments.get_mut(at) {
            Some(same) if same.high == bytes.0 => same.probability += share,
            _ => segments.insert(at, Segment { probability: share, ..one.segments[0] }),
        }
        SizeDistribution::of_segments(segments)
    }

    /// The size for a draw that is uniform over all `u64`; sizes never decrease as draws grow.
    #[inline]
    #[must_use]
    pub fn sample(&self, draw: u64) -> Bytes {
        // Only the draw u64::MAX can reach the last end.
        let index = self.ends.partition_point(|&end| end <= draw).min(self.segments.len() - 1);
        let Segment { low, high, .. } = self.segments[index];
        let width = high - low;
        if width == 1 {
            return Bytes(high);
        }
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        let step = (draw - start) as f64 * self.sizes_per_draw[index];
        Bytes(low + 1 + (step as u64).min(width - 1))
    }

    /// The least size such that a share of at least `probability` of the messages is at or below
    /// it.
    #[must_use]
    pub fn quantile(&self, probability: f64) -> Bytes {
        let mut rest = probability;
        for &Segment { low, high, probability } in &self.segments {
            // Steps of sums of decimal probabilities can be off by a last bit.
            let steps = ((rest / probability) * (high - low) as f64 - 1e-6).ceil();
            if steps <= (high - low) as f64 {
                return Bytes(low + (steps as u64).max(1));
            }
            rest -= probability;
        }
        let last = self.segments.last().expect("probabilities of no segment do not sum to 1");
        Bytes(last.high)
    }

    /// Mean bytes of a message.
    #[must_use]
    pub fn mean_bytes(&self) -> f64 {
        // The mean of the whole numbers low + 1 to high.
        let mean = |s: &Segment| (s.low + 1 + s.high) as f64 / 2.0;
        self.segments.iter().map(|s| s.probability * mean(s)).sum()
    }

    /// The only size, if there is just one.
    #[must_use]
    pub fn fixed_bytes(&self) -> Option<Bytes> {
        match self.segments[..] {
            [Segment { low, high, .. }] if low + 1 == high => Some(Bytes(high)),
            _ => None,
        }
    }

    /// The mean of `value` over the distribution. It is exact for segments of up to 16,384 sizes.
    /// Longer segments use an evenly spaced sample of that number, which is off by at most half a
    /// byte for linear functions.
    pub fn expectation<const N: usize>(&self, value: impl Fn(Bytes) -> [f64; N]) -> [f64; N] {
        let mut sums = [0.0; N];
        for segment in &self.segments {
            let width = segment.high - segment.low;
            let samples = width.min(EXPECTATION_SIZES_MAX);
            for sample in 0..samples {
                // The middle of the sample's stride keeps linear functions unbiased.
                let size = segment.low + 1 + (2 * sample + 1) * width / (2 * samples);
                for (sum, value) in sums.iter_mut().zip(value(Bytes(size))) {
                    *sum += value * segment.probability / samples as f64;
                }
            }
        }
        sums
    }
}

fn check_point(index: usize, before: (u64, f64), point: (u64, f64)) -> Result<(), PointError> {
    let (size, cumulative) = point;
    let fail = |problem| Err(PointError { index, problem });
    if !(1..=MESSAGE_BYTES_MAX).contains(&size) {
        return fail(format!("size_bytes = {size}: must be 1 to {MESSAGE_BYTES_MAX}"));
    }
    if !(0.0..=1.0).contains(&cumulative) {
        return fail(format!("cumulative_probability = {cumulative}: must be 0 to 1"));
    }
    if size < before.0 {
        return fail(format!("size_bytes = {size} after {}: must not be smaller", before.0));
    }
    if cumulative < before.1 {
        let before = before.1;
        return fail(format!(
            "cumulative_probability = {cumulative} after {before}: must not be smaller"
        ));
    }
    Ok(())
}

fn ends(segments: &[Segment]) -> Vec<u64> {
    let total: f64 = segments.iter().map(|s| s.probability).sum();
    let mut cumulative = 0.0;
    let mut ends: Vec<u64> = segments
        .iter()
        .map(|segment| {
            cumulative += segment.probability;
            (cumulative / total * 2f64.powi(64)) as u64
        })
        .collect();
    // Rounding must leave no draws past the last segment.
    if let Some(last) = ends.last_mut() {
        *last = u64::MAX;
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uniform_draws(count: u64) -> impl Iterator<Item = u64> {
        (0..count).map(move |i| (u128::from(2 * i + 1) * (1 << 63) / u128::from(count)) as u64)
    }

    #[test]
    fn a_share_of_one_size_is_mixed_in() {
        let sizes = SizeDistribution::from_points(&[(4, 0.25), (12, 0.75), (20, 1.0)]).unwrap();
        assert_eq!(sizes.mixed_with(0.0, Bytes(8)), sizes);
        assert_eq!(sizes.mixed_with(1.0, Bytes(8)), SizeDistribution::fixed(Bytes(8)));
        // Below, at the end of, within and above the segments.
        for bytes in [1, 3, 4, 5, 8, 12, 16, 20, 21] {
            let mixed = sizes.mixed_with(0.2, Bytes(bytes));
            let share = |of: &SizeDistribution, size: u64| {
                of.expectation(|bytes| [f64::from(bytes.0 == size)])[0]
            };
            for size in 1..=22 {
                let expected = 0.8 * share(&sizes, size) + if size == bytes { 0.2 } else { 0.0 };
                assert!((share(&mixed, size) - expected).abs() < 1e-12, "{bytes} {size}");
            }
            let mean = 0.8 * sizes.mean_bytes() + 0.2 * bytes as f64;
            assert!((mixed.mean_bytes() - mean).abs() < 1e-12, "{bytes}");
            let order: Vec<Bytes> = uniform_draws(500).map(|draw| mixed.sample(draw)).collect();
            assert!(order.is_sorted(), "{bytes}");
        }
        let quarter = SizeDistribution::fixed(Bytes(64)).mixed_with(0.25, Bytes(8));
        assert_eq!([0.1, 0.25, 0.26].map(|share| quarter.quantile(share).0), [8, 8, 64]);
    }

    #[test]
    fn the_share_at_or_below_each_size_is_the_cumulative_probability() {
        let sizes = SizeDistribution::from_points(&[(10, 0.25), (14, 0.75), (20, 0.75), (20, 1.0)])
            .expect("a distribution");
        let mut count = [0_u64; 21];
        for draw in uniform_draws(8_000) {
            count[sizes.sample(draw).0 as usize] += 1;
        }
        let mut expected = [0; 21];
        expected[10] = 2_000;
        expected[11..=14].fill(1_000);
        expected[20] = 2_000;
        assert_eq!(count, expected);
    }

    #[test]
    fn means_agree_with_the_samples() {
        let sizes = SizeDistribution::from_points(&[(5_840, 0.7), (93_440, 0.8), (1_775_360, 1.0)])
            .expect("a distribution");
        // 0.7 x 5840 + 0.1 x 49640.5 + 0.2 x 934400.5
        assert!((sizes.mean_bytes() - 195_932.15).abs() < 1e-6, "{}", sizes.mean_bytes());
        let [expected] = sizes.expectation(|bytes| [bytes.0 as f64]);
        assert!((expected - 195_932.15).abs() < 1.0, "{expected}");
        let count = 1 << 16;
        let sum: u64 = uniform_draws(count).map(|draw| sizes.sample(draw).0).sum();
        assert!((sum as f64 / count as f64 - 195_932.15).abs() < 1.0);
    }

    #[test]
    fn short_segments_are_integrated_exactly() {
        let sizes = SizeDistribution::from_points(&[(1, 0.0), (17, 1.0)]).expect("2 to 17");
        let [blocks] = sizes.expectation(|bytes| [bytes.to_blocks().0 as f64]);
        // 2..=8 take one block, 9..=16 two, 17 three.
        assert!((blocks - f64::from(7 + 8 * 2 + 3) / 16.0).abs() < 1e-12, "{blocks}");
    }

    #[test]
    fn quantiles_are_the_inverse_of_the_distribution() {
        let sizes = SizeDistribution::from_points(&[(100, 0.5), (200, 1.0)]).expect("half at 100");
        let quantiles =
            [(0.0, 100), (0.5, 100), (0.501, 101), (0.75, 150), (0.999, 200), (1.0, 200)];
        for (probability, size) in quantiles {
            assert_eq!(sizes.quantile(probability), Bytes(size), "{probability}");
        }
    }

    #[test]
    fn every_draw_of_a_fixed_size_is_that_size() {
        let sizes = SizeDistribution::fixed(Bytes(64));
        assert_eq!(sizes.fixed_bytes(), Some(Bytes(64)));
        for draw in [0, 1, u64::MAX / 2, u64::MAX] {
            assert_eq!(sizes.sample(draw), Bytes(64));
        }
    }

    #[test]
    fn points_that_make_no_distribution_are_refused() {
        type Case = (&'static [(u64, f64)], usize, &'static str);
        let cases: [Case; 8] = [
            (&[], 0, "the last probability is 0: must be 1"),
            (&[(0, 1.0)], 0, "size_bytes = 0: must be 1 to 1073741824"),
            (&[((1 << 30) + 1, 1.0)], 0, "size_bytes = 1073741825: must be 1 to 1073741824"),
            (&[(1, 1.5)], 0, "cumulative_probability = 1.5: must be 0 to 1"),
            (&[(1, f64::NAN)], 0, "cumulative_probability = NaN: must be 0 to 1"),
            (&[(9, 0.0), (8, 1.0)], 1, "size_bytes = 8 after 9: must not be smaller"),
            (
                &[(8, 0.5), (9, 0.4)],
                1,
                "cumulative_probability = 0.4 after 0.5: must not be smaller",
            ),
            (&[(8, 0.5), (9, 0.9)], 1, "the last probability is 0.9: must be 1"),
        ];
        for (points, index, problem) in cases {
            let error = SizeDistribution::from_points(points).expect_err(problem);
            assert_eq!(error, PointError { index, problem: problem.to_owned() });
        }
    }
}
