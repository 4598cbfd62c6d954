//! Levels of caches in front of a memory.
//!
//! A load or store that misses in every level fetches its line, which then is in all of them. A
//! store dirties the first level alone. A dirty line that has to go is written to the next level,
//! which allocates it if need be without fetching: it is whole. The levels are neither inclusive
//! nor exclusive: a line that leaves an outer level stays in the inner ones.

use std::collections::BTreeMap;

use crate::array::{Array, Geometry};
use crate::{LINE_BYTES, PAGE_LINES};

/// Number of levels.
pub const LEVELS: usize = 3;

/// Sizes of the levels, from the processor outwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels(pub [Geometry; LEVELS]);

impl Default for Levels {
    /// A core of Intel's Skylake Server and its slice of the last level: Intel 64 and IA-32
    /// Architectures Optimization Reference Manual, "Skylake Server Microarchitecture".
    fn default() -> Levels {
        let of = |kib: u64, ways| Geometry::new(kib << 10, ways).expect("within the limits");
        Levels([of(32, 8), of(1024, 16), of(1408, 11)])
    }
}

/// Kind of an access to the memory behind the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficKind {
    /// A line is fetched for a load, which waits for it.
    Load,
    /// A line is fetched for a store: the rest of the line is needed.
    Store,
    /// A dirty line is written back.
    WriteBack,
}

impl TrafficKind {
    /// Every kind.
    pub const ALL: [TrafficKind; 3] =
        [TrafficKind::Load, TrafficKind::Store, TrafficKind::WriteBack];

    /// Name in traces and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TrafficKind::Load => "load",
            TrafficKind::Store => "store",
            TrafficKind::WriteBack => "write_back",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn of_name(name: &[u8]) -> Option<TrafficKind> {
        TrafficKind::ALL.into_iter().find(|kind| kind.name().as_bytes() == name)
    }
}

/// An access to the memory behind the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Number of the line: its address divided by [`LINE_BYTES`].
    pub line: u64,
    /// Kind of the access.
    pub kind: TrafficKind,
}

/// What happened in the levels. Accesses are of lines: one that crosses a line counts twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Loads of lines.
    pub loads: u64,
    /// Stores to lines.
    pub stores: u64,
    /// Loads and stores that each level had, from the processor outwards.
    pub hits: [u64; LEVELS],
    /// Lines fetched for loads.
    pub load_misses: u64,
    /// Lines fetched for stores.
    pub store_misses: u64,
    /// Dirty lines written back to memory.
    pub write_backs: u64,
}

/// The levels, and what happened in them.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    levels: [Array; LEVELS],
    counts: Counts,
    /// Lines that were ever accessed: a mask of lines for each page.
    touched: BTreeMap<u64, u64>,
}

impl Hierarchy {
    /// Empty levels.
    #[must_use]
    pub fn new(levels: &Levels) -> Hierarchy {
        let levels = levels.0.map(Array::new);
        Hierarchy { levels, counts: Counts::default(), touched: BTreeMap::new() }
    }

    /// Loads from `bytes` from `address` on, or stores to them. `out` gets the accesses to memory:
    /// a fetch before the write-backs that make room for it.
    pub fn access(
        &mut self,
        address: u64,
        bytes: u64,
        is_store: bool,
        out: &mut impl FnMut(Traffic),
    ) {
        let last = address.saturating_add(bytes.saturating_sub(1)) / LINE_BYTES;
        for line in address / LINE_BYTES..=last {
            self.access_line(line, is_store, out);
        }
    }

    fn access_line(&mut self, line: u64, is_store: bool, out: &mut impl FnMut(Traffic)) {
        let counts = &mut self.counts;
        *(if is_store { &mut counts.stores } else { &mut counts.loads }) += 1;
        if self.levels[0].touch(line, is_store) {
            self.counts.hits[0] += 1;
            return;
        }
        // A line that was never accessed misses in the first level.
        *self.touched.entry(line / PAGE_LINES).or_default() |= 1 << (line % PAGE_LINES);
        let found = (1..LEVELS).find(|&level| self.levels[level].touch(line, false));
        let missing = found.unwrap_or(LEVELS);
        match found {
            Some(level) => self.counts.hits[level] += 1,
            None if is_store => {
                self.counts.store_misses += 1;
                out(Traffic { line, kind: TrafficKind::Store });
            }
            None => {
                self.counts.load_misses += 1;
                out(Traffic { line, kind: TrafficKind::Load });
            }
        }
        for level in (0..missing).rev() {
            self.fill(level, line, level == 0 && is_store, out);
        }
    }

    fn fill(&mut self, level: usize, line: u64, is_dirty: bool, out: &mut impl FnMut(Traffic)) {
        let Some(victim) = self.levels[level].fill(line, is_dirty) else { return };
        self.write_back(level + 1, victim, out);
    }

    /// Writes a dirty line to a level, or to the memory behind the last.
    fn write_back(&mut self, level: usize, line: u64, out: &mut impl FnMut(Traffic)) {
        if level == LEVELS {
            self.counts.write_backs += 1;
            out(Traffic { line, kind: TrafficKind::WriteBack });
        } else if !self.levels[level].touch(line, true) {
            self.fill(level, line, true, out);
        }
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Number of different lines that were accessed.
    #[must_use]
    pub fn touched_lines(&self) -> u64 {
        self.touched.values().map(|mask| u64::from(mask.count_ones())).sum()
    }

    /// Number of different pages that were accessed.
    #[must_use]
    pub fn touched_pages(&self) -> u64 {
        self.touched.len() as u64
    }

    /// Number of different lines that are dirty in some level: write-backs that are still to come.
    #[must_use]
    pub fn dirty_lines(&self) -> u64 {
        let [first, second, third] = &self.levels;
        let mut lines: Vec<u64> =
            first.dirty().chain(second.dirty()).chain(third.dirty()).collect();
        lines.sort_unstable();
        lines.dedup();
        lines.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Hierarchy {
        // One set each: 1, 2 and 4 lines.
        let of = |lines: u64| Geometry::new(lines * LINE_BYTES, lines).unwrap();
        Hierarchy::new(&Levels([of(1), of(2), of(4)]))
    }

    fn traffic(
        hierarchy: &mut Hierarchy,
        address: u64,
        bytes: u64,
        is_store: bool,
    ) -> Vec<Traffic> {
        let mut all = Vec::new();
        hierarchy.access(address, bytes, is_store, &mut |traffic| all.push(traffic));
        all
    }

    #[test]
    fn an_access_that_crosses_a_line_is_two() {
        let mut hierarchy = small();
        let fetch = |line| Traffic { line, kind: TrafficKind::Load };
        assert_eq!(traffic(&mut hierarchy, 60, 8, false), [fetch(0), fetch(1)]);
        assert_eq!(traffic(&mut hierarchy, 64, 64, false), []);
        assert_eq!((hierarchy.counts().loads, hierarchy.touched_lines()), (3, 2));
        assert_eq!(hierarchy.touched_pages(), 1);
        // The last byte of the address space, and an access past it.
        assert_eq!(traffic(&mut hierarchy, u64::MAX, 8, false), [fetch(u64::MAX / 64)]);
    }

    #[test]
    fn a_dirty_line_reaches_memory_once_it_has_left_every_level() {
        let mut hierarchy = small();
        let store = Traffic { line: 0, kind: TrafficKind::Store };
        assert_eq!(traffic(&mut hierarchy, 8, 8, true), [store]);
        assert_eq!(hierarchy.dirty_lines(), 1);
        // Line 0 is written to the second level by line 1. Line 2 leaves it there, and line 3
        // pushes it to the last level, where it is used anew. Lines 4 to 7 push it out.
        let mut last = Vec::new();
        for line in 1..=7 {
            last = traffic(&mut hierarchy, line * 64, 8, false);
            if line < 7 {
                assert_eq!(last, [Traffic { line, kind: TrafficKind::Load }]);
            }
        }
        let back = Traffic { line: 0, kind: TrafficKind::WriteBack };
        assert_eq!(last, [Traffic { line: 7, kind: TrafficKind::Load }, back]);
        assert_eq!(hierarchy.dirty_lines(), 0);
        let counts = hierarchy.counts();
        assert_eq!((counts.load_misses, counts.store_misses, counts.write_backs), (7, 1, 1));
    }

    #[test]
    fn the_defaults_are_a_core_of_a_server() {
        let shown = Levels::default().0.map(|level| level.to_string());
        assert_eq!(shown, ["32KiB/8", "1024KiB/16", "1408KiB/11"]);
    }
}
