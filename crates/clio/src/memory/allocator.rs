//! Who has which addresses: the slow path, which keeps every bucket of the page table from
//! overflowing.

use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::map::AddressMap;
use super::page::SpaceId;
use super::ranges::{Kind, Ranges};
use super::task::{BeginError, Task};

/// Memory that a process has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocated {
    /// Where it begins.
    pub address: u64,
    /// Ranges that were tried before and would have overflowed a bucket.
    pub retries: u32,
}

/// Why nothing was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AllocateError {
    /// Nothing was asked for.
    #[error("an allocation of 0 B: allowed are 1 B and more")]
    Empty,
    /// There is less memory. There may be more once some is freed.
    #[error("no room: {free} B are free")]
    Full {
        /// What is free.
        free: u64,
    },
    /// No page begins there, or it is no address.
    #[error("address {at:#x}: allowed are multiples of {page_bytes} from that to 2^48")]
    BadAddress {
        /// What was asked for.
        at: u64,
        /// Of a page.
        page_bytes: u64,
    },
    /// The process has something at, or right beside, the address.
    #[error("address {at:#x} is in use by the process")]
    Taken {
        /// What was asked for.
        at: u64,
    },
    /// A bucket of the page table has no room for a page of the range. Another address may do.
    #[error("the page table has no room for the page at {page:#x}")]
    Overflows {
        /// The page.
        page: u64,
    },
    /// No range was found whose pages the page table has room for.
    #[error("no range of addresses fits the page table, of {tried} that were tried")]
    NoRange {
        /// How many.
        tried: u32,
    },
}

/// Why nothing was freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("nothing that the process has begins at {address:#x}")]
pub struct ReleaseError {
    /// What was given.
    pub address: u64,
}

/// Why nothing was shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShareError {
    /// See there.
    #[error(transparent)]
    NotOwned(#[from] ReleaseError),
    /// The owner may not do that itself.
    #[error("the owner may not {needed} at {address:#x} itself")]
    Permission {
        /// Where.
        address: u64,
        /// What was to be shared.
        needed: Permissions,
    },
    /// The other process cannot have it at that address.
    #[error(transparent)]
    Address(#[from] AllocateError),
}

impl AddressMap {
    /// Memory of zeros for a process, of whole pages: anywhere, or at an address. Here and below,
    /// all of it is done at once: no other task may be under way.
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

    /// Ends an allocation, and what is shared of it; or ends a share. Its address must be the
    /// first.
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(&mut self, space: SpaceId, address: u64) -> Result<(), ReleaseError> {
        let task = Task::release(self, space, address).map_err(alone)?;
        let released = task.run(self, &mut |_, _, _| unreachable!("no page is zeroed"));
        debug_assert!(released.is_ok(), "what is held can be released");
        Ok(())
    }

    /// Ends all that a process has.
    pub fn release_all(&mut self, space: SpaceId) {
        let ended = Task::end(space).run(self, &mut |_, _, _| unreachable!("no page is zeroed"));
        debug_assert!(ended.is_ok(), "what is held can be released");
    }

    /// Lets another process use an allocation of the owner's, at an address of its own or at the
    /// owner's; a second time changes how, and no permissions end it. All its pages get memory now,
    /// so that a page has one place in it whoever touches it first: `zero` is given a page and the
    /// part of it that must be zeroed.
    ///
    /// # Errors
    /// [`ShareError`]; what was shared is shared as it was then.
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

    /// Whether a process has anything.
    #[must_use]
    pub fn is_empty(&self, space: SpaceId) -> bool {
        self.ranges.get(usize::from(space.0)).is_none_or(Ranges::is_empty)
    }

    /// Pages of an allocation that begins at `address`; `None` where the process has none there.
    #[must_use]
    pub fn owned_pages(&self, space: SpaceId, address: u64) -> Option<u64> {
        let range = self.ranges.get(usize::from(space.0))?.get(self.first_page(address)?)?;
        matches!(range.kind, Kind::Own { .. }).then_some(range.pages)
    }

    /// The first page of a range at an address, where the process has room for it.
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
