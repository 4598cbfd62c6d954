//! Reads and writes that the cache takes, line by line.

use ethermem_cxl::cache::{ReadStep, WriteStep};
use ethermem_pool::{Address, Asker, Error, Op, OpId, Reply, Segment, Segments};
use smallvec::{SmallVec, smallvec};

use super::regions::{LINE, Part};
use super::{Awaits, Cached, NO_READ, Purpose, Step, Waiter};

/// A read or a write of cached memory.
pub(super) struct CachedAccess {
    pub(super) id: OpId,
    pub(super) asker: Asker,
    segments: Segments,
    /// The bytes to write, or those that were read.
    pub(super) data: Vec<u8>,
    is_read: bool,
    /// Offset in `data` of the first byte that nothing was done about.
    next: usize,
    /// Number of parts that wait for their lines.
    pub(super) left: u32,
    pub(super) error: Option<Error>,
    pub(super) awaits: Awaits,
    pub(super) is_parked: bool,
    /// The cache does not take it any more.
    passes: bool,
}

impl CachedAccess {
    pub(super) fn read(id: OpId, asker: Asker, segments: Segments) -> CachedAccess {
        let bytes: u64 = segments.iter().map(|segment| segment.bytes).sum();
        let data = vec![0; bytes as usize];
        CachedAccess { is_read: true, ..CachedAccess::write(id, asker, segments, data) }
    }

    pub(super) fn write(id: OpId, asker: Asker, segments: Segments, data: Vec<u8>) -> CachedAccess {
        CachedAccess {
            id,
            asker,
            segments,
            data,
            is_read: false,
            next: 0,
            left: 0,
            error: None,
            awaits: Awaits::default(),
            is_parked: false,
            passes: false,
        }
    }

    /// Address of the next byte, and the bytes up to the end of its range.
    fn place(&self) -> Option<(u64, u64)> {
        let mut before = self.next as u64;
        for segment in &self.segments {
            if before < segment.bytes {
                return Some((segment.address.0 + before, segment.bytes - before));
            }
            before -= segment.bytes;
        }
        None
    }

    /// What its end is, once nothing of it is in flight.
    fn outcome(&mut self) -> Step {
        if let Some(error) = self.error.take() {
            return Step::Ended(Err(error));
        }
        let (data, segments) = (std::mem::take(&mut self.data), self.segments.clone());
        match (self.passes, self.is_read) {
            (true, true) => Step::Pass(Op::Read(segments)),
            (true, false) => Step::Pass(Op::Write(segments, data)),
            (false, true) => Step::Ended(Ok(Reply::Bytes(data))),
            (false, false) => Step::Ended(Ok(Reply::Done)),
        }
    }
}

/// What became of a part of an access.
enum Done {
    Part,
    Park(Awaits),
    /// Its memory is not cached any more.
    Passes,
}

/// Lines to fetch, each with the cache's number of its fetch, in order.
type Batch = SmallVec<[(u64, u32); 4]>;

impl Cached {
    pub(super) fn step_access(&mut self, place: usize, access: &mut CachedAccess) -> Step {
        access.is_parked = false;
        if self.doubtful.contains(&access.asker.process)
            && self.regions.has(access.asker.process)
            && access.error.is_none()
        {
            self.probe(access.asker);
            return Step::Park(Awaits::Probe);
        }
        let mut batch = Batch::new();
        let mut parked = None;
        while access.error.is_none() && !access.passes {
            let Some((address, bytes)) = access.place() else { break };
            let process = access.asker.process;
            let region = self.regions.find(process, Address(address), 1);
            let part = region.map(|region| region.part(address, bytes.min(region.to() - address)));
            let done = match part {
                None | Some(Part { is_word: true, .. }) => Done::Passes,
                Some(part) if access.is_read => self.read_part(place, access, part, &mut batch),
                Some(part) => self.write_part(access, part),
            };
            match done {
                Done::Part => {}
                Done::Passes => access.passes = true,
                Done::Park(awaits) => {
                    parked = Some(awaits);
                    break;
                }
            }
        }
        if !batch.is_empty() {
            self.widen(&mut batch);
            self.fetch(access.asker, &batch);
        }
        match parked {
            Some(Awaits::Leaving) => {
                self.retry();
                Step::Park(Awaits::Leaving)
            }
            Some(awaits) => Step::Park(awaits),
            None if access.left > 0 => Step::Underway,
            None => access.outcome(),
        }
    }

    fn read_part(
        &mut self,
        place: usize,
        access: &mut CachedAccess,
        part: Part,
        batch: &mut Batch,
    ) -> Done {
        let Part { line, from, bytes, .. } = part;
        let at = access.next;
        if !self.cache.read_bytes(line, from, &mut access.data[at..][..bytes]) {
            if self.is_passing(line.number()) {
                return Done::Park(Awaits::Others);
            }
            if self.leaving.holds(line.number()) || self.leaving.is_full() {
                return Done::Park(Awaits::Leaving);
            }
            let (work, at16) = (place as u32, at as u16);
            let waiter = Waiter { work, at: at16, from: from as u8, bytes: bytes as u8 };
            match self.cache.read(line, waiter) {
                ReadStep::Hit(data) => {
                    access.data[at..][..bytes].copy_from_slice(&data[from..][..bytes]);
                }
                ReadStep::Miss { fetch, victim } => {
                    victim.iter().for_each(|victim| self.leave(victim));
                    batch.push((line.number(), fetch));
                    access.left += 1;
                }
                ReadStep::Merged => access.left += 1,
                ReadStep::Stalled => return Done::Park(Awaits::Others),
            }
        }
        access.next += bytes;
        Done::Part
    }

    fn write_part(&mut self, access: &mut CachedAccess, part: Part) -> Done {
        let Part { line, from, bytes, .. } = part;
        if self.passing_all.is_some() {
            return Done::Park(Awaits::Others);
        }
        let data = &access.data[access.next..][..bytes];
        if !self.cache.write_hit(line, from, data) {
            if self.is_passing(line.number()) {
                return Done::Park(Awaits::Others);
            }
            if self.leaving.is_full() {
                return Done::Park(Awaits::Leaving);
            }
            match self.cache.write_bytes(line, from, data) {
                WriteStep::Hit | WriteStep::Allocated => {}
                WriteStep::Replaced(victim) => self.leave(&victim),
                WriteStep::Stalled => return Done::Park(Awaits::Others),
            }
        }
        access.next += bytes;
        Done::Part
    }

    /// Adds the other lines of the blocks of a batch, as far as they are in the region, are not
    /// here, and nothing else is done with them.
    fn widen(&mut self, batch: &mut Batch) {
        if self.block_lines == 1 {
            return;
        }
        let asked: SmallVec<[u64; 4]> = batch.iter().map(|&(line, _)| line).collect();
        for line in asked {
            let Some((region, address)) = self.regions.at_line(line) else { continue };
            let block_bytes = self.block_lines * LINE;
            let from = (address - address % block_bytes).max(region.from);
            let to = (address - address % block_bytes + block_bytes).min(region.to());
            let region = region.clone();
            for part in (from..to).step_by(LINE as usize).map(|at| region.part(at, LINE)) {
                self.fetch_beside(part, batch);
            }
        }
        batch.sort_unstable();
    }

    fn fetch_beside(&mut self, part: Part, batch: &mut Batch) {
        let line = part.line;
        let is_busy = part.is_word
            || self.is_passing(line.number())
            || self.leaving.holds(line.number())
            || self.leaving.is_full()
            || self.cache.place_of(line).is_some();
        if is_busy {
            return;
        }
        let beside = Waiter { work: NO_READ, at: 0, from: 0, bytes: 0 };
        if let ReadStep::Miss { fetch, victim } = self.cache.read(line, beside) {
            victim.iter().for_each(|victim| self.leave(victim));
            batch.push((line.number(), fetch));
        }
    }

    /// Begins the fetches of a batch: a read for each run of adjacent lines.
    fn fetch(&mut self, asker: Asker, batch: &Batch) {
        let mut rest = &batch[..];
        while let Some(&(first, _)) = rest.first() {
            let follows = |&(at, &(line, _)): &(usize, &(u64, u32))| line == first + at as u64;
            let run = rest.iter().enumerate().take_while(follows).count();
            let (now, later) = rest.split_at(run);
            rest = later;
            let (_, address) = self.regions.at_line(first).expect("its region was just found");
            let segment = Segment { address: Address(address), bytes: run as u64 * LINE };
            let fetches = now.iter().map(|&(_, fetch)| fetch).collect();
            self.fetches += 1;
            self.ask(asker, Purpose::Fetch(fetches), Op::Read(smallvec![segment]));
        }
    }

    /// True if an operation on its way past the cache uses a line.
    pub(super) fn is_passing(&self, line: u64) -> bool {
        self.passing_all.is_some()
            || self.passing.iter().any(|&(_, (from, to))| (from..=to).contains(&line))
    }

    /// A line has come, or not: gives the reads that waited for it their parts.
    pub(super) fn filled(&mut self, fetch: u32, error: Option<&Error>) {
        while let Some((waiter, data)) = self.cache.poll_filled(fetch) {
            let Waiter { work, at, from, bytes } = waiter;
            if work == NO_READ {
                continue;
            }
            let super::Work::Access(access) = &mut self.works[work as usize] else {
                unreachable!("a read is there as long as its parts wait")
            };
            access.left -= 1;
            match (data, error) {
                (Some(data), _) => {
                    let (at, from, bytes) = (at as usize, from as usize, bytes as usize);
                    access.data[at..][..bytes].copy_from_slice(&data[from..][..bytes]);
                }
                (None, error) => {
                    access.error.get_or_insert(error.cloned().unwrap_or(Error::Lost));
                }
            }
            if access.left == 0 && !access.is_parked {
                self.step(work as usize);
            }
        }
    }
}
