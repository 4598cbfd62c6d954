//! The page table: one flat table for all processes, in which an entry can be in one bucket only.

use ethermem_wire::clio::Permissions;

use super::hash::HashKey;
use super::page::PageKey;

/// Number of entries of a bucket.
pub const BUCKET_SLOTS: usize = 16;
/// Size and alignment of a bucket in bytes: it is one fetch.
pub const BUCKET_BYTES: usize = size_of::<Bucket>();

/// Maximum number of buckets of a small table.
const SMALL_BUCKETS: usize = 64;

/// A bucket. Each tag lies beside its entry, and each page has its own slot at which a search
/// begins. So a search mostly stays within one of a bucket's four cache lines.
#[derive(Clone)]
#[repr(align(256))]
struct Bucket {
    slots: [Slot; BUCKET_SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    /// A [`PageKey`]; 0 marks a free slot.
    tag: u64,
    entry: Entry,
}

const FREE: Slot = Slot { tag: 0, entry: Entry::FREE };

impl Bucket {
    /// The first slot with this tag, searching from the page's own slot around the bucket.
    fn position(&self, page: PageKey, tag: u64) -> Option<usize> {
        let own = (page.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
        (own..own + BUCKET_SLOTS)
            .map(|slot| slot % BUCKET_SLOTS)
            .find(|&slot| self.slots[slot].tag == tag)
    }
}

/// The physical page of a virtual page, and its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u64);

const MAPPED: u64 = 1 << 32;
const PERMISSIONS_AT: u32 = 33;

impl Entry {
    /// The entry of a free slot.
    pub(crate) const FREE: Entry = Entry(0);

    /// The entry of a page that was never touched.
    pub(crate) const fn untouched(permissions: Permissions) -> Entry {
        Entry((permissions.bits() as u64) << PERMISSIONS_AT)
    }

    /// This entry with other permissions.
    pub(crate) const fn allowing(self, permissions: Permissions) -> Entry {
        let rest = self.0 & ((1 << PERMISSIONS_AT) - 1);
        Entry(rest | (permissions.bits() as u64) << PERMISSIONS_AT)
    }

    /// This entry with a physical page.
    pub(crate) const fn mapped(self, physical: u32) -> Entry {
        Entry(self.0 | MAPPED | physical as u64)
    }

    pub(crate) const fn physical(self) -> Option<u32> {
        if self.0 & MAPPED == 0 { None } else { Some(self.0 as u32) }
    }

    pub(crate) fn permissions(self) -> Permissions {
        let bits = (self.0 >> PERMISSIONS_AT) as u8;
        Permissions::from_bits(bits).expect("an entry is made of permissions")
    }
}

/// Number of places that are reserved with about the work of one bucket access.
pub(crate) const RESERVED_BY_ONE: u64 = 32;

/// The page table.
///
/// A place is reserved before its page is entered, so entering cannot fail. A range that does not
/// fit is given up before any of its pages is in the table. The reservations of each bucket are
/// counted in an octet, so a range of many pages is reserved octet by octet.
pub(crate) struct PageTable {
    buckets: Box<[Bucket]>,
    /// Number of slots of each bucket that have an entry or are reserved for one.
    taken: Box<[u8]>,
    mask: u64,
    key: HashKey,
    used: u64,
    /// Work of the slow path, in accesses to a bucket or equivalents.
    work: u64,
}

/// The place of an entry, found once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntrySlot {
    bucket: usize,
    slot: usize,
}

/// The bucket of the page has no free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl PageTable {
    /// Number of buckets for this many physical pages. There are at least twice as many slots as
    /// pages.
    pub(crate) fn buckets_for(physical_pages: u32) -> usize {
        let slots = usize::try_from(2 * u64::from(physical_pages)).expect("a 64-bit machine");
        slots.div_ceil(BUCKET_SLOTS).next_power_of_two()
    }

    pub(crate) fn new(physical_pages: u32, key: HashKey) -> PageTable {
        let buckets = PageTable::buckets_for(physical_pages);
        let empty = Bucket { slots: [FREE; BUCKET_SLOTS] };
        let mask = buckets as u64 - 1;
        PageTable {
            buckets: vec![empty; buckets].into_boxed_slice(),
            taken: vec![0; buckets].into_boxed_slice(),
            mask,
            key,
            used: 0,
            work: 0,
        }
    }

    /// Finds the entry of a page by one access to one bucket.
    pub(crate) fn find(&self, page: PageKey) -> Option<(EntrySlot, Entry)> {
        let bucket = self.key.bucket(page, self.mask);
        let slot = self.buckets[bucket].position(page, page.bits())?;
        Some((EntrySlot { bucket, slot }, self.buckets[bucket].slots[slot].entry))
    }

    /// Replaces an entry that was just found.
    pub(crate) fn set(&mut self, place: EntrySlot, entry: Entry) {
        self.buckets[place.bucket].slots[place.slot].entry = entry;
    }

    /// Finds the entry of a page for the slow path, whose work is counted.
    pub(crate) fn look(&mut self, page: PageKey) -> Option<(EntrySlot, Entry)> {
        self.work += 1;
        self.find(page)
    }

    /// Reserves places for up to `pages` from `first` on, within one run. Returns how many, and
    /// whether the next page lacks a place.
    pub(crate) fn reserve(&mut self, first: PageKey, pages: u64) -> (u64, Result<(), Overflow>) {
        let pages = pages.min(HashKey::left_of_run(first, self.mask));
        let start = self.key.bucket(first, self.mask) as u64;
        self.work += 1;
        for index in 0..pages {
            if index % RESERVED_BY_ONE == RESERVED_BY_ONE - 1 {
                self.work += 1;
            }
            let taken = &mut self.taken[((start + index) & self.mask) as usize];
            if usize::from(*taken) == BUCKET_SLOTS {
                return (index, Err(Overflow));
            }
            *taken += 1;
        }
        (pages, Ok(()))
    }

    /// Returns places reserved for up to `pages` from `first` on, within one run. Returns how many.
    pub(crate) fn give_back(&mut self, first: PageKey, pages: u64) -> u64 {
        let pages = pages.min(HashKey::left_of_run(first, self.mask));
        let start = self.key.bucket(first, self.mask) as u64;
        self.work += 1 + pages / RESERVED_BY_ONE;
        for index in 0..pages {
            self.taken[((start + index) & self.mask) as usize] -= 1;
        }
        pages
    }

    /// Adds an entry for a page with a reserved place. The page must have no entry.
    pub(crate) fn enter(&mut self, page: PageKey, entry: Entry) {
        debug_assert!(self.find(page).is_none(), "{page:?} is there already");
        self.work += 1;
        let bucket = &mut self.buckets[self.key.bucket(page, self.mask)];
        let slot = bucket.position(page, FREE.tag).expect("a place is reserved");
        bucket.slots[slot] = Slot { tag: page.bits(), entry };
        self.used += 1;
    }

    /// Removes an entry, and frees its place.
    pub(crate) fn remove(&mut self, page: PageKey) -> Option<Entry> {
        let (place, entry) = self.look(page)?;
        self.buckets[place.bucket].slots[place.slot] = FREE;
        self.taken[place.bucket] -= 1;
        self.used -= 1;
        Some(entry)
    }

    /// Maximum number of entries including shares. Near the table's end some buckets have no free
    /// slot, so no long range of addresses fits. In a small memory no range is long.
    pub(crate) fn shares_until(&self) -> u64 {
        let slots = self.buckets.len() * BUCKET_SLOTS;
        let spare = match self.buckets.len() {
            1 => 0,
            2..=SMALL_BUCKETS => slots / 8,
            _ => slots / 4,
        };
        (slots - spare) as u64
    }

    pub(crate) fn used(&self) -> u64 {
        self.used
    }

    /// Work of the slow path, in accesses to a bucket or equivalents.
    pub(crate) fn work(&self) -> u64 {
        self.work
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets) + size_of_val(&*self.taken)
    }

    /// Number of reserved places without an entry. It also checks that no bucket has fewer places
    /// taken than entries.
    pub(crate) fn count_reserved(&self) -> u64 {
        let entries = |bucket: &Bucket| {
            bucket.slots.iter().filter(|slot| slot.tag != FREE.tag).count() as u64
        };
        let both = self.buckets.iter().zip(&self.taken);
        both.map(|(bucket, &taken)| u64::from(taken) - entries(bucket)).sum()
    }

    /// True if each bucket begins at a cache line.
    #[cfg(test)]
    fn is_aligned(&self) -> bool {
        self.buckets.as_ptr().addr().is_multiple_of(BUCKET_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::SpaceId;

    fn key(page: u64) -> PageKey {
        PageKey::new(SpaceId(1), page)
    }

    #[test]
    fn a_bucket_is_one_aligned_fetch_and_the_table_has_two_slots_a_page() {
        let table = PageTable::new(1000, HashKey([0, 0]));
        assert!(table.is_aligned());
        assert_eq!(BUCKET_BYTES, 256);
        assert_eq!(table.bytes(), 128 * (BUCKET_BYTES + 1), "2,000 slots in whole powers of two");
    }

    #[test]
    fn an_entry_keeps_its_parts() {
        for permissions in [Permissions::NONE, Permissions::READ, Permissions::READ_WRITE] {
            let entry = Entry::untouched(permissions);
            assert_eq!((entry.physical(), entry.permissions()), (None, permissions));
            let entry = entry.mapped(u32::MAX);
            assert_eq!((entry.physical(), entry.permissions()), (Some(u32::MAX), permissions));
        }
    }

    #[test]
    fn a_full_bucket_refuses_the_next_and_takes_it_once_one_is_gone() {
        // Eight physical pages give one bucket.
        let mut table = PageTable::new(8, HashKey([0, 0]));
        let entry = Entry::untouched(Permissions::READ);
        for page in 0..16 {
            assert_eq!(table.reserve(key(page), 1), (1, Ok(())));
            table.enter(key(page), entry.mapped(page as u32));
        }
        assert_eq!(table.reserve(key(16), 1), (0, Err(Overflow)));
        assert_eq!(table.find(key(7)).map(|(_, entry)| entry), Some(entry.mapped(7)));
        assert_eq!(table.remove(key(7)), Some(entry.mapped(7)));
        assert_eq!((table.remove(key(7)), table.used()), (None, 15));
        assert_eq!(table.reserve(key(16), 1), (1, Ok(())));
        assert_eq!(table.reserve(key(17), 1), (0, Err(Overflow)), "what is reserved is taken");
        assert_eq!(table.count_reserved(), 1);
        assert_eq!(table.give_back(key(16), 1), 1);
        assert_eq!(table.count_reserved(), 0);
    }

    #[test]
    fn a_run_is_reserved_up_to_the_page_that_has_no_place() {
        let mut table = PageTable::new(1 << 10, HashKey([1, 2]));
        // A run of 128 pages has one page in each bucket, so 16 runs fill the table.
        for space in 0..16 {
            let first = PageKey::new(SpaceId(space), 128);
            let pages = if space == 15 { 100 } else { 1000 };
            let most = pages.min(128);
            assert_eq!(table.reserve(first, pages), (most, Ok(())));
        }
        let (done, rest) = table.reserve(PageKey::new(SpaceId(16), 128), 128);
        assert!(done < 128 && rest == Err(Overflow), "28 buckets have room for one more");
        assert_eq!(table.give_back(PageKey::new(SpaceId(16), 128), done), done);
        assert_eq!(table.count_reserved(), 15 * 128 + 100);
    }
}
