//! From virtual to physical pages, and page faults: what of the memory is on the fast path.

use ethermem_wire::clio::Permissions;

use super::free_pages::FreePages;
use super::hash::HashKey;
use super::page::{MemoryConfig, MemoryConfigError, PageKey, PageSize, SpaceId, VIRTUAL_BITS};
use super::ranges::Ranges;
use super::table::PageTable;
use super::tlb::Tlb;

/// What happened since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Translations that the TLB had.
    pub tlb_hits: u64,
    /// Accesses to the page table for a translation: one for each that the TLB did not have.
    pub table_accesses: u64,
    /// Pages that were touched for the first time.
    pub faults: u64,
    /// Faults that found the buffer dry.
    pub dry_faults: u64,
    /// Ranges that were tried and would have overflowed a bucket.
    pub allocation_retries: u64,
}

/// Why there is no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// The page is not the process's.
    Unmapped,
    /// It may not do that there.
    Permission,
    /// No page is ready for a first touch. There will be.
    Dry,
}

/// How large the parts of a map are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// The page table, which is in memory.
    pub table_bytes: usize,
    /// What a translation uses beside it: TLB and fault buffer.
    pub fast_path_bytes: usize,
}

/// All address spaces of a node, without the bytes in them.
pub struct AddressMap {
    pub(super) page: PageSize,
    pub(super) table: PageTable,
    pub(super) tlb: Tlb,
    pub(super) free: FreePages,
    pub(super) counters: MapCounters,
    /// By space.
    pub(super) ranges: Vec<Ranges>,
    pub(super) physical_pages: u64,
    /// Pages that were promised: never more than there are, so that a fault finds one sooner or
    /// later.
    pub(super) reserved_pages: u64,
    /// Where the next range is looked for. It goes around, so that a range that one process
    /// gets is free in the others too, and can be shared at its address.
    pub(super) cursor: u64,
}

impl AddressMap {
    /// A map of memory that is free and zero.
    ///
    /// # Errors
    /// [`MemoryConfigError`].
    pub fn new(config: &MemoryConfig, key: HashKey) -> Result<AddressMap, MemoryConfigError> {
        let pages = config.check()?;
        Ok(AddressMap {
            page: config.page,
            table: PageTable::new(pages, key),
            tlb: Tlb::new(config.tlb_entries),
            free: FreePages::new(pages, config.page.bytes(), config.fault_buffer_pages),
            counters: MapCounters::default(),
            ranges: Vec::new(),
            physical_pages: pages.into(),
            reserved_pages: 0,
            cursor: 1,
        })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> MapCounters {
        self.counters
    }

    /// Of every page.
    #[must_use]
    pub fn page_size(&self) -> PageSize {
        self.page
    }

    /// Bytes that can still be allocated.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        (self.physical_pages - self.reserved_pages) * self.page.bytes()
    }

    /// Physical pages that belong to somebody: that were touched, or shared, and not released.
    #[must_use]
    pub fn used_pages(&self) -> u64 {
        self.physical_pages - self.free.count()
    }

    /// How large its parts are.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let fast_path_bytes = self.tlb.bytes() + self.free.buffer_bytes();
        Footprint { table_bytes: self.table.bytes(), fast_path_bytes }
    }

    /// Entries in the page table: pages of all processes, shared ones once for each.
    #[must_use]
    pub fn table_entries(&self) -> u64 {
        self.table.used()
    }

    /// Where in the physical memory an address is, for an access within its page. A page that was
    /// never touched gets its memory now.
    ///
    /// # Errors
    /// [`Missed`].
    pub fn translate(
        &mut self,
        space: SpaceId,
        address: u64,
        needed: Permissions,
    ) -> Result<u64, Missed> {
        if address >> VIRTUAL_BITS != 0 {
            return Err(Missed::Unmapped);
        }
        let key = PageKey::new(space, address >> self.page.bits());
        let physical = self.page_of(key, needed)?;
        let within = address & (self.page.bytes() - 1);
        Ok(u64::from(physical) << self.page.bits() | within)
    }

    fn page_of(&mut self, key: PageKey, needed: Permissions) -> Result<u32, Missed> {
        if let Some(entry) = self.tlb.find(key) {
            self.counters.tlb_hits += 1;
            let allowed = entry.permissions().allow(needed);
            let physical = entry.physical().expect("the TLB has mapped pages");
            return if allowed { Ok(physical) } else { Err(Missed::Permission) };
        }
        self.counters.table_accesses += 1;
        let (place, mut entry) = self.table.find(key).ok_or(Missed::Unmapped)?;
        if !entry.permissions().allow(needed) {
            return Err(Missed::Permission);
        }
        let physical = match entry.physical() {
            Some(physical) => physical,
            None => {
                let Some(physical) = self.free.take() else {
                    self.counters.dry_faults += 1;
                    return Err(Missed::Dry);
                };
                self.counters.faults += 1;
                entry = entry.mapped(physical);
                self.table.set(place, entry);
                physical
            }
        };
        self.tlb.insert(key, entry);
        Ok(physical)
    }

    /// Fills the buffer of free pages; `zero` is given a page and the part of it that must be
    /// zeroed, about so many bytes in all.
    pub fn refill(&mut self, budget_bytes: u64, zero: impl FnMut(u32, u64, u64)) {
        self.free.refill(budget_bytes, zero);
    }

    /// Whether the buffer of free pages can be filled.
    #[must_use]
    pub fn wants_refill(&self) -> bool {
        self.free.wants_refill()
    }
}
