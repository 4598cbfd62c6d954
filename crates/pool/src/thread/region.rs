//! Regions: contiguous memory, allocated as one.

use super::Thread;
use crate::address::{Address, Permissions, ProcessId};
use crate::error::Error;
use crate::operation::{Reply, Segment};
use crate::pending::{Convert, Pending};

/// A region of remote memory, and a thread to access it by. Dropping it does not free the region:
/// other threads, and pointers in remote memory, may know its address.
#[derive(Clone, Debug)]
pub struct Region {
    thread: Thread,
    address: Address,
    bytes: u64,
}

impl Region {
    pub(crate) fn new(thread: Thread, address: Address, bytes: u64) -> Region {
        Region { thread, address, bytes }
    }

    /// Address of its first byte.
    #[must_use]
    pub fn address(&self) -> Address {
        self.address
    }

    /// Length in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Address of the byte at an offset; see [`Region::read`] for offsets past its end.
    #[must_use]
    pub fn at(&self, offset: u64) -> Address {
        self.address.add(offset)
    }

    /// Thread that accesses the region.
    #[must_use]
    pub fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The same region, accessed by another thread.
    #[must_use]
    pub fn by(&self, thread: &Thread) -> Region {
        Region::new(thread.clone(), self.address, self.bytes)
    }

    /// Reads `bytes` bytes from an offset on. Outside of the region it fails with
    /// [`Error::Unmapped`], whatever else the process has there.
    pub fn read(&self, offset: u64, bytes: u64) -> Pending<Vec<u8>> {
        match self.inside(offset, bytes) {
            Ok(address) => self.thread.read(address, bytes),
            Err(error) => self.thread.refuse(error, Convert::Plain(Reply::into_bytes)),
        }
    }

    /// Fills `to` from an offset on, and waits for completion.
    ///
    /// # Errors
    /// As [`Region::read`]. `to` may have some of the bytes then.
    pub fn read_into(&self, offset: u64, to: &mut [u8]) -> Result<(), Error> {
        self.thread.read_into(self.inside(offset, to.len() as u64)?, to)
    }

    /// Writes `data` from an offset on. Outside of the region it fails as [`Region::read`] does.
    pub fn write(&self, offset: u64, data: &[u8]) -> Pending<()> {
        match self.inside(offset, data.len() as u64) {
            Ok(address) => self.thread.write(address, data),
            Err(error) => self.thread.refuse(error, Convert::Plain(drop)),
        }
    }

    /// Writes `data` from an offset on, and waits for completion.
    ///
    /// # Errors
    /// As [`Region::read`].
    pub fn write_from(&self, offset: u64, data: &[u8]) -> Result<(), Error> {
        self.thread.write_from(self.inside(offset, data.len() as u64)?, data)
    }

    /// Grants another process access at the same address, or revokes it with [`Permissions::NONE`].
    /// Only the region's owner may call this.
    pub fn share(&self, with: ProcessId, permissions: Permissions) -> Pending<()> {
        let region = Segment { address: self.address, bytes: self.bytes };
        self.thread.share(region, with, permissions)
    }

    /// Frees the region. Only its owner may; over a network, another process ends its share by it.
    pub fn free(self) -> Pending<()> {
        self.thread.free(self.address, self.bytes)
    }

    fn inside(&self, offset: u64, bytes: u64) -> Result<Address, Error> {
        let end = offset.checked_add(bytes);
        if end.is_some_and(|end| end <= self.bytes) {
            return Ok(self.address.add(offset));
        }
        Err(Error::Unmapped { address: self.address.add(offset), bytes })
    }
}
