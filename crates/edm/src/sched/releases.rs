//! The times at which ends of ports come free, the earliest first.

use ethermem_units::Ps;

/// A time and an end. An end is numbered by its port; for a destination, the number of ports is
/// added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release {
    at: Ps,
    end: u16,
}

impl Release {
    #[inline]
    pub(super) fn new(at: Ps, end: u16) -> Release {
        Release { at, end }
    }

    #[inline]
    pub(super) fn at(self) -> Ps {
        self.at
    }

    #[inline]
    pub(super) fn end(self) -> u16 {
        self.end
    }
}

/// A sorted array with at most one release per end. A new release mostly comes last or nearly so,
/// as chunks have equal lengths: few items are moved.
#[derive(Debug)]
pub(super) struct Releases {
    sorted: Vec<Release>,
    /// Index of the first release; earlier ones were taken.
    first: usize,
}

impl Releases {
    /// An empty array with room for `ends` releases.
    pub(super) fn new(ends: usize) -> Releases {
        Releases { sorted: Vec::with_capacity(2 * ends), first: 0 }
    }

    /// The time of the earliest release.
    #[inline]
    pub(super) fn first(&self) -> Option<Ps> {
        self.sorted.get(self.first).map(|release| release.at())
    }

    /// Takes the first release if it is due.
    #[inline]
    pub(super) fn pop_until(&mut self, now: Ps) -> Option<Release> {
        let first = *self.sorted.get(self.first)?;
        if first.at() > now {
            return None;
        }
        self.first += 1;
        Some(first)
    }

    #[inline]
    pub(super) fn push(&mut self, release: Release) {
        if self.sorted.len() == self.sorted.capacity() {
            self.sorted.drain(..self.first);
            self.first = 0;
        }
        let before = self.sorted[self.first..].partition_point(|&other| other < release);
        self.sorted.insert(self.first + before, release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn times_of_a_run_of_days_are_kept_to_the_picosecond() {
        let hours = |hours: u64| Ps(hours * 3_600_000_000_000_000);
        let mut releases = Releases::new(2);
        releases.push(Release::new(hours(100), 1_023));
        releases.push(Release::new(hours(40), 1));
        assert_eq!(releases.pop_until(Ps(hours(40).0 - 1)), None);
        assert_eq!(releases.pop_until(hours(40)), Some(Release::new(hours(40), 1)));
        assert_eq!(releases.first(), Some(hours(100)));
    }

    proptest! {
        /// The model is a sorted set, with steps of any length; also, nothing is allocated.
        #[test]
        fn releases_come_by_time_then_by_end_and_only_when_due(
            steps in prop::collection::vec((0..3_000u64, 0..20u16, 0..9_000u64), 1..200)
        ) {
            let mut releases = Releases::new(20);
            let reserved = releases.sorted.capacity();
            let mut model = std::collections::BTreeSet::new();
            let (mut now, mut due) = (Ps(0), Vec::new());
            for (time, end, offset) in steps {
                now += Ps(time);
                if !model.iter().any(|release: &Release| release.end() == end) {
                    // Some releases were due before now.
                    let release = Release::new(Ps((now.0 + offset).saturating_sub(500)), end);
                    releases.push(release);
                    model.insert(release);
                }
                prop_assert_eq!(releases.first(), model.first().map(|first| first.at()));
                if offset % 3 > 0 {
                    due.clear();
                    due.extend(std::iter::from_fn(|| releases.pop_until(now)));
                    let later = model.split_off(&Release::new(now + Ps(1), 0));
                    prop_assert_eq!(&due, &model.iter().copied().collect::<Vec<_>>());
                    model = later;
                }
            }
            prop_assert_eq!(releases.sorted.capacity(), reserved);
        }
    }
}
