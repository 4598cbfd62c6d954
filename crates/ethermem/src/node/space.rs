//! Regions and their bytes.

use std::cell::Cell;
use std::collections::BTreeMap;

use ethermem_pool::{Address, Error, OFFSET_MAX, PAGE_BYTES, Permissions, ProcessId, Segment};
use ethermem_wire::RmwOperation;
use slab::Slab;

const WORD_BYTES: u64 = 8;
/// Bytes of a line of a compute node's cache.
#[cfg(feature = "sim")]
const LINE_BYTES: usize = 64;

/// Accesses repeat on few regions, so the region found last is remembered per page. A page belongs
/// to one region. This is the number of entries; several pages share one.
const HINTS: usize = 4096;

/// A memory node in this process, as the module `node` describes it.
#[derive(Debug)]
pub(crate) struct Node {
    /// Index of the node among the pool's memory nodes.
    number: u16,
    free_bytes: u64,
    regions: Slab<Region>,
    /// Indices of the regions, by their first offset.
    places: BTreeMap<u64, usize>,
    /// Probable region of a page.
    hints: Box<[Cell<u32>]>,
    /// Offset where the next region is searched. Freed addresses are reused as late as possible.
    next: u64,
}

#[derive(Debug)]
struct Region {
    offset: u64,
    bytes: Vec<u8>,
    owner: ProcessId,
    permissions: Permissions,
    /// Other processes and their permissions, each process once.
    shared: Vec<(ProcessId, Permissions)>,
}

impl Region {
    fn allow(&self, process: ProcessId, needed: Permissions) -> Option<bool> {
        if process == self.owner {
            return Some(self.permissions.allow(needed));
        }
        let shared = self.shared.iter().find(|(with, _)| *with == process);
        shared.map(|(_, permissions)| permissions.allow(needed))
    }

    /// Offset in the region of `bytes` bytes at a node's offset, if all of them are in the region.
    fn start_of(&self, offset: u64, bytes: u64) -> Option<u64> {
        let start = offset.checked_sub(self.offset)?;
        (start.checked_add(bytes)? <= self.bytes.len() as u64).then_some(start)
    }
}

impl Node {
    pub(crate) fn new(number: u16, memory_bytes: u64) -> Node {
        Node {
            number,
            free_bytes: memory_bytes,
            regions: Slab::new(),
            places: BTreeMap::new(),
            hints: vec![Cell::new(0); HINTS].into(),
            next: PAGE_BYTES,
        }
    }

    /// Allocates a region of zeros.
    pub(crate) fn alloc(
        &mut self,
        process: ProcessId,
        bytes: u64,
        permissions: Permissions,
    ) -> Result<Address, Error> {
        let full = Error::Full { bytes, free: self.free_bytes };
        if bytes > self.free_bytes {
            return Err(full);
        }
        let place = self.place(bytes).ok_or_else(|| full.clone())?;
        // The system zeroes pages when they are touched, so a large region costs only what is used
        // of it.
        let size = usize::try_from(bytes).map_err(|_| full.clone())?;
        Vec::<u8>::new().try_reserve_exact(size).map_err(|_| full)?;
        let contents = vec![0; size];
        self.free_bytes -= bytes;
        self.next = place + bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let region = Region {
            offset: place,
            bytes: contents,
            owner: process,
            permissions,
            shared: Vec::new(),
        };
        self.places.insert(place, self.regions.insert(region));
        Ok(Address::new(self.number, place))
    }

    /// The first gap from `next` on, wrapping around.
    fn place(&self, bytes: u64) -> Option<u64> {
        let room = bytes.next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
        let fits = |from: u64, to: u64| from.checked_add(room).is_some_and(|end| end <= to);
        let mut from = self.next;
        for pass in 0..2 {
            for (&at, &index) in self.places.range(from..) {
                if fits(from, at) {
                    return Some(from);
                }
                let region = &self.regions[index];
                from = at + (region.bytes.len() as u64).next_multiple_of(PAGE_BYTES) + PAGE_BYTES;
            }
            if fits(from, OFFSET_MAX) {
                return Some(from);
            }
            if pass == 0 {
                from = PAGE_BYTES;
            }
        }
        None
    }

    /// Frees a region at its first address, if the process owns it.
    pub(crate) fn free(&mut self, process: ProcessId, region: Segment) -> Result<(), Error> {
        self.owned(process, region)?;
        let index = self.places.remove(&region.address.offset()).expect("found above");
        let region = self.regions.remove(index);
        self.free_bytes += region.bytes.len() as u64;
        Ok(())
    }

    /// Grants another process permissions on a region, or revokes them. Only the owner may, and
    /// grants at most its own permissions.
    pub(crate) fn share(
        &mut self,
        process: ProcessId,
        segment: Segment,
        with: ProcessId,
        permissions: Permissions,
    ) -> Result<(), Error> {
        let (address, region) = (segment.address, self.owned(process, segment)?);
        if !region.permissions.allow(permissions) {
            return Err(Error::Permission { address, needed: permissions });
        }
        region.shared.retain(|(other, _)| *other != with);
        if permissions != Permissions::NONE && with != region.owner {
            region.shared.push((with, permissions));
        }
        Ok(())
    }

    fn owned(&mut self, process: ProcessId, segment: Segment) -> Result<&mut Region, Error> {
        let Segment { address, bytes } = segment;
        let index = self.places.get(&address.offset()).filter(|_| self.has(address));
        let region = index.map(|&index| &mut self.regions[index]);
        region.filter(|region| region.owner == process).ok_or(Error::Unmapped { address, bytes })
    }

    pub(crate) fn read(
        &self,
        process: ProcessId,
        address: Address,
        bytes: u64,
    ) -> Result<&[u8], Error> {
        let (index, start) = self.permitted(process, address, bytes, Permissions::READ)?;
        Ok(&self.regions[index].bytes[start..start + bytes as usize])
    }

    pub(crate) fn write(
        &mut self,
        process: ProcessId,
        address: Address,
        data: &[u8],
    ) -> Result<(), Error> {
        let bytes = data.len() as u64;
        let place = self.writable(process, address, bytes, Permissions::WRITE)?;
        place.copy_from_slice(data);
        Ok(())
    }

    /// Executes an atomic on a little-endian word, and returns the previous word.
    pub(crate) fn modify(
        &mut self,
        process: ProcessId,
        address: Address,
        operation: RmwOperation,
    ) -> Result<u64, Error> {
        if !self.has(address) {
            return Err(Error::Unmapped { address, bytes: WORD_BYTES });
        }
        if !address.0.is_multiple_of(WORD_BYTES) {
            return Err(Error::Misaligned { address });
        }
        let needed = Permissions::READ_WRITE;
        let word = self.writable(process, address, WORD_BYTES, needed)?;
        let old = u64::from_le_bytes((&*word).try_into().expect("a word is 8 B"));
        word.copy_from_slice(&operation.apply(old).to_le_bytes());
        Ok(old)
    }

    /// The bytes of an access that changes them.
    pub(crate) fn writable(
        &mut self,
        process: ProcessId,
        address: Address,
        bytes: u64,
        needed: Permissions,
    ) -> Result<&mut [u8], Error> {
        let (index, start) = self.permitted(process, address, bytes, needed)?;
        Ok(&mut self.regions[index].bytes[start..start + bytes as usize])
    }

    /// True if an address is on this node.
    pub(crate) fn has(&self, address: Address) -> bool {
        address.memory() == self.number
    }

    /// The region of an access that its process may make, and the access's offset in it.
    #[inline]
    fn permitted(
        &self,
        process: ProcessId,
        address: Address,
        bytes: u64,
        needed: Permissions,
    ) -> Result<(usize, usize), Error> {
        // Most accesses are by the owner, to the region that was found there last.
        let hinted = self.hint(address).get() as usize;
        if self.has(address)
            && let Some(region) = self.regions.get(hinted)
            && let Some(start) = region.start_of(address.offset(), bytes)
            && region.owner == process
            && region.permissions.allow(needed)
        {
            return Ok((hinted, start as usize));
        }
        self.permitted_anywhere(process, address, bytes, needed)
    }

    #[inline(never)]
    fn permitted_anywhere(
        &self,
        process: ProcessId,
        address: Address,
        bytes: u64,
        needed: Permissions,
    ) -> Result<(usize, usize), Error> {
        let (index, start) =
            self.containing(address, bytes).ok_or(Error::Unmapped { address, bytes })?;
        match self.regions[index].allow(process, needed) {
            Some(true) => Ok((index, start as usize)),
            Some(false) => Err(Error::Permission { address, needed }),
            // A process does not learn about other processes' regions.
            None => Err(Error::Unmapped { address, bytes }),
        }
    }

    #[inline]
    fn hint(&self, address: Address) -> &Cell<u32> {
        &self.hints[(address.offset() / PAGE_BYTES) as usize % HINTS]
    }

    fn containing(&self, address: Address, bytes: u64) -> Option<(usize, u64)> {
        if !self.has(address) {
            return None;
        }
        let (offset, hint) = (address.offset(), self.hint(address));
        let start_in = |index: usize| self.regions.get(index)?.start_of(offset, bytes);
        let hinted = hint.get() as usize;
        if let Some(start) = start_in(hinted) {
            return Some((hinted, start));
        }
        let (_, &index) = self.places.range(..=offset).next_back()?;
        let start = start_in(index)?;
        // An index that does not fit the entry is not found by it, and then searched in the tree.
        hint.set(index as u32);
        Some((index, start))
    }
}

/// What caches of compute nodes need.
#[cfg(feature = "sim")]
impl Node {
    /// True if a process may write a range.
    pub(crate) fn may_write(&self, process: ProcessId, address: Address, bytes: u64) -> bool {
        self.permitted(process, address, bytes, Permissions::WRITE).is_ok()
    }

    /// True if a process may execute an atomic on a word.
    pub(crate) fn may_modify(&self, process: ProcessId, address: Address) -> bool {
        address.0.is_multiple_of(WORD_BYTES)
            && self.permitted(process, address, WORD_BYTES, Permissions::READ_WRITE).is_ok()
    }

    /// True if this is a region of a process.
    pub(crate) fn is_region(&self, process: ProcessId, segment: Segment) -> bool {
        let index = self.places.get(&segment.address.offset());
        let region = index.map(|&index| &self.regions[index]);
        region.is_some_and(|region| {
            region.owner == process && region.bytes.len() as u64 == segment.bytes
        })
    }

    /// The line at an offset. Bytes that are of no region are zero.
    pub(crate) fn line(&self, offset: u64) -> [u8; LINE_BYTES] {
        let mut line = [0; LINE_BYTES];
        if let Some((index, start)) = self.containing(Address::new(self.number, offset), 1) {
            let rest = &self.regions[index].bytes[start as usize..];
            let bytes = rest.len().min(LINE_BYTES);
            line[..bytes].copy_from_slice(&rest[..bytes]);
        }
        line
    }

    /// Writes the bytes of a line that a mask names, bit by bit. Bytes of no region are dropped.
    pub(crate) fn write_line(&mut self, offset: u64, mask: u64, data: &[u8; LINE_BYTES]) {
        let Some((index, start)) = self.containing(Address::new(self.number, offset), 1) else {
            return;
        };
        let rest = &mut self.regions[index].bytes[start as usize..];
        for (at, (to, from)) in rest.iter_mut().zip(data).enumerate() {
            if mask >> at & 1 == 1 {
                *to = *from;
            }
        }
    }
}

#[cfg(test)]
mod tests;
