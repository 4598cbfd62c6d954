//! A set of addresses, as disjoint, non-adjacent ranges.

use std::collections::BTreeMap;
use std::ops::Range;

/// Ranges by start address.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `range` to the set.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        let Range { mut start, mut end } = range;
        let touching: Vec<(u64, u64)> = self
            .ends
            .range(..=end)
            .rev()
            .take_while(|(_, last)| **last >= start)
            .map(|(first, last)| (*first, *last))
            .collect();
        for (first, last) in touching {
            self.ends.remove(&first);
            (start, end) = (start.min(first), end.max(last));
        }
        self.ends.insert(start, end);
    }

    /// Removes `range` from the set.
    pub(crate) fn remove(&mut self, range: Range<u64>) {
        let Range { start, end } = range;
        let cut: Vec<(u64, u64)> = self
            .ends
            .range(..end)
            .rev()
            .take_while(|(_, last)| **last > start)
            .map(|(first, last)| (*first, *last))
            .collect();
        for (first, last) in cut {
            self.ends.remove(&first);
            if first < start {
                self.ends.insert(first, start);
            }
            if end < last {
                self.ends.insert(end, last);
            }
        }
    }

    /// End of the range that holds `address`.
    pub(crate) fn end_of(&self, address: u64) -> Option<u64> {
        let (_, end) = self.ends.range(..=address).next_back()?;
        (*end > address).then_some(*end)
    }

    /// True if all of `range` is in the set.
    pub(crate) fn contains(&self, range: &Range<u64>) -> bool {
        self.end_of(range.start).is_some_and(|end| end >= range.end)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.ends.iter().map(|(start, end)| *start..*end)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use rand_xoshiro::Xoshiro256PlusPlus;
    use rand_xoshiro::rand_core::{Rng, SeedableRng};

    use super::Ranges;

    #[test]
    fn it_is_a_set_of_addresses() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
        for step in 0..20_000 {
            let start = random.next_u64() % 64;
            let range = start..start + 1 + random.next_u64() % 9;
            if random.next_u64().is_multiple_of(2) {
                model.extend(range.clone());
                ranges.insert(range.clone());
            } else {
                model.retain(|address| !range.contains(address));
                ranges.remove(range.clone());
            }
            let flat: Vec<u64> = ranges.iter().flatten().collect();
            assert!(flat.iter().eq(model.iter()), "step {step}");
            let pairs: Vec<_> = ranges.iter().collect();
            assert!(pairs.windows(2).all(|pair| pair[0].end < pair[1].start), "step {step}");
            assert_eq!(ranges.contains(&range), range.clone().all(|at| model.contains(&at)));
        }
    }
}
