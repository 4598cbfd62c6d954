//! The end of a run's warm-up by MSER-5.
//!
//! White, Cobb and Spratt, "A comparison of five steady-state truncation heuristics for
//! simulation", Winter Simulation Conference, 2000: of all ways to cut the beginning off, take the
//! one that leaves the mean the least standard error, on means of five messages.

/// Number of messages of a group.
const GROUP: u64 = 5;
/// Maximum number of groups; a longer run has groups of 10, 20, ... messages.
const GROUPS_MAX: u64 = 8_192;

/// Sums of the messages of each group, in the order of arrival.
#[derive(Clone, Debug)]
pub(super) struct Groups {
    group: u64,
    of: Vec<(f64, u32)>,
}

impl Groups {
    /// Empty groups for this many messages.
    pub(super) fn new(messages: u64) -> Groups {
        let mut group = GROUP;
        while messages / group > GROUPS_MAX {
            group *= 2;
        }
        Groups { group, of: vec![(0.0, 0); (messages / group) as usize] }
    }

    /// Records a message by its index. An incomplete last group is left out.
    #[inline]
    pub(super) fn record(&mut self, index: u64, value: f64) {
        if let Some((sum, messages)) = self.of.get_mut((index / self.group) as usize) {
            *sum += value;
            *messages += 1;
        }
    }

    /// Number of messages of the warm-up, and the mean of the messages after it; `None` if the
    /// warm-up does not end within the first half.
    pub(super) fn warmed_up(&self) -> Option<(u64, f64)> {
        let means = self.of.iter().filter(|group| group.1 > 0);
        let means: Vec<f64> = means.map(|&(sum, messages)| sum / f64::from(messages)).collect();
        let half = means.len() / 2;
        let (mut sum, mut squares) = (0.0, 0.0);
        let mut best = (f64::INFINITY, 0, 0.0);
        for at in (0..means.len()).rev() {
            sum += means[at];
            squares += means[at] * means[at];
            // A few groups at the end may be equal by chance.
            let left = (means.len() - at) as f64;
            if at > half {
                continue;
            }
            let statistic = (squares - sum * sum / left) / (left * left);
            // Of equal statistics, the earliest cut counts.
            if statistic <= best.0 {
                best = (statistic, at, sum / left);
            }
        }
        let (_, at, mean) = best;
        (half > 0 && at < half).then_some((at as u64 * self.group, mean))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(messages: u64, value: impl Fn(u64) -> f64) -> Groups {
        let mut groups = Groups::new(messages);
        (0..messages).for_each(|index| groups.record(index, value(index)));
        groups
    }

    /// Some noise that repeats.
    fn noise(index: u64) -> f64 {
        (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1_u64 << 24) as f64
    }

    #[test]
    fn a_beginning_that_differs_is_cut_off() {
        let groups = of(2_000, |index| noise(index) + if index < 300 { 5.0 } else { 0.0 });
        let (cut, mean) = groups.warmed_up().expect("it ends");
        assert!((290..=330).contains(&cut), "{cut}");
        assert!((mean - 0.5).abs() < 0.03, "{mean}");
    }

    #[test]
    fn a_steady_run_keeps_almost_all() {
        let (cut, _) = of(20_000, noise).warmed_up().expect("it ends");
        assert!(cut < 6_000, "{cut}");
    }

    #[test]
    fn what_grows_to_the_end_has_not_warmed_up() {
        assert_eq!(of(2_000, |index| index as f64).warmed_up(), None);
        assert_eq!(of(4, |_| 1.0).warmed_up(), None);
    }

    #[test]
    fn memory_is_bounded() {
        let groups = Groups::new(1_000_000);
        assert_eq!((groups.group, groups.of.len()), (160, 6_250));
    }
}
