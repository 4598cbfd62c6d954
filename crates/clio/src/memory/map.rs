//! From virtual to physical pages, and page faults: what of the memory is on the fast path.

use ethermem_wire::clio::Permissions;

use super::free_pages::FreePages;
use super::hash::HashKey;
use super::page::{MemoryConfig, MemoryConfigError, PageKey, PageSize, SpaceId, VIRTUAL_BITS};
use super::ranges::{Kind, Ranges};
use super::table::PageTable;
use super::task::ZEROED_BY_ONE;
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
    /// Work of the slow path: accesses to a bucket, or as much.
    pub slow_steps: u64,
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
    /// Entries that tasks under way have still to enter.
    pub(super) claimed_entries: u64,
    /// Where the next range of each group of spaces is looked for. It goes around, so that a range
    /// that one process gets is free in the others too, and can be shared at its address.
    cursors: Vec<u64>,
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
            claimed_entries: 0,
            cursors: Vec::new(),
        })
    }

    /// What happened since the start.
    #[must_use]
    pub fn counters(&self) -> MapCounters {
        let slow_steps = self.table.work() + self.free.zeroed_bytes() / ZEROED_BY_ONE;
        MapCounters { slow_steps, ..self.counters }
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

    /// What must hold between any two steps: a page is free, or somebody's, or promised; a place in
    /// the table has an entry, or is reserved by a task under way. While none is (`is_quiet`),
    /// nothing is promised or reserved beyond what is there.
    ///
    /// # Errors
    /// A line for people.
    pub fn check(&self, is_quiet: bool) -> Result<(), String> {
        let mut mapped = Vec::new();
        let (mut own_pages, mut entries, mut held) = (0, 0, 0_u64);
        for (space, ranges) in self.ranges.iter().enumerate() {
            let own: u64 = ranges.iter().map(|(_, range)| range.own_pages()).sum();
            if own != ranges.own_pages() {
                return Err(format!("space {space}: {own} own pages, and not as many counted"));
            }
            for (first, range) in ranges.iter() {
                held += u64::from(range.is_held);
                let is_own = matches!(range.kind, Kind::Own { .. });
                own_pages += if is_own { range.pages } else { 0 };
                for page in first..first + range.pages {
                    match self.table.find(PageKey::new(SpaceId(space as u16), page)) {
                        Some((_, entry)) => {
                            entries += 1;
                            mapped.extend(entry.physical().filter(|_| is_own));
                        }
                        None if range.is_held => {}
                        None => return Err(format!("space {space}: page {page} has no entry")),
                    }
                }
            }
        }
        let owned = mapped.len() as u64;
        mapped.sort_unstable();
        mapped.dedup();
        let reserved = self.table.count_reserved();
        for (holds, what) in [
            (mapped.len() as u64 == owned, "a physical page has two owners"),
            (owned + self.free.count() == self.physical_pages, "owned and free are not all pages"),
            (self.reserved_pages <= self.physical_pages, "more is promised than there is"),
            (owned <= self.reserved_pages, "more is owned than was promised"),
            (!is_quiet || own_pages == self.reserved_pages, "a promise of nobody"),
            (entries == self.table.used(), "an entry of no range"),
            (reserved <= self.claimed_entries, "a place is reserved for no task"),
            (!is_quiet || self.claimed_entries == 0, "a claim of no task"),
            (!is_quiet || held == 0, "a range that no task lets go"),
        ] {
            if !holds {
                return Err(format!(
                    "{what}: {owned} owned, {} free, {} promised, {entries} entries of {}, \
                     {reserved} reserved of {} claimed, {held} held",
                    self.free.count(),
                    self.reserved_pages,
                    self.table.used(),
                    self.claimed_entries,
                ));
            }
        }
        Ok(())
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

    /// Bytes of memory that a process has, or is just being given or losing.
    #[must_use]
    pub fn owned_bytes(&self, space: SpaceId) -> u64 {
        let ranges = self.ranges.get(usize::from(space.0));
        ranges.map_or(0, |ranges| ranges.own_pages() * self.page.bytes())
    }

    pub(super) fn cursor(&mut self, group: u16) -> &mut u64 {
        let place = usize::from(group);
        if place >= self.cursors.len() {
            self.cursors.resize(place + 1, 1);
        }
        &mut self.cursors[place]
    }

    pub(super) fn ranges_of(&mut self, space: SpaceId) -> &mut Ranges {
        let place = usize::from(space.0);
        if place >= self.ranges.len() {
            self.ranges.resize_with(place + 1, Ranges::default);
        }
        &mut self.ranges[place]
    }

    /// The page that begins at an address.
    pub(super) fn first_page(&self, address: u64) -> Option<u64> {
        let page = address >> self.page.bits();
        let begins = address.is_multiple_of(self.page.bytes());
        (begins && page < self.page.virtual_pages()).then_some(page)
    }

    /// Removes a page from the table, and gives its memory back if it `owns` that.
    pub(super) fn remove_page(&mut self, key: PageKey, owns: bool) {
        self.tlb.forget(key);
        let entry = self.table.remove(key).expect("a page of a range has an entry");
        if let Some(physical) = entry.physical().filter(|_| owns) {
            self.free.give(physical);
        }
    }

    /// Changes what may be done with a page.
    pub(super) fn change_page(&mut self, key: PageKey, permissions: Permissions) {
        self.tlb.forget(key);
        let (place, entry) = self.table.look(key).expect("a page of a range has an entry");
        self.table.set(place, entry.allowing(permissions));
    }

    /// Whether the buffer of free pages can be filled.
    #[must_use]
    pub fn wants_refill(&self) -> bool {
        self.free.wants_refill()
    }
}
