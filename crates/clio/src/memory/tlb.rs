//! The TLB: the translations used last, in a table of fixed size.

use super::page::PageKey;
use super::table::Entry;

/// Number of entries of a set.
const WAYS: usize = 4;

/// Entries with their [`PageKey`], which is 0 for an empty one.
type Set = [(u64, Entry); WAYS];

/// Sets of four entries, most recently used first. The least recently used entry of a set is
/// evicted.
///
/// It holds only entries with a physical page, so a hit needs no check but the permissions.
pub(crate) struct Tlb {
    sets: Box<[Set]>,
    mask: u64,
}

impl Tlb {
    pub(crate) fn new(entries: u32) -> Tlb {
        let sets = entries as usize / WAYS;
        debug_assert!(sets.is_power_of_two());
        Tlb { sets: vec![[(0, Entry::FREE); WAYS]; sets].into_boxed_slice(), mask: sets as u64 - 1 }
    }

    /// The set of a page, spread by a multiplication (Knuth 6.4): the upper bits of the product
    /// depend on all bits of the page. Ranges leave a page free between them, so the page's own low
    /// bits would use half of the sets.
    fn set(&mut self, page: PageKey) -> &mut Set {
        let spread = page.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &mut self.sets[(spread & self.mask) as usize]
    }

    pub(crate) fn find(&mut self, page: PageKey) -> Option<Entry> {
        let set = self.set(page);
        let way = set.iter().position(|&(tag, _)| tag == page.bits())?;
        set[..=way].rotate_right(1);
        Some(set[0].1)
    }

    /// Adds a page that is not in the TLB.
    pub(crate) fn insert(&mut self, page: PageKey, entry: Entry) {
        let set = self.set(page);
        debug_assert!(set.iter().all(|&(tag, _)| tag != page.bits()), "{page:?} is there already");
        set.rotate_right(1);
        set[0] = (page.bits(), entry);
    }

    pub(crate) fn forget(&mut self, page: PageKey) {
        let set = self.set(page);
        if let Some(way) = set.iter().position(|&(tag, _)| tag == page.bits()) {
            set[way..].rotate_left(1);
            set[WAYS - 1] = (0, Entry::FREE);
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.sets)
    }
}

#[cfg(test)]
mod tests {
    use ethermem_wire::clio::Permissions;
    use proptest::prelude::*;

    use super::*;
    use crate::memory::SpaceId;

    fn key(page: u64) -> PageKey {
        PageKey::new(SpaceId(0), page)
    }

    fn entry(physical: u32) -> Entry {
        Entry::untouched(Permissions::READ).mapped(physical)
    }

    #[test]
    fn pages_with_gaps_between_use_all_sets() {
        const ENTRIES: u32 = 2048;
        const PAGES: u64 = 1500;
        let mut tlb = Tlb::new(ENTRIES);
        // One page of many processes, and many pages of one process, each beside an unmapped page.
        let many = |page| PageKey::new(SpaceId(page as u16), 2 * page);
        for keys in [(|page| key(2 * page)) as fn(u64) -> PageKey, many] {
            let mut hits = 0;
            for _ in 0..2 {
                hits = 0;
                for key in (0..PAGES).map(keys) {
                    match tlb.find(key) {
                        Some(_) => hits += 1,
                        None => tlb.insert(key, entry(1)),
                    }
                }
            }
            assert!(hits * 10 >= PAGES * 8, "{hits} of {PAGES}");
        }
    }

    proptest! {
        /// The model of a set is a list in the order of use, cut to its first four entries.
        #[test]
        fn the_least_recently_used_gives_way(
            steps in proptest::collection::vec((0..3_u8, 0..8_u64), 0..200),
        ) {
            let mut tlb = Tlb::new(4);
            let mut model: Vec<(u64, u32)> = Vec::new();
            for (at, (what, page)) in steps.into_iter().enumerate() {
                let known = model.iter().position(|&(known, _)| known == page);
                match (what, known) {
                    (0, _) => {
                        tlb.forget(key(page));
                        model.retain(|&(known, _)| known != page);
                    }
                    (_, Some(known)) => {
                        let used = model.remove(known);
                        model.insert(0, used);
                        prop_assert_eq!(tlb.find(key(page)), Some(entry(used.1)));
                    }
                    (_, None) => {
                        prop_assert_eq!(tlb.find(key(page)), None);
                        tlb.insert(key(page), entry(at as u32));
                        model.insert(0, (page, at as u32));
                        model.truncate(WAYS);
                    }
                }
            }
        }
    }
}
