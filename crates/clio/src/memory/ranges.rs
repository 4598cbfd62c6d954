//! The allocations of a process: a tree of ranges of virtual pages.

use std::collections::BTreeMap;

use ethermem_wire::clio::Permissions;

use super::page::SpaceId;

/// Pages that were allocated together.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) pages: u64,
    /// Those of its own pages that a task has given back already.
    given_back: u64,
    pub(crate) permissions: Permissions,
    pub(crate) kind: Kind,
    /// True while a task enters, removes or shares its pages. No other task may begin on it.
    pub(crate) is_held: bool,
}

impl Range {
    /// A range of the process's own, held by a task that enters its pages.
    pub(crate) fn of(pages: u64, permissions: Permissions, kind: Kind) -> Range {
        Range { pages, given_back: 0, permissions, kind, is_held: true }
    }

    pub(crate) fn own_pages(&self) -> u64 {
        if matches!(self.kind, Kind::Own { .. }) { self.pages - self.given_back } else { 0 }
    }
}

/// The result of a search for a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gap {
    /// The pages fit from this page on.
    At(u64),
    /// There is no gap before this page, where the search stopped.
    Beyond(u64),
    /// There is no gap before the end.
    None,
}

/// The owner of a range's pages.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The process itself. `shares` has the space and first page of each process that shares them.
    Own { shares: Vec<(SpaceId, u64)> },
    /// Another process, by its space and first page there.
    Shared { owner: SpaceId, first: u64 },
}

/// The ranges by their first page; between two ranges there is at least one unmapped page.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    by_first: BTreeMap<u64, Range>,
    /// Number of pages that the process owns, of all ranges.
    own_pages: u64,
}

impl Ranges {
    /// The range that begins with a page.
    pub(crate) fn get(&self, first: u64) -> Option<&Range> {
        self.by_first.get(&first)
    }

    pub(crate) fn get_mut(&mut self, first: u64) -> Option<&mut Range> {
        self.by_first.get_mut(&first)
    }

    pub(crate) fn insert(&mut self, first: u64, range: Range) {
        self.own_pages += range.own_pages();
        let before = self.by_first.insert(first, range);
        debug_assert!(before.is_none(), "two ranges begin with page {first}");
    }

    pub(crate) fn remove(&mut self, first: u64) -> Option<Range> {
        let removed = self.by_first.remove(&first);
        self.own_pages -= removed.as_ref().map_or(0, Range::own_pages);
        removed
    }

    /// Records that a task has given back pages of a range that the process owns.
    pub(crate) fn give_back(&mut self, first: u64, pages: u64) {
        self.by_first.get_mut(&first).expect("a range begins there").given_back += pages;
        self.own_pages -= pages;
    }

    /// Number of pages of all ranges that the process owns, counted as they come and go.
    pub(crate) fn own_pages(&self) -> u64 {
        self.own_pages
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.by_first.first_key_value().map(|(&first, _)| first)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &Range)> {
        self.by_first.iter().map(|(&first, range)| (first, range))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    /// Holds the range that begins with a page for a task, unless another task holds it.
    pub(crate) fn hold(&mut self, first: u64) -> bool {
        let range = self.by_first.get_mut(&first).expect("a range begins there");
        !core::mem::replace(&mut range.is_held, true)
    }

    /// Ends a task's hold on a range that stays.
    pub(crate) fn let_go(&mut self, first: u64) {
        let range = self.by_first.get_mut(&first).expect("a range that is held is there");
        debug_assert!(range.is_held, "the range at page {first} is let go twice");
        range.is_held = false;
    }

    pub(crate) fn keep_share(&mut self, owned: u64, share: (SpaceId, u64)) {
        if let Some(Range { kind: Kind::Own { shares }, .. }) = self.get_mut(owned) {
            shares.push(share);
        }
    }

    pub(crate) fn forget_share(&mut self, owned: u64, share: (SpaceId, u64)) {
        if let Some(Range { kind: Kind::Own { shares }, .. }) = self.get_mut(owned) {
            shares.retain(|other| *other != share);
        }
    }

    /// Finds the first gap of `pages` between `from` and `end`, with an unmapped page on both
    /// sides. Passes at most `most` ranges.
    pub(crate) fn gap(&self, mut from: u64, pages: u64, end: u64, most: usize) -> Gap {
        let before = self.by_first.range(..from).next_back();
        if let Some((&first, range)) = before {
            from = from.max(first + range.pages + 1);
        }
        let behind = |from: u64| from.checked_add(pages).filter(|&behind| behind < end);
        for (at, (&first, range)) in self.by_first.range(from.saturating_sub(1)..).enumerate() {
            let Some(behind) = behind(from) else { return Gap::None };
            if behind < first {
                return Gap::At(from);
            }
            if at == most {
                return Gap::Beyond(from);
            }
            from = from.max(first + range.pages + 1);
        }
        if behind(from).is_some() { Gap::At(from) } else { Gap::None }
    }

    /// True if the pages fit exactly there.
    pub(crate) fn fit(&self, first: u64, pages: u64, end: u64) -> bool {
        // An overlapping range is the one before, or begins within the pages.
        self.gap(first, pages, end, 0) == Gap::At(first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own(pages: u64) -> Range {
        let kind = Kind::Own { shares: Vec::new() };
        Range::of(pages, Permissions::READ, kind)
    }

    proptest! {
        /// The model: the first place at which the pages and one on each side are unmapped.
        #[test]
        fn the_first_gap_is_found(
            wanted in proptest::collection::vec((0..60_u64, 1..6_u64), 0..12),
            from in 1..64_u64,
            pages in 1..8_u64,
        ) {
            const END: u64 = 64;
            let mut ranges = Ranges::default();
            for (from, pages) in wanted {
                if let Gap::At(first) = ranges.gap(from, pages, END, usize::MAX) {
                    ranges.insert(first, own(pages));
                }
            }
            let used = |page: u64| {
                let mut all = ranges.by_first.iter();
                all.any(|(&first, range)| (first..first + range.pages).contains(&page))
            };
            let fits = |at: u64| {
                at + pages < END && !(at.saturating_sub(1)..=at + pages).any(used)
            };
            let expected = (from..END).find(|&at| fits(at)).map_or(Gap::None, Gap::At);
            prop_assert_eq!(ranges.gap(from, pages, END, usize::MAX), expected);
            prop_assert_eq!(ranges.fit(from, pages, END), fits(from));
            // A search in pieces finds an equal gap.
            let (mut at, mut looks) = (from, 0);
            let found = loop {
                match ranges.gap(at, pages, END, 1) {
                    Gap::Beyond(next) => (at, looks) = (next, looks + 1),
                    found => break found,
                }
                prop_assert!(looks < 64, "each piece passes a range");
            };
            prop_assert_eq!(found, expected);
        }
    }
}
