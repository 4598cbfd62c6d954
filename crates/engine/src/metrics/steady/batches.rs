//! Intervals from the batches of one run.
//!
//! Messages of a steady run are correlated, so their own variance says too little. Means of long
//! batches are nearly independent (Schmeiser, "Batch size effects in the analysis of simulation
//! output", Operations Research 30, 1982: ten to thirty batches). A percentile has its interval by
//! sectioning (Asmussen and Glynn, "Stochastic Simulation", 2007, III.5): the percentiles of
//! batches around that of all.

use hdrhistogram::Histogram;

use crate::metrics::kind::nearest_rank;

/// Batches of equally many messages.
pub(super) const BATCHES: usize = 20;
/// Student's t at 0.975 for one degree of freedom less than there are batches.
const T_975: f64 = 2.093_024;
/// The normal quantile at 0.99.
const Z_99: f64 = 2.326_348;
/// A percentile of a batch is at most 1 % above the exact one.
const SIGNIFICANT_DIGITS: u8 = 2;
/// Values are counted in steps of this part of their unit.
const STEPS: f64 = 1_000.0;

/// Mean and distribution of one number, by batch.
#[derive(Clone, Debug)]
pub(super) struct Batches {
    of: Vec<Batch>,
}

#[derive(Clone, Debug)]
struct Batch {
    messages: u64,
    sum: f64,
    steps: Histogram<u32>,
}

/// A number of a run with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Interval {
    pub(super) value: f64,
    /// Half the width of the 95 % confidence interval.
    pub(super) half_width: f64,
}

impl Interval {
    /// The half-width as a share of the value.
    pub(super) fn relative(self) -> f64 {
        self.half_width / self.value
    }
}

impl Batches {
    pub(super) fn new() -> Batches {
        let batch = || Batch {
            messages: 0,
            sum: 0.0,
            // The histogram grows to the largest recorded value.
            steps: Histogram::new(SIGNIFICANT_DIGITS).expect("at most 5 digits"),
        };
        Batches { of: (0..BATCHES).map(|_| batch()).collect() }
    }

    #[inline]
    pub(super) fn record(&mut self, batch: usize, value: f64) {
        let batch = &mut self.of[batch];
        batch.messages += 1;
        batch.sum += value;
        batch.steps.record((value * STEPS) as u64).expect("the histogram grows");
    }

    /// The means of the batches; `None` where one of them is empty.
    fn means(&self) -> Option<Vec<f64>> {
        let mean = |batch: &Batch| (batch.messages > 0).then(|| batch.sum / batch.messages as f64);
        self.of.iter().map(mean).collect()
    }

    /// The mean.
    pub(super) fn mean(&self) -> Option<Interval> {
        let means = self.means()?;
        let value = means.iter().sum::<f64>() / BATCHES as f64;
        Some(interval(value, &means))
    }

    /// The value that so many in a thousand do not exceed.
    pub(super) fn percentile(&self, per_mille: u64) -> Option<Interval> {
        self.means()?;
        let of = |steps: &Histogram<u32>| nearest_rank(steps, per_mille) as f64 / STEPS;
        let mut all = self.of[0].steps.clone();
        for batch in &self.of[1..] {
            all.add(&batch.steps).expect("the histogram grows");
        }
        let batches: Vec<f64> = self.of.iter().map(|batch| of(&batch.steps)).collect();
        Some(interval(of(&all), &batches))
    }

    /// Correlation between the means of successive batches by von Neumann's ratio, 0 for
    /// independent batches (von Neumann, "Distribution of the ratio of the mean square successive
    /// difference to the variance", 1941).
    pub(super) fn correlation(&self) -> Option<f64> {
        let means = self.means()?;
        let mean = means.iter().sum::<f64>() / BATCHES as f64;
        let around: f64 = means.iter().map(|value| (value - mean) * (value - mean)).sum();
        let steps: f64 = means.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        Some(if around > 0.0 { 1.0 - steps / (2.0 * around) } else { 0.0 })
    }

    /// The correlation that independent batches exceed in one run of a hundred.
    pub(super) fn correlation_allowed() -> f64 {
        let batches = BATCHES as f64;
        Z_99 * ((batches - 2.0) / (batches * batches - 1.0)).sqrt()
    }
}

/// The interval of `value` from the values of independent batches.
fn interval(value: f64, batches: &[f64]) -> Interval {
    let number = batches.len() as f64;
    let squares: f64 = batches.iter().map(|batch| (batch - value) * (batch - value)).sum();
    Interval { value, half_width: T_975 * (squares / (number - 1.0) / number).sqrt() }
}

#[cfg(test)]
mod tests {
    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::*;

    fn exponential(rng: &mut Xoshiro256PlusPlus) -> f64 {
        -libm::log(((rng.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64)
    }

    #[test]
    fn twenty_batches_by_hand() {
        let mut batches = Batches::new();
        for batch in 0..BATCHES {
            // Means of 9 and 11 in turn: around 10, squares of 1 each.
            for _ in 0..3 {
                batches.record(batch, if batch % 2 == 0 { 9.0 } else { 11.0 });
            }
        }
        let mean = batches.mean().expect("none is empty");
        assert_eq!(mean.value, 10.0);
        // 2.093 * sqrt(20 / 19 / 20).
        assert!((mean.half_width - 2.093_024 / 19_f64.sqrt()).abs() < 1e-12, "{mean:?}");
        // 19 steps of 2, squared, over twice 20.
        assert!((batches.correlation().expect("known") - (1.0 - 76.0 / 40.0)).abs() < 1e-12);
    }

    #[test]
    fn an_empty_batch_says_nothing() {
        let mut batches = Batches::new();
        batches.record(0, 1.0);
        assert_eq!((batches.mean(), batches.percentile(990)), (None, None));
    }

    /// Coverage of the intervals of 500 samples of exponentials, whose mean is 1 and whose 99th
    /// percentile is `ln 100`.
    #[test]
    fn nineteen_of_twenty_intervals_cover_the_truth() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let samples = 500;
        let (mut means, mut percentiles, mut correlated) = (0, 0, 0);
        for _ in 0..samples {
            let mut batches = Batches::new();
            for batch in 0..BATCHES {
                (0..400).for_each(|_| batches.record(batch, exponential(&mut rng)));
            }
            let covers = |interval: Option<Interval>, truth: f64| {
                let interval = interval.expect("none is empty");
                u32::from((interval.value - truth).abs() <= interval.half_width)
            };
            means += covers(batches.mean(), 1.0);
            percentiles += covers(batches.percentile(990), 100_f64.ln());
            let correlation = batches.correlation().expect("known");
            correlated += u32::from(correlation > Batches::correlation_allowed());
        }
        // 475 +- 4.9 and 5 +- 2.2; percentiles of 400 scatter more to one side.
        assert!((455..=495).contains(&means), "{means} means of {samples}");
        assert!((440..=495).contains(&percentiles), "{percentiles} percentiles of {samples}");
        assert!(correlated <= 13, "{correlated} of {samples}");
    }

    #[test]
    fn batches_that_drift_are_correlated() {
        let mut batches = Batches::new();
        (0..BATCHES).for_each(|batch| batches.record(batch, 1.0 + batch as f64));
        assert!(batches.correlation().expect("known") > Batches::correlation_allowed());
    }
}
