//! When ends of ports come free, the earliest first.

use ethermem_units::Ps;

/// A time and an end, in one word: an end is a port, plus the number of ports for a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Release(u64);

impl Release {
    const END_BITS: u32 = 10;

    #[inline]
    pub(super) fn new(at: Ps, end: u16) -> Release {
        // 54 bits of picoseconds are five hours.
        assert!(at.0 >> (u64::BITS - Release::END_BITS) == 0, "a run of over five hours");
        Release(at.0 << Release::END_BITS | u64::from(end))
    }

    #[inline]
    pub(super) fn at(self) -> Ps {
        Ps(self.0 >> Release::END_BITS)
    }

    #[inline]
    pub(super) fn end(self) -> u16 {
        self.0 as u16 & ((1 << Release::END_BITS) - 1)
    }
}

/// A sorted array, at most one release an end. What is added mostly comes last or nearly so, as
/// chunks are of one length: that is cheaper than a heap.
#[derive(Clone, Debug)]
pub(super) struct Releases {
    sorted: Vec<Release>,
    /// Those before it were taken.
    first: usize,
    ends: usize,
}

impl Releases {
    pub(super) fn new(ends: usize) -> Releases {
        Releases { sorted: Vec::with_capacity(2 * ends), first: 0, ends }
    }

    #[inline]
    pub(super) fn first(&self) -> Option<Release> {
        self.sorted.get(self.first).copied()
    }

    /// Takes the first if it is due.
    #[inline]
    pub(super) fn pop_until(&mut self, now: Ps) -> Option<Release> {
        let first = self.first().filter(|release| release.at() <= now)?;
        self.first += 1;
        Some(first)
    }

    #[inline]
    pub(super) fn push(&mut self, release: Release) {
        if self.sorted.len() == 2 * self.ends {
            self.sorted.drain(..self.first);
            self.first = 0;
        }
        let later = self.sorted[self.first..].iter().rev().take_while(|&&at| at > release).count();
        self.sorted.insert(self.sorted.len() - later, release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_come_by_time_then_by_end_and_only_when_due() {
        let mut releases = Releases::new(3);
        let mut taken = Vec::new();
        for round in 0..20 {
            for (offset, end) in [(30, 2), (10, 1), (10, 0)] {
                releases.push(Release::new(Ps(100 * round + offset), end));
            }
            assert_eq!(releases.pop_until(Ps(100 * round + 9)), None);
            while let Some(release) = releases.pop_until(Ps(100 * round + 30)) {
                taken.push((release.at().0 - 100 * round, release.end()));
            }
            assert_eq!(releases.first(), None);
        }
        assert_eq!(taken, [(10, 0), (10, 1), (30, 2)].repeat(20));
        assert_eq!(releases.sorted.capacity(), 6);
    }
}
