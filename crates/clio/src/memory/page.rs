//! Pages: their sizes, their numbers, and their count.

use core::fmt;

use ethermem_units::Bytes;
use thiserror::Error;

/// Number of bits of a virtual address; addresses above are never mapped.
pub const VIRTUAL_BITS: u32 = 48;

/// An address space: the place of a process in the node's table of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpaceId(pub u16);

/// The unit in which memory is allocated, moved and protected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageSize {
    /// 4 KiB.
    Kib4,
    /// 64 KiB.
    Kib64,
    /// 2 MiB.
    Mib2,
    /// 4 MiB, as in the paper.
    Mib4,
}

impl PageSize {
    /// All four sizes.
    pub const ALL: [PageSize; 4] =
        [PageSize::Kib4, PageSize::Kib64, PageSize::Mib2, PageSize::Mib4];

    /// Number of address bits that lie within a page.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            PageSize::Kib4 => 12,
            PageSize::Kib64 => 16,
            PageSize::Mib2 => 21,
            PageSize::Mib4 => 22,
        }
    }

    /// The size in bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        1 << self.bits()
    }

    /// Number of pages of a virtual address space.
    pub(crate) const fn virtual_pages(self) -> u64 {
        1 << (VIRTUAL_BITS - self.bits())
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PageSize::Kib4 => "4 KiB",
            PageSize::Kib64 => "64 KiB",
            PageSize::Mib2 => "2 MiB",
            PageSize::Mib4 => "4 MiB",
        })
    }
}

/// The parameters of a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryConfig {
    /// Size of physical memory, in whole pages.
    pub memory: Bytes,
    /// The size of all pages.
    pub page: PageSize,
    /// Number of entries of the TLB: a power of two, at least four.
    pub tlb_entries: u32,
    /// Number of free pages that are kept ready for page faults.
    pub fault_buffer_pages: u32,
}

/// Why a memory cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MemoryConfigError {
    /// The size is not a whole number of pages, or too large for the page table.
    #[error("memory of {} B: must be 1 to 2^32 whole pages of {page}", memory.0)]
    Memory {
        /// The requested size.
        memory: Bytes,
        /// The size of a page.
        page: PageSize,
    },
    /// The TLB cannot have this number of entries.
    #[error("{0} TLB entries: must be a power of two from 4")]
    TlbEntries(u32),
    /// The fault buffer is empty, so a fault would never find a page.
    #[error("a fault buffer of 0 pages: must be at least 1")]
    FaultBuffer,
}

impl MemoryConfig {
    /// Number of physical pages.
    pub(crate) fn physical_pages(&self) -> Result<u32, MemoryConfigError> {
        let error = MemoryConfigError::Memory { memory: self.memory, page: self.page };
        let pages = self.memory.0 / self.page.bytes();
        let whole = self.memory.0.is_multiple_of(self.page.bytes()) && pages > 0;
        let pages = u32::try_from(pages).map_err(|_| error)?;
        if whole { Ok(pages) } else { Err(error) }
    }

    pub(crate) fn check(&self) -> Result<u32, MemoryConfigError> {
        if self.tlb_entries < 4 || !self.tlb_entries.is_power_of_two() {
            return Err(MemoryConfigError::TlbEntries(self.tlb_entries));
        }
        if self.fault_buffer_pages == 0 {
            return Err(MemoryConfigError::FaultBuffer);
        }
        self.physical_pages()
    }
}

/// A virtual page of an address space, as one number: the key of page table and TLB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageKey(u64);

/// Number of bits of a virtual page's number, at the smallest page size.
const PAGE_NUMBER_BITS: u32 = VIRTUAL_BITS - PageSize::Kib4.bits();
/// A bit set in every key, so that no key is the 0 of an empty slot.
const PRESENT: u64 = 1 << 63;

impl PageKey {
    pub(crate) const fn new(space: SpaceId, page: u64) -> PageKey {
        debug_assert!(page < 1 << PAGE_NUMBER_BITS);
        PageKey(PRESENT | (space.0 as u64) << PAGE_NUMBER_BITS | page)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }
}
