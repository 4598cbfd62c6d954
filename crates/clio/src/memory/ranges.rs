//! What a process has allocated: a tree of ranges of virtual pages.

use std::collections::BTreeMap;

use ethermem_wire::clio::Permissions;

use super::page::SpaceId;

/// Pages that were given out as one.
#[derive(Clone, Debug)]
pub(crate) struct Range {
    pub(crate) pages: u64,
    pub(crate) permissions: Permissions,
    pub(crate) kind: Kind,
}

/// Whose the pages are.
#[derive(Clone, Debug)]
pub(crate) enum Kind {
    /// The process's own. Others that use them: their space, and their first page there.
    Own { shares: Vec<(SpaceId, u64)> },
    /// Another's, by its space and first page there.
    Shared { owner: SpaceId, first: u64 },
}

/// By their first page; between two there is at least one page of none.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    by_first: BTreeMap<u64, Range>,
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
        let before = self.by_first.insert(first, range);
        debug_assert!(before.is_none(), "two ranges begin with page {first}");
    }

    pub(crate) fn remove(&mut self, first: u64) -> Option<Range> {
        self.by_first.remove(&first)
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.by_first.first_key_value().map(|(&first, _)| first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_first.is_empty()
    }

    /// Where from `from` on `pages` fit before `end`, with a page of none on both sides.
    pub(crate) fn gap(&self, mut from: u64, pages: u64, end: u64) -> Option<u64> {
        let before = self.by_first.range(..from).next_back();
        if let Some((&first, range)) = before {
            from = from.max(first + range.pages + 1);
        }
        for (&first, range) in self.by_first.range(from.saturating_sub(1)..) {
            if from.checked_add(pages)? < first {
                break;
            }
            from = from.max(first + range.pages + 1);
        }
        (from.checked_add(pages)? < end).then_some(from)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn own(pages: u64) -> Range {
        let kind = Kind::Own { shares: Vec::new() };
        Range { pages, permissions: Permissions::READ, kind }
    }

    proptest! {
        /// The first place at which the pages and one on each side belong to nobody.
        #[test]
        fn the_first_gap_is_found(
            wanted in proptest::collection::vec((0..60_u64, 1..6_u64), 0..12),
            from in 1..64_u64,
            pages in 1..8_u64,
        ) {
            const END: u64 = 64;
            let mut ranges = Ranges::default();
            for (from, pages) in wanted {
                if let Some(first) = ranges.gap(from, pages, END) {
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
            prop_assert_eq!(ranges.gap(from, pages, END), (from..END).find(|&at| fits(at)));
        }
    }
}
