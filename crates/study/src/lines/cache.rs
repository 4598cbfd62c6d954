//! The cache at the compute node, as the replay knows it: tags, lines on their way, prefetches.

use std::collections::{BTreeMap, BTreeSet};

use ethermem_lines::prefetch::Found;
use ethermem_lines::{Array, Geometry, PAGE_LINES};
use ethermem_units::{Bytes, Ps};

use super::WAYS;

/// A fetch of a line.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coming {
    /// Name of its message.
    pub(super) name: u64,
    /// When it ends, once that is known.
    pub(super) ends: Option<Ps>,
}

/// The state of the cache. In front of a fabric that has caches, it is a copy of their tags, which
/// tells the prefetcher what not to fetch.
pub(super) struct Tags {
    array: Array,
    /// Lines that are fetched, or were until a time that is still to come.
    coming: BTreeMap<u64, Coming>,
    /// Lines that were prefetched and not used since.
    unused: BTreeSet<u64>,
}

impl Tags {
    /// An empty cache of this size.
    pub(super) fn new(bytes: Bytes) -> Result<Tags, String> {
        let array = Array::new(Geometry::new(bytes.0, WAYS)?);
        Ok(Tags { array, coming: BTreeMap::new(), unused: BTreeSet::new() })
    }

    /// Looks for a line that the processor asks for. Also returns the dirty line that has to go if
    /// the line was not there; the line is there from now on.
    pub(super) fn access(&mut self, line: u64) -> (Found, Option<u64>) {
        let was_prefetched = self.unused.remove(&line);
        if self.array.touch(line, false) {
            return (if was_prefetched { Found::Prefetched } else { Found::Hit }, None);
        }
        (Found::Miss, self.array.fill(line, false))
    }

    /// Puts a line that is prefetched into the cache. `None` if the line is there already; else the
    /// dirty line that has to go, if one has to.
    pub(super) fn prefetch(&mut self, line: u64) -> Option<Option<u64>> {
        if self.array.has(line) {
            return None;
        }
        self.unused.insert(line);
        Some(self.array.fill(line, false))
    }

    /// Takes a dirty line of the processor. True if it was there; also the dirty line that has to
    /// go.
    pub(super) fn write(&mut self, line: u64) -> (bool, Option<u64>) {
        self.unused.remove(&line);
        if self.array.touch(line, true) {
            return (true, None);
        }
        (false, self.array.fill(line, true))
    }

    /// A fetch of the line begins.
    pub(super) fn begins(&mut self, line: u64, name: u64) {
        self.coming.insert(line, Coming { name, ends: None });
    }

    /// The fetch of this name has ended.
    pub(super) fn ended(&mut self, line: u64, name: u64, at: Ps) {
        if let Some(coming) = self.coming.get_mut(&line).filter(|coming| coming.name == name) {
            coming.ends = Some(at);
        }
    }

    /// The fetch of a line that has not arrived by `now`.
    pub(super) fn coming(&mut self, line: u64, now: Ps) -> Option<Coming> {
        let coming = *self.coming.get(&line)?;
        if coming.ends.is_some_and(|ends| ends <= now) {
            self.coming.remove(&line);
            return None;
        }
        Some(coming)
    }
}

/// Where pages of the program are in the memory node: each gets the next free page there at its
/// first access, as systems allocate pages.
#[derive(Default)]
pub(super) struct Pages(BTreeMap<u64, u64>);

impl Pages {
    /// The line of the memory node, by the line of the program's virtual memory.
    pub(super) fn place(&mut self, line: u64) -> u64 {
        let next = self.0.len() as u64;
        let page = *self.0.entry(line / PAGE_LINES).or_insert(next);
        page * PAGE_LINES + line % PAGE_LINES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_placed_in_the_order_of_their_first_access() {
        let mut pages = Pages::default();
        let lines = [1000 * PAGE_LINES + 3, 7, 1000 * PAGE_LINES, 63, 64].map(|at| pages.place(at));
        assert_eq!(lines, [3, 64 + 7, 0, 64 + 63, 128]);
    }

    #[test]
    fn a_prefetched_line_is_told_from_others_once() {
        let mut tags = Tags::new(Bytes(256)).unwrap();
        assert_eq!(tags.prefetch(5), Some(None));
        assert_eq!(tags.prefetch(5), None);
        assert_eq!(tags.access(5), (Found::Prefetched, None));
        assert_eq!(tags.access(5), (Found::Hit, None));
        assert_eq!(tags.write(6), (false, None));
        for line in 7..9 {
            assert_eq!(tags.access(line), (Found::Miss, None));
        }
        // One set of four: 5 is clean and goes; then 6, which is dirty.
        assert_eq!(tags.access(9), (Found::Miss, None));
        assert_eq!(tags.prefetch(10), Some(Some(6)));
        tags.begins(10, 1);
        assert!(tags.coming(10, Ps(5)).is_some_and(|coming| coming.ends.is_none()));
        tags.ended(10, 2, Ps(7));
        tags.ended(10, 1, Ps(9));
        assert_eq!(tags.coming(10, Ps(8)).and_then(|coming| coming.ends), Some(Ps(9)));
        assert!(tags.coming(10, Ps(9)).is_none());
    }
}
