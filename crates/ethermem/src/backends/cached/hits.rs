//! Accesses that end before the call returns: hits, and writes that find room.
//!
//! This is the only code that runs for a hit. It makes no system call and begins no operation,
//! except where a write replaces a dirty line.

use ethermem_cxl::cache::WriteStep;
use ethermem_pool::{Address, Asker, Op, Permissions, ProcessId, Reply, Segment};
use ethermem_wire::cxl::LineAddress;

use super::regions::LINE;
use super::{ACCESS_MAX, Cached};

/// The region of the last hit, as far as a hit needs it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recent {
    process: ProcessId,
    from: u64,
    to: u64,
    first: u64,
    permissions: Permissions,
}

impl Cached {
    /// The reply of an operation that needs nothing but the cache.
    pub(super) fn hit(&mut self, asker: Asker, op: &Op) -> Option<Reply> {
        match op {
            Op::Read(segments) => {
                let [Segment { address, bytes }] = segments[..] else { return None };
                // A buffer is made only for bytes that may be here.
                self.region_of(asker.process, address, bytes, Permissions::READ)?;
                let mut to = vec![0; bytes as usize];
                self.read_hit(asker, address, &mut to).then_some(Reply::Bytes(to))
            }
            Op::Write(segments, data) => {
                let [Segment { address, .. }] = segments[..] else { return None };
                self.write_hit(asker, address, data).then_some(Reply::Done)
            }
            _ => None,
        }
    }

    /// Reads if every byte is here.
    pub(super) fn read_hit(&mut self, asker: Asker, address: Address, to: &mut [u8]) -> bool {
        let bytes = to.len() as u64;
        let Some(region) = self.region_of(asker.process, address, bytes, Permissions::READ) else {
            return false;
        };
        let mut offset = address.0 - region.from;
        let mut rest = to;
        while !rest.is_empty() {
            let (line, from, bytes) = region.part(offset, rest.len());
            let (part, others) = rest.split_at_mut(bytes);
            if !self.cache.read_bytes(line, from, part) {
                return false;
            }
            rest = others;
            offset += bytes as u64;
        }
        true
    }

    /// Writes if every line is here or finds room. Otherwise some of the bytes may be written; the
    /// operation that follows writes them again.
    pub(super) fn write_hit(&mut self, asker: Asker, address: Address, bytes: &[u8]) -> bool {
        let most = bytes.len() as u64;
        let Some(region) = self.region_of(asker.process, address, most, Permissions::WRITE) else {
            return false;
        };
        if self.passing_all.is_some() {
            return false;
        }
        let mut offset = address.0 - region.from;
        let mut rest = bytes;
        while !rest.is_empty() {
            let (line, from, bytes) = region.part(offset, rest.len());
            let (part, others) = rest.split_at(bytes);
            let is_hit = self.cache.write_hit(line, from, part);
            if !is_hit && !self.allocate(asker.process, region.from + offset, line, from, part) {
                return false;
            }
            rest = others;
            offset += bytes as u64;
        }
        true
    }

    /// Writes to a line that is not here, if it finds room.
    fn allocate(
        &mut self,
        process: ProcessId,
        address: u64,
        line: LineAddress,
        from: usize,
        bytes: &[u8],
    ) -> bool {
        let found = self.regions.find(process, Address(address), bytes.len() as u64);
        let is_word = found.is_none_or(|region| region.part(address, 1).is_word);
        if is_word || self.is_passing(line.number()) || self.leaving.is_full() {
            return false;
        }
        match self.cache.write_bytes(line, from, bytes) {
            WriteStep::Replaced(victim) => self.leave(&victim),
            WriteStep::Hit | WriteStep::Allocated => {}
            WriteStep::Stalled => return false,
        }
        true
    }

    /// The region that holds these bytes, if the cache takes them and its process is not in doubt.
    #[inline]
    fn region_of(
        &mut self,
        process: ProcessId,
        address: Address,
        bytes: u64,
        needed: Permissions,
    ) -> Option<Recent> {
        if self.inner.doubts() != self.doubts || bytes > ACCESS_MAX {
            return None;
        }
        match self.recent {
            Some(recent) if recent.holds(process, address.0, bytes) => Some(recent),
            _ => self.find_region(process, address, bytes),
        }
        .filter(|region| region.permissions.allow(needed))
    }

    #[cold]
    fn find_region(&mut self, process: ProcessId, address: Address, bytes: u64) -> Option<Recent> {
        let region = self.regions.find(process, address, bytes)?;
        if self.doubtful.contains(&process) {
            return None;
        }
        let (from, to, first) = (region.from, region.to(), region.first);
        let found = Recent { process, from, to, first, permissions: region.permissions };
        self.recent = Some(found);
        Some(found)
    }
}

impl Recent {
    #[inline]
    fn holds(&self, process: ProcessId, address: u64, bytes: u64) -> bool {
        // No access is long enough to overflow.
        self.process == process
            && self.from <= address
            && address <= self.to
            && bytes <= self.to - address
    }

    /// Line, offset in it and length of the first part of `bytes` bytes from an offset on.
    #[inline]
    fn part(&self, offset: u64, bytes: usize) -> (LineAddress, usize, usize) {
        let from = (offset % LINE) as usize;
        let line = LineAddress::new(self.first + offset / LINE).expect("its numbers were reserved");
        (line, from, bytes.min(LINE as usize - from))
    }
}
