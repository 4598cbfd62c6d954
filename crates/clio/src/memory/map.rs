//! The translation from virtual to physical pages, with page faults: the fast path of the memory.

use ethermem_wire::clio::Permissions;

use super::free_pages::FreePages;
use super::hash::HashKey;
use super::page::{MemoryConfig, MemoryConfigError, PageKey, PageSize, SpaceId, VIRTUAL_BITS};
use super::ranges::{Kind, Ranges};
use super::table::PageTable;
use super::task::ZEROED_BY_ONE;
use super::tlb::Tlb;

/// Counts since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCounters {
    /// Translations that hit the TLB.
    pub tlb_hits: u64,
    /// Accesses to the page table for a translation: one for each miss of the TLB.
    pub table_accesses: u64,
    /// First touches of pages.
    pub faults: u64,
    /// Faults that found the buffer empty.
    pub dry_faults: u64,
    /// Ranges that were tried and would have overflowed a bucket.
    pub allocation_retries: u64,
    /// Work of the slow path, in accesses to a bucket or equivalents.
    pub slow_steps: u64,
}

/// Why there is no translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missed {
    /// The page is not mapped in the process.
    Unmapped,
    /// The process lacks the permission.
    Permission,
    /// No page is ready for a first touch; one will be.
    Dry,
}

/// The memory that the parts of a map take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footprint {
    /// Size of the page table, which is in memory.
    pub table_bytes: usize,
    /// Size of the other parts that a translation uses: TLB and fault buffer.
    pub fast_path_bytes: usize,
}

/// All address spaces of a node, without the bytes in them.
pub struct AddressMap {
    pub(super) page: PageSize,
    pub(super) table: PageTable,
    pub(super) tlb: Tlb,
    pub(super) free: FreePages,
    pub(super) counters: MapCounters,
    /// The ranges of each space.
    pub(super) ranges: Vec<Ranges>,
    pub(super) physical_pages: u64,
    /// Number of promised pages. It never exceeds the number of pages, so a fault always finds a
    /// page in the end.
    pub(super) reserved_pages: u64,
    /// Number of entries that tasks in progress will still enter.
    pub(super) claimed_entries: u64,
    /// First page of the next search for each group of spaces. It moves around all addresses. So a
    /// range given to one process is also free in the other processes of its group, and can be
    /// shared at its address.
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

    /// Counts since the start.
    #[must_use]
    pub fn counters(&self) -> MapCounters {
        let slow_steps = self.table.work() + self.free.zeroed_bytes() / ZEROED_BY_ONE;
        MapCounters { slow_steps, ..self.counters }
    }

    /// The size of all pages.
    #[must_use]
    pub fn page_size(&self) -> PageSize {
        self.page
    }

    /// Number of bytes that can still be allocated.
    #[must_use]
    pub fn free_bytes(&self) -> u64 {
        (self.physical_pages - self.reserved_pages) * self.page.bytes()
    }

    /// Number of physical pages with an owner: they were touched or shared, and not released.
    #[must_use]
    pub fn used_pages(&self) -> u64 {
        self.physical_pages - self.free.count()
    }

    /// Checks the invariants that hold between any two steps. A page is free, owned or promised. A
    /// place in the table has an entry, or is reserved by a task in progress. While there is no
    /// task (`is_quiet`), every promise and reservation belongs to an existing range.
    ///
    /// # Errors
    /// A text that says what does not hold.
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
                own_pages += range.own_pages();
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
            (owned <= own_pages, "a page is owned by a range that gave it back"),
            (own_pages <= self.reserved_pages, "more is owned than was promised"),
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

    /// The sizes of its parts.
    #[must_use]
    pub fn footprint(&self) -> Footprint {
        let fast_path_bytes = self.tlb.bytes() + self.free.buffer_bytes();
        Footprint { table_bytes: self.table.bytes(), fast_path_bytes }
    }

    /// Number of entries in the page table: pages of all processes, shared pages once for each
    /// process.
    #[must_use]
    pub fn table_entries(&self) -> u64 {
        self.table.used()
    }

    /// The physical place of an address, for an access within its page. A page that was never
    /// touched gets its memory now.
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

    /// Fills the buffer of free pages. `zero` is given a page and the part of it that must be
    /// zeroed, about `budget_bytes` in all.
    pub fn refill(&mut self, budget_bytes: u64, zero: impl FnMut(u32, u64, u64)) {
        self.free.refill(budget_bytes, zero);
    }

    /// Bytes of memory that a process owns, or that a task is taking for it.
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

    /// Removes a page from the table, and returns its memory if the process `owns` it.
    pub(super) fn remove_page(&mut self, key: PageKey, owns: bool) {
        self.tlb.forget(key);
        let entry = self.table.remove(key).expect("a page of a range has an entry");
        if let Some(physical) = entry.physical().filter(|_| owns) {
            self.free.give(physical);
        }
    }

    /// Changes the permissions of a page.
    pub(super) fn change_page(&mut self, key: PageKey, permissions: Permissions) {
        self.tlb.forget(key);
        let (place, entry) = self.table.look(key).expect("a page of a range has an entry");
        self.table.set(place, entry.allowing(permissions));
    }

    /// True if the buffer of free pages can be filled.
    #[must_use]
    pub fn wants_refill(&self) -> bool {
        self.free.wants_refill()
    }
}
