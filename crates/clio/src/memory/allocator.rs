//! The assignment of addresses to processes: the slow path, which prevents every bucket of the page
//! table from overflowing.

use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::map::AddressMap;
use super::page::SpaceId;
use super::ranges::{Kind, Ranges};
use super::task::{BeginError, Task};

/// Memory that a process was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// The first address.
    pub address: u64,
    /// Number of ranges that were tried before and would have overflowed a bucket.
    pub retries: u32,
}

/// Why nothing was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocateError {
    /// The request was for zero bytes.
    #[error("an allocation of 0 B: must be at least 1 B")]
    Empty,
    /// Less memory is free. A retry can help once some is freed.
    #[error("no room: {free} B are free")]
    Full {
        /// Number of free bytes.
        free: u64,
    },
    /// The address is not the start of a page, or not an address.
    #[error("address {at:#x}: must be a multiple of {page_bytes} from that to 2^48")]
    BadAddress {
        /// The requested address.
        at: u64,
        /// Size of a page in bytes.
        page_bytes: u64,
    },
    /// The process has a range at, or right beside, the address.
    #[error("address {at:#x} is in use by the process")]
    Taken {
        /// The requested address.
        at: u64,
    },
    /// A bucket of the page table has no room for a page of the range. Another address may do.
    #[error("the page table has no room for the page at {page:#x}")]
    Overflows {
        /// Address of the page.
        page: u64,
    },
    /// No range was found for whose pages the page table has room.
    #[error("no range of addresses fits the page table, of {tried} that were tried")]
    NoRange {
        /// Number of ranges that were tried.
        tried: u32,
    },
}

/// Why nothing was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("nothing that the process has begins at {address:#x}")]
pub struct ReleaseError {
    /// The given address.
    pub address: u64,
}

/// Why nothing was shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShareError {
    /// No allocation of the owner begins at the address.
    #[error(transparent)]
    NotOwned(#[from] ReleaseError),
    /// The owner lacks the permissions that it would share.
    #[error("the owner may not {needed} at {address:#x} itself")]
    Permission {
        /// The address of the allocation.
        address: u64,
        /// The permissions that were to be shared.
        needed: Permissions,
    },
    /// The other process cannot have the allocation at the address.
    #[error(transparent)]
    Address(#[from] AllocateError),
}

impl AddressMap {
    /// Allocates memory of zeros for a process, in whole pages, at any address or at a given one.
    /// This method and the ones below finish the whole work: no other task may be in progress.
    ///
    /// # Errors
    /// [`AllocateError`].
    pub fn allocate(
        &mut self,
        space: SpaceId,
        bytes: u64,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<Allocated, AllocateError> {
        let task = Task::allocate(self, (0, space), bytes, at, permissions)?;
        let ended = task.run(self, &mut |_, _, _| unreachable!("no page is zeroed"))?;
        Ok(Allocated { address: ended.address, retries: ended.retries })
    }

    /// Ends an allocation with all its shares, or ends one share. `address` must be the first
    /// address.
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(&mut self, space: SpaceId, address: u64) -> Result<(), ReleaseError> {
        let task = Task::release(self, space, address).map_err(alone)?;
        let released = task.run(self, &mut |_, _, _| unreachable!("no page is zeroed"));
        debug_assert!(released.is_ok(), "what is held can be released");
        Ok(())
    }

    /// Ends all allocations and shares of a process.
    pub fn release_all(&mut self, space: SpaceId) {
        let ended = Task::end(space).run(self, &mut |_, _, _| unreachable!("no page is zeroed"));
        debug_assert!(ended.is_ok(), "what is held can be released");
    }

    /// Shares an allocation of the owner with another process, at a given address or at the
    /// owner's. A second call changes the share, and no permissions end it. All its pages get
    /// memory now, so a page has one place in memory whichever process touches it first. `zero` is
    /// given a page and the part of it that must be zeroed.
    ///
    /// # Errors
    /// [`ShareError`]; an earlier share is then unchanged.
    pub fn share(
        &mut self,
        owned: (SpaceId, u64),
        with: SpaceId,
        at: Option<u64>,
        permissions: Permissions,
        mut zero: impl FnMut(u32, u64, u64),
    ) -> Result<u64, ShareError> {
        let task = Task::share(self, owned, with, at, permissions).map_err(alone)?;
        Ok(task.run(self, &mut zero)?.address)
    }

    /// True if a process has allocations or shares.
    #[must_use]
    pub fn is_empty(&self, space: SpaceId) -> bool {
        self.ranges.get(usize::from(space.0)).is_none_or(Ranges::is_empty)
    }

    /// Number of pages of the allocation that begins at `address`; `None` where the process has
    /// none.
    #[must_use]
    pub fn owned_pages(&self, space: SpaceId, address: u64) -> Option<u64> {
        let range = self.ranges.get(usize::from(space.0))?.get(self.first_page(address)?)?;
        matches!(range.kind, Kind::Own { .. }).then_some(range.pages)
    }

    /// The first page of a range at an address, if the process has room for the range.
    pub(super) fn fixed(
        &mut self,
        space: SpaceId,
        at: u64,
        pages: u64,
    ) -> Result<u64, AllocateError> {
        let (end, page_bytes) = (self.page.virtual_pages(), self.page.bytes());
        let bad = AllocateError::BadAddress { at, page_bytes };
        let first = self.first_page(at).filter(|&first| first > 0 && pages < end - first);
        let first = first.ok_or(bad)?;
        if !self.ranges_of(space).fit(first, pages, end) {
            return Err(AllocateError::Taken { at });
        }
        Ok(first)
    }
}

fn alone<E>(error: BeginError<E>) -> E {
    match error {
        BeginError::Held => unreachable!("no other task is under way"),
        BeginError::Refused(error) => error,
    }
}
