//! Who has which addresses: the slow path, which keeps every bucket of the page table from
//! overflowing.

use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::map::AddressMap;
use super::page::{PageKey, SpaceId};
use super::ranges::{Kind, Range, Ranges};
use super::table::Entry;

/// Ranges that an allocation tries before it is refused. Near the end of memory it tries some tens.
const RETRIES_MAX: u32 = 4096;

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
    /// Memory of zeros for a process, of whole pages: anywhere, or at an address.
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
        let pages = bytes.div_ceil(self.page.bytes());
        if pages == 0 {
            return Err(AllocateError::Empty);
        }
        if pages > self.physical_pages - self.reserved_pages {
            return Err(AllocateError::Full { free: self.free_bytes() });
        }
        let entry = Entry::untouched(permissions);
        let (first, retries) = match at {
            Some(at) => (self.fixed(space, at, pages, |_| entry)?, 0),
            None => self.anywhere(space, pages, entry)?,
        };
        self.reserved_pages += pages;
        let kind = Kind::Own { shares: Vec::new() };
        self.ranges_of(space).insert(first, Range { pages, permissions, kind });
        Ok(Allocated { address: first << self.page.bits(), retries })
    }

    /// Ends an allocation, and what is shared of it; or ends a share. Its address must be the
    /// first.
    ///
    /// # Errors
    /// [`ReleaseError`].
    pub fn release(&mut self, space: SpaceId, address: u64) -> Result<(), ReleaseError> {
        let first = self.first_page(address).ok_or(ReleaseError { address })?;
        let range = self.ranges_of(space).remove(first).ok_or(ReleaseError { address })?;
        match range.kind {
            Kind::Own { shares } => {
                for (with, first) in shares {
                    self.ranges_of(with).remove(first);
                    self.unmap(with, first, range.pages, |_| {});
                }
                let mut owned = Vec::new();
                self.unmap(space, first, range.pages, |physical| owned.push(physical));
                owned.into_iter().for_each(|physical| self.free.give(physical));
                self.reserved_pages -= range.pages;
            }
            Kind::Shared { owner, first: owned } => {
                self.unmap(space, first, range.pages, |_| {});
                self.forget_share(owner, owned, space);
            }
        }
        Ok(())
    }

    /// Ends all that a process has.
    pub fn release_all(&mut self, space: SpaceId) {
        while let Some(first) = self.ranges_of(space).first() {
            let released = self.release(space, first << self.page.bits());
            debug_assert_eq!(released, Ok(()), "a range of the tree can be released");
        }
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
        (owner, address): (SpaceId, u64),
        with: SpaceId,
        at: Option<u64>,
        permissions: Permissions,
        zero: impl FnMut(u32, u64, u64),
    ) -> Result<u64, ShareError> {
        let not_owned = ReleaseError { address };
        let owned = self.first_page(address).ok_or(not_owned)?;
        let range = self.ranges_of(owner).get(owned).ok_or(not_owned)?;
        let Kind::Own { shares } = &range.kind else {
            return Err(not_owned.into());
        };
        if !range.permissions.allow(permissions) {
            return Err(ShareError::Permission { address, needed: permissions });
        }
        let pages = range.pages;
        let before = shares.iter().find(|(other, _)| *other == with).map(|&(_, first)| first);
        if with == owner {
            return Ok(address);
        }
        // All pages that nobody has can still be allocated, whatever is shared.
        let entries = self.table.used() + self.physical_pages - self.reserved_pages + pages;
        let is_new = before.is_none() && permissions != Permissions::NONE;
        if is_new && entries > self.table.shares_until() {
            return Err(AllocateError::Overflows { page: address }.into());
        }
        let before = before.and_then(|first| {
            let range = self.ranges_of(with).remove(first)?;
            self.unmap(with, first, pages, |_| {});
            self.forget_share(owner, owned, with);
            Some((first, range.permissions))
        });
        if permissions == Permissions::NONE {
            return Ok(address);
        }
        self.populate(owner, owned, pages, zero);
        let physical: Vec<u32> = (owned..owned + pages)
            .map(|page| {
                let found = self.table.find(PageKey::new(owner, page));
                found.and_then(|(_, entry)| entry.physical()).expect("it was populated")
            })
            .collect();
        let page_bits = self.page.bits();
        let mut enter = |at: u64, permissions: Permissions| {
            let untouched = Entry::untouched(permissions);
            let entry = |index: u64| untouched.mapped(physical[index as usize]);
            let first = self.fixed(with, at, pages, entry)?;
            let kind = Kind::Shared { owner, first: owned };
            self.ranges_of(with).insert(first, Range { pages, permissions, kind });
            self.keep_share((owner, owned), (with, first));
            Ok::<u64, AllocateError>(first)
        };
        let entered = enter(at.unwrap_or(address), permissions);
        if let (Err(_), Some((first, permissions))) = (&entered, before) {
            // What is refused has done nothing. The places that it had are free again.
            let again = enter(first << page_bits, permissions);
            debug_assert_eq!(again, Ok(first), "nothing came between");
        }
        Ok(entered? << page_bits)
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

    fn ranges_of(&mut self, space: SpaceId) -> &mut Ranges {
        let place = usize::from(space.0);
        if place >= self.ranges.len() {
            self.ranges.resize_with(place + 1, Ranges::default);
        }
        &mut self.ranges[place]
    }

    /// The page that begins at an address.
    fn first_page(&self, address: u64) -> Option<u64> {
        let page = address >> self.page.bits();
        let begins = address.is_multiple_of(self.page.bytes());
        (begins && page < self.page.virtual_pages()).then_some(page)
    }

    fn fixed(
        &mut self,
        space: SpaceId,
        at: u64,
        pages: u64,
        entry: impl Fn(u64) -> Entry,
    ) -> Result<u64, AllocateError> {
        let (end, page_bytes) = (self.page.virtual_pages(), self.page.bytes());
        let bad = AllocateError::BadAddress { at, page_bytes };
        let first = self.first_page(at).filter(|&first| first > 0 && pages < end - first);
        let first = first.ok_or(bad)?;
        if self.ranges_of(space).gap(first, pages, end) != Some(first) {
            return Err(AllocateError::Taken { at });
        }
        let mapped = self.map(space, first, pages, entry);
        let address = |page: u64| page << self.page.bits();
        mapped.map_err(|page| AllocateError::Overflows { page: address(page) })?;
        Ok(first)
    }

    /// The first range that the page table has room for, and how many had none before it.
    fn anywhere(
        &mut self,
        space: SpaceId,
        pages: u64,
        entry: Entry,
    ) -> Result<(u64, u32), AllocateError> {
        let end = self.page.virtual_pages();
        let (mut from, mut around, mut retries) = (self.cursor, false, 0);
        while retries <= RETRIES_MAX {
            let Some(first) = self.ranges_of(space).gap(from, pages, end) else {
                if around {
                    break;
                }
                (from, around) = (1, true);
                continue;
            };
            match self.map(space, first, pages, |_| entry) {
                Ok(()) => {
                    self.cursor = (first + pages + 1) % end;
                    self.cursor = self.cursor.max(1);
                    return Ok((first, retries));
                }
                // No range with this page can do.
                Err(page) => {
                    from = page + 1;
                    retries += 1;
                    self.counters.allocation_retries += 1;
                }
            }
        }
        Err(AllocateError::NoRange { tried: retries })
    }

    /// Enters all pages of a range, or none and the first for which there is no room.
    fn map(
        &mut self,
        space: SpaceId,
        first: u64,
        pages: u64,
        entry: impl Fn(u64) -> Entry,
    ) -> Result<(), u64> {
        for index in 0..pages {
            let key = PageKey::new(space, first + index);
            if self.table.insert(key, entry(index)).is_err() {
                for page in first..first + index {
                    self.table.remove(PageKey::new(space, page));
                }
                return Err(first + index);
            }
        }
        Ok(())
    }

    /// Removes all pages of a range, and tells the memory that they had.
    fn unmap(&mut self, space: SpaceId, first: u64, pages: u64, mut had: impl FnMut(u32)) {
        for page in first..first + pages {
            let key = PageKey::new(space, page);
            self.tlb.forget(key);
            let entry = self.table.remove(key).expect("a page of a range has an entry");
            if let Some(physical) = entry.physical() {
                had(physical);
            }
        }
    }

    /// Gives memory to the pages of a range that were not touched.
    fn populate(
        &mut self,
        space: SpaceId,
        first: u64,
        pages: u64,
        mut zero: impl FnMut(u32, u64, u64),
    ) {
        for page in first..first + pages {
            let found = self.table.find(PageKey::new(space, page));
            let (place, entry) = found.expect("a page of a range has an entry");
            if entry.physical().is_none() {
                let ready = self.free.take().or_else(|| {
                    self.free.refill(u64::MAX, &mut zero);
                    self.free.take()
                });
                let physical = ready.expect("no more pages are promised than there are");
                self.table.set(place, entry.mapped(physical));
            }
        }
    }

    fn keep_share(&mut self, (owner, owned): (SpaceId, u64), share: (SpaceId, u64)) {
        if let Some(Range { kind: Kind::Own { shares }, .. }) = self.ranges_of(owner).get_mut(owned)
        {
            shares.push(share);
        }
    }

    fn forget_share(&mut self, owner: SpaceId, owned: u64, with: SpaceId) {
        if let Some(Range { kind: Kind::Own { shares }, .. }) = self.ranges_of(owner).get_mut(owned)
        {
            shares.retain(|(other, _)| *other != with);
        }
    }
}
