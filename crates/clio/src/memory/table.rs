//! The page table: one for all processes, flat, in which an entry is in one bucket or nowhere.

use ethermem_wire::clio::Permissions;

use super::hash::HashKey;
use super::page::PageKey;

/// Entries of a bucket.
pub const BUCKET_SLOTS: usize = 16;
/// Size of a bucket, and what its place is a multiple of: one fetch.
pub const BUCKET_BYTES: usize = size_of::<Bucket>();

/// As many are a small table's.
const SMALL_BUCKETS: usize = 64;

/// Each tag beside its entry, and each page with a slot of its own to begin at: a search is mostly
/// within one cache line, of which a bucket has four.
#[derive(Clone)]
#[repr(align(256))]
struct Bucket {
    slots: [Slot; BUCKET_SLOTS],
}

#[derive(Clone, Copy)]
struct Slot {
    /// A [`PageKey`]; 0 is free.
    tag: u64,
    entry: Entry,
}

const FREE: Slot = Slot { tag: 0, entry: Entry::FREE };

impl Bucket {
    /// The slot with this tag that comes first, from the page's own on and around.
    fn position(&self, page: PageKey, tag: u64) -> Option<usize> {
        let own = (page.bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
        (own..own + BUCKET_SLOTS)
            .map(|slot| slot % BUCKET_SLOTS)
            .find(|&slot| self.slots[slot].tag == tag)
    }
}

/// Where a page is, and what may be done there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry(u64);

const MAPPED: u64 = 1 << 32;
const PERMISSIONS_AT: u32 = 33;

impl Entry {
    /// Of no page.
    pub(crate) const FREE: Entry = Entry(0);

    /// Of a page that nobody has touched.
    pub(crate) const fn untouched(permissions: Permissions) -> Entry {
        Entry((permissions.bits() as u64) << PERMISSIONS_AT)
    }

    /// The same with a physical page.
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

/// See the module.
pub(crate) struct PageTable {
    buckets: Box<[Bucket]>,
    mask: u64,
    key: HashKey,
    used: u64,
}

/// Where an entry is, found once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    bucket: usize,
    slot: usize,
}

/// The bucket of the page has no free slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl PageTable {
    /// How many buckets there are for so many physical pages: twice as many slots as pages, or
    /// more.
    pub(crate) fn buckets_for(physical_pages: u32) -> usize {
        let slots = usize::try_from(2 * u64::from(physical_pages)).expect("a 64-bit machine");
        slots.div_ceil(BUCKET_SLOTS).next_power_of_two()
    }

    pub(crate) fn new(physical_pages: u32, key: HashKey) -> PageTable {
        let buckets = PageTable::buckets_for(physical_pages);
        let empty = Bucket { slots: [FREE; BUCKET_SLOTS] };
        let mask = buckets as u64 - 1;
        PageTable { buckets: vec![empty; buckets].into_boxed_slice(), mask, key, used: 0 }
    }

    /// The entry of a page, by one access to one bucket.
    pub(crate) fn find(&self, page: PageKey) -> Option<(Place, Entry)> {
        let bucket = self.key.bucket(page, self.mask);
        let slot = self.buckets[bucket].position(page, page.bits())?;
        Some((Place { bucket, slot }, self.buckets[bucket].slots[slot].entry))
    }

    /// Replaces an entry that was just found.
    pub(crate) fn set(&mut self, place: Place, entry: Entry) {
        self.buckets[place.bucket].slots[place.slot].entry = entry;
    }

    /// A new entry. The page must have none.
    pub(crate) fn insert(&mut self, page: PageKey, entry: Entry) -> Result<(), Overflow> {
        debug_assert!(self.find(page).is_none(), "{page:?} is there already");
        let bucket = &mut self.buckets[self.key.bucket(page, self.mask)];
        let slot = bucket.position(page, FREE.tag).ok_or(Overflow)?;
        bucket.slots[slot] = Slot { tag: page.bits(), entry };
        self.used += 1;
        Ok(())
    }

    pub(crate) fn remove(&mut self, page: PageKey) -> Option<Entry> {
        let (place, entry) = self.find(page)?;
        self.buckets[place.bucket].slots[place.slot] = FREE;
        self.used -= 1;
        Some(entry)
    }

    /// Entries that there may be with shares: near the end there are buckets without a free slot,
    /// and no long range of addresses fits. In a small memory no range is long.
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

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Whether each bucket begins where a cache line does.
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
        assert_eq!(table.bytes(), 128 * BUCKET_BYTES, "2,000 slots in whole powers of two");
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
        // One bucket: eight physical pages.
        let mut table = PageTable::new(8, HashKey([0, 0]));
        let entry = Entry::untouched(Permissions::READ);
        for page in 0..16 {
            assert_eq!(table.insert(key(page), entry.mapped(page as u32)), Ok(()));
        }
        assert_eq!(table.insert(key(16), entry), Err(Overflow));
        assert_eq!(table.find(key(7)).map(|(_, entry)| entry), Some(entry.mapped(7)));
        assert_eq!(table.remove(key(7)), Some(entry.mapped(7)));
        assert_eq!((table.remove(key(7)), table.used()), (None, 15));
        assert_eq!(table.insert(key(16), entry), Ok(()));
    }
}
