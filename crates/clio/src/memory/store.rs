//! The memory of a node as processes see it: their addresses, and the bytes there.

use core::task::Poll;

use ethermem_wire::RmwOperation;
use ethermem_wire::clio::Permissions;
use thiserror::Error;

use super::allocator::ShareError;
use super::hash::HashKey;
use super::map::{AddressMap, Missed};
use super::page::{MemoryConfig, MemoryConfigError, SpaceId};
use super::task::{Ended, Failed, Steps, Task};

/// Longest access: what a datagram could carry.
pub const ACCESS_BYTES_MAX: usize = 1 << 16;
/// Pages that the longest access may touch, if they are the smallest.
const SPANS_MAX: usize = (ACCESS_BYTES_MAX >> 12) + 1;
const WORD_BYTES: usize = 8;

/// Why an access was refused. It had no effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AccessError {
    /// Some of the bytes are not the process's. A retry cannot help.
    #[error("some of the bytes are not the process's")]
    Unmapped,
    /// The process may not do that there. A retry cannot help.
    #[error("the process may not do that there")]
    Permission,
    /// An atomic must be at a multiple of 8. A retry cannot help.
    #[error("an atomic must be at a multiple of 8")]
    Misaligned,
    /// Longer than an access may be, or of nothing. A retry cannot help.
    #[error("allowed are 1 to {ACCESS_BYTES_MAX} B")]
    Length,
    /// No page is ready for a first touch; later there is one.
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

/// See the module. An access is one call: it is seen whole or not at all.
pub struct VirtualMemory<B> {
    map: AddressMap,
    bytes: B,
}

/// Where the parts of an access are, page by page.
struct Spans {
    starts: [u64; SPANS_MAX],
    count: usize,
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> VirtualMemory<B> {
    /// The memory that `bytes` are, which must be zeros: reading all of them to see would touch
    /// what the system gives only when it is used.
    ///
    /// # Errors
    /// [`MemoryConfigError`].
    ///
    /// # Panics
    /// If `bytes` are not as many as the configuration says.
    pub fn new(
        config: &MemoryConfig,
        key: HashKey,
        bytes: B,
    ) -> Result<VirtualMemory<B>, MemoryConfigError> {
        let map = AddressMap::new(config, key)?;
        assert_eq!(bytes.as_ref().len() as u64, config.memory.0, "the memory is as configured");
        Ok(VirtualMemory { map, bytes })
    }

    /// How many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    /// Who has which addresses.
    #[must_use]
    pub fn map(&self) -> &AddressMap {
        &self.map
    }

    /// The same, to allocate and release.
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

    /// Makes every page of a write ready: that write cannot fail until the region is released.
    ///
    /// # Errors
    /// [`AccessError`], as the write.
    pub fn prepare_write(
        &mut self,
        space: SpaceId,
        address: u64,
        bytes: usize,
    ) -> Result<(), AccessError> {
        self.spans(space, address, bytes, Permissions::WRITE).map(drop)
    }

    /// Executes an atomic on a little-endian word, and gives the word before.
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

    /// See [`AddressMap::share`].
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

    /// Goes on with a task: see [`Task::step`].
    pub fn step(&mut self, task: &mut Task, steps: &mut Steps) -> Poll<Result<Ended, Failed>> {
        let (bits, bytes) = (self.map.page_size().bits(), self.bytes.as_mut());
        let mut zero = |page, from, length| fill(bytes, bits, (page, from, length));
        task.step(&mut self.map, steps, &mut zero)
    }

    /// Fills the buffer of free pages, and zeroes about so many bytes for it.
    pub fn refill(&mut self, budget_bytes: u64) {
        let (bits, bytes) = (self.map.page_size().bits(), self.bytes.as_mut());
        self.map.refill(budget_bytes, |page, from, length| {
            fill(bytes, bits, (page, from, length));
        });
    }

    /// Translates every page of an access before any byte of it is used.
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
    /// Each part: where it is, where it is in the access, and how long.
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
