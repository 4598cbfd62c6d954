//! The memory of a node as processes see it: their addresses, and the bytes at them.

use core::fmt;
use core::task::Poll;

use ethermem_wire::RmwOperation;
use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::allocator::ShareError;
use super::hash::HashKey;
use super::map::{AddressMap, Missed};
use super::page::{MemoryConfig, MemoryConfigError, SpaceId};
use super::task::{Ended, Failed, Steps, Task};

/// Maximum bytes of an access: what a datagram could carry.
pub const ACCESS_BYTES_MAX: usize = 1 << 16;
/// Maximum number of pages that an access touches, at the smallest page size.
const SPANS_MAX: usize = (ACCESS_BYTES_MAX >> 12) + 1;
const WORD_BYTES: usize = 8;

/// Why an access was refused. The access had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Some of the bytes are not mapped in the process. A retry cannot help.
    #[error("some of the bytes are not the process's")]
    Unmapped,
    /// The process lacks the permission for some of the bytes. A retry cannot help.
    #[error("the process may not do that there")]
    Permission,
    /// An atomic is not at a multiple of 8. A retry cannot help.
    #[error("an atomic must be at a multiple of 8")]
    Misaligned,
    /// The access has zero bytes or more than the maximum. A retry cannot help.
    #[error("must be 1 to {ACCESS_BYTES_MAX} B")]
    Length,
    /// No page is ready for a first touch. A retry can help later.
    #[error("no page is ready yet")]
    Dry,
}

impl From<Missed> for AccessError {
    fn from(missed: Missed) -> AccessError {
        match missed {
            Missed::Unmapped => AccessError::Unmapped,
            Missed::Permission => AccessError::Permission,
            Missed::Dry => AccessError::Dry,
        }
    }
}

/// The memory of a node. An access is one call, so it is seen whole or not at all.
pub struct VirtualMemory<B> {
    map: AddressMap,
    bytes: B,
}

/// The physical parts of an access, page by page.
struct Spans {
    starts: [u64; SPANS_MAX],
    count: usize,
}

/// The bytes of an access, where they are in a memory.
pub struct Extent {
    address: u64,
    bytes: usize,
    spans: Spans,
}

impl Extent {
    /// Its length in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl fmt::Debug for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B at {} in {} parts", self.bytes, self.address, self.spans.count)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> VirtualMemory<B> {
    /// A memory in `bytes`, which must be zeros. They are not checked: reading all of them would
    /// touch memory that the system allocates only when it is used.
    ///
    /// # Errors
    /// [`MemoryConfigError`].
    ///
    /// # Panics
    /// If the length of `bytes` is not the configured size.
    pub fn new(
        config: &MemoryConfig,
        key: HashKey,
        bytes: B,
    ) -> Result<VirtualMemory<B>, MemoryConfigError> {
        let map = AddressMap::new(config, key)?;
        assert_eq!(bytes.as_ref().len() as u64, config.memory.0, "the memory is as configured");
        Ok(VirtualMemory { map, bytes })
    }

    /// The size of the memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// The address spaces of the memory.
    #[must_use]
    pub fn map(&self) -> &AddressMap {
        &self.map
    }

    /// The address spaces, to allocate and release.
    pub fn map_mut(&mut self) -> &mut AddressMap {
        &mut self.map
    }

    /// Copies the bytes from `address` on.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn read(
        &mut self,
        space: SpaceId,
        address: u64,
        into: &mut [u8],
    ) -> Result<(), AccessError> {
        let spans = self.spans(space, address, into.len(), Permissions::READ)?;
        let (bytes, page_bytes) = (self.bytes.as_ref(), self.map.page_size().bytes());
        spans.parts(address, into.len(), page_bytes, |start, from, length| {
            into[from..from + length].copy_from_slice(&bytes[start..start + length]);
        });
        Ok(())
    }

    /// Finds the bytes from `address` on, as an access with these permissions that copies nothing.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn extent(
        &mut self,
        space: SpaceId,
        (address, bytes): (u64, usize),
        needed: Permissions,
    ) -> Result<Extent, AccessError> {
        let spans = self.spans(space, address, bytes, needed)?;
        Ok(Extent { address, bytes, spans })
    }

    /// The bytes of an extent, in order, to be written.
    pub fn slices_mut(&mut self, extent: &Extent) -> Vec<&mut [u8]> {
        let page_bytes = self.map.page_size().bytes();
        let mut parts = Vec::new();
        extent.spans.parts(extent.address, extent.bytes, page_bytes, |start, from, length| {
            parts.push((start, from, length));
        });
        // The parts are of different pages, so none overlaps another.
        parts.sort_unstable();
        let (mut rest, mut at) = (self.bytes.as_mut(), 0);
        let mut slices = Vec::with_capacity(parts.len());
        for (start, from, length) in parts {
            let (_, tail) = rest.split_at_mut(start - at);
            let (part, tail) = tail.split_at_mut(length);
            slices.push((from, part));
            (rest, at) = (tail, start + length);
        }
        slices.sort_unstable_by_key(|(from, _)| *from);
        slices.into_iter().map(|(_, part)| part).collect()
    }

    /// The bytes of an extent, in order. It holds until the next change of the address spaces.
    pub fn slices<'m>(&'m self, extent: &Extent, mut each: impl FnMut(&'m [u8])) {
        let (bytes, page_bytes) = (self.bytes.as_ref(), self.map.page_size().bytes());
        extent.spans.parts(extent.address, extent.bytes, page_bytes, |start, _, length| {
            each(&bytes[start..start + length]);
        });
    }

    /// Writes `data` from `address` on.
    ///
    /// # Errors
    /// [`AccessError`]; no byte is written then.
    pub fn write(&mut self, space: SpaceId, address: u64, data: &[u8]) -> Result<(), AccessError> {
        let spans = self.spans(space, address, data.len(), Permissions::WRITE)?;
        let page_bytes = self.map.page_size().bytes();
        let bytes = self.bytes.as_mut();
        spans.parts(address, data.len(), page_bytes, |start, from, length| {
            bytes[start..start + length].copy_from_slice(&data[from..from + length]);
        });
        Ok(())
    }

    /// Prepares every page of a write, so that the write cannot fail until the region is released.
    ///
    /// # Errors
    /// [`AccessError`], as for the write.
    pub fn prepare_write(
        &mut self,
        space: SpaceId,
        address: u64,
        bytes: usize,
    ) -> Result<(), AccessError> {
        self.spans(space, address, bytes, Permissions::WRITE).map(drop)
    }

    /// Executes an atomic on a little-endian word, and returns the word before.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn modify(
        &mut self,
        space: SpaceId,
        address: u64,
        operation: RmwOperation,
    ) -> Result<u64, AccessError> {
        if !address.is_multiple_of(WORD_BYTES as u64) {
            return Err(AccessError::Misaligned);
        }
        let start = self.map.translate(space, address, Permissions::READ_WRITE)?;
        let place = &mut self.bytes.as_mut()[start as usize..][..WORD_BYTES];
        let before = u64::from_le_bytes((&*place).try_into().expect("a word is 8 B"));
        place.copy_from_slice(&operation.apply(before).to_le_bytes());
        Ok(before)
    }

    /// Shares an allocation: see [`AddressMap::share`].
    ///
    /// # Errors
    /// [`ShareError`].
    pub fn share(
        &mut self,
        owned: (SpaceId, u64),
        with: SpaceId,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<u64, ShareError> {
        let (bits, bytes) = (self.map.page_size().bits(), self.bytes.as_mut());
        let zero = |page, from, length| fill(bytes, bits, (page, from, length));
        self.map.share(owned, with, at, permissions, zero)
    }

    /// Continues a task: see [`Task::step`].
    pub fn step(&mut self, task: &mut Task, steps: &mut Steps) -> Poll<Result<Ended, Failed>> {
        let (bits, bytes) = (self.map.page_size().bits(), self.bytes.as_mut());
        let mut zero = |page, from, length| fill(bytes, bits, (page, from, length));
        task.step(&mut self.map, steps, &mut zero)
    }

    /// Fills the buffer of free pages, and zeroes about `budget_bytes` for it.
    pub fn refill(&mut self, budget_bytes: u64) {
        let (bits, bytes) = (self.map.page_size().bits(), self.bytes.as_mut());
        self.map.refill(budget_bytes, |page, from, length| {
            fill(bytes, bits, (page, from, length));
        });
    }

    /// Translates every page of an access before any of its bytes is used.
    fn spans(
        &mut self,
        space: SpaceId,
        address: u64,
        bytes: usize,
        needed: Permissions,
    ) -> Result<Spans, AccessError> {
        if bytes == 0 || bytes > ACCESS_BYTES_MAX {
            return Err(AccessError::Length);
        }
        let page_bytes = self.map.page_size().bytes();
        let last = address.checked_add(bytes as u64 - 1).ok_or(AccessError::Unmapped)?;
        let mut spans = Spans { starts: [0; SPANS_MAX], count: 0 };
        let mut at = address;
        loop {
            spans.starts[spans.count] = self.map.translate(space, at, needed)?;
            spans.count += 1;
            at = (at | (page_bytes - 1)) + 1;
            if at > last {
                return Ok(spans);
            }
        }
    }
}

impl Spans {
    /// Each part: its place in memory, its place in the access, and its length.
    fn parts(
        &self,
        address: u64,
        bytes: usize,
        page_bytes: u64,
        mut each: impl FnMut(usize, usize, usize),
    ) {
        let mut from = 0;
        for &start in &self.starts[..self.count] {
            let at = address + from as u64;
            let rest = page_bytes - (at & (page_bytes - 1));
            let length = (bytes - from).min(usize::try_from(rest).unwrap_or(usize::MAX));
            each(start as usize, from, length);
            from += length;
        }
    }
}

/// Zeroes a part of a page.
fn fill(bytes: &mut [u8], page_bits: u32, (page, from, length): (u32, u64, u64)) {
    let start = (u64::from(page) << page_bits) + from;
    bytes[start as usize..(start + length) as usize].fill(0);
}
