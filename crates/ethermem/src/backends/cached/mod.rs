//! A write-back cache in front of another backend, for memory that one process uses.
//!
//! The cache is the state machine of CXL over Ethernet. It decides what is here, what goes, and
//! what must be fetched; this backend gives it addresses, and carries out what it decides by
//! operations of the inner backend. `docs/internals/pool-cache.md` has the rules.

mod access;
mod ended;
mod flush;
mod hits;
mod leaving;
mod pass;
mod regions;
mod settings;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::VecDeque;
use std::time::Duration;

use ethermem_cxl::cache::{Cache, CacheConfig, Eviction, Victim};
use ethermem_pool::{
    Access, Asker, Backend, Direct, End, Ended, Error, Facts, Lent, Op, OpId, Opened, Outcome,
    Permissions, ProcessId, Progress, Segment, Wait, Waited, WaitedId,
};
use ethermem_units::Ps;
use rustc_hash::{FxHashMap, FxHashSet};
use slab::Slab;
use smallvec::SmallVec;

use self::access::CachedAccess;
use self::flush::Flush;
use self::hits::Recent;
use self::leaving::Leaving;
use self::pass::Pass;
use self::regions::{Lines, Regions};
pub(crate) use self::settings::CacheSettings;

/// Longest access that the cache takes in bytes: a page, by which the pool orders operations. A
/// longer one would replace much of the cache by bytes that are used once.
const ACCESS_MAX: u64 = 4096;
/// Most lines that are fetched at once.
const FETCHES_MAX: u32 = 1024;
/// Most parts of reads that wait for fetches.
const WAITING_MAX: u32 = 16_384;

/// Puts the cache in front of a backend.
pub(crate) fn wrap(opened: Opened, settings: CacheSettings) -> Opened {
    let Opened { backend, facts } = opened;
    let facts = Facts { keeps_writes: true, ..facts };
    Opened { backend: Box::new(Cached::new(backend, settings)), facts }
}

/// A part of a read that waits for its line.
#[derive(Clone, Copy, Debug)]
struct Waiter {
    /// Index of the read in [`Cached::works`]; [`NO_READ`] for a line that no read asked for.
    work: u32,
    /// Offset of the part in the read's bytes.
    at: u16,
    /// Offset of the part in the line, and its length in bytes.
    from: u8,
    bytes: u8,
}

const NO_READ: u32 = u32::MAX;

/// The backend.
pub(super) struct Cached {
    inner: Box<dyn Backend>,
    cache: Cache<Waiter>,
    /// Lines that a miss fetches together, a power of two.
    block_lines: u64,
    regions: Regions,
    /// The region of the last hit.
    recent: Option<Recent>,
    leaving: Leaving,
    /// Operations of the inner backend, by its ids for them.
    asked: Slab<Asked>,
    /// Operations of the pool that the cache has not finished or passed on.
    works: Slab<Work>,
    /// Those among them that wait for anything but their own fetches.
    parked: VecDeque<usize>,
    /// Lines that operations on their way past the cache use, each with the operation.
    passing: Vec<(usize, Lines)>,
    /// The operation that passes the whole cache, if there is one.
    passing_all: Option<usize>,
    /// An operation past the cache has let its lines go since works were last tried.
    has_passed: bool,
    /// Number of fetches in flight.
    fetches: usize,
    /// The inner backend's last count of doubts, and the processes that may be lost since.
    doubts: u64,
    doubtful: FxHashSet<ProcessId>,
    /// Doubtful processes whose node is being asked.
    probing: FxHashSet<ProcessId>,
    /// Writes that were lost, until a flush reports them.
    failures: FxHashMap<ProcessId, Error>,
    done: Vec<(OpId, Outcome)>,
    /// Operations of the inner backend that ended when they began.
    due: VecDeque<(usize, Outcome)>,
    /// Reused to avoid reallocation.
    ended: Ended,
}

/// An operation of the inner backend.
struct Asked {
    process: ProcessId,
    purpose: Purpose,
}

/// What an operation of the inner backend is for.
enum Purpose {
    /// It is the pool's operation.
    Passed(OpId),
    /// It is the pool's operation; what it gives is cached.
    Alloc { id: OpId, bytes: u64, permissions: Permissions },
    /// It is the operation of a work that ends with it.
    Pass(usize),
    /// It fetches lines: for each its number, the first one's, and the cache's fetch.
    Fetch(SmallVec<[u32; 1]>),
    /// It writes these lines.
    WriteBack(SmallVec<[u64; 1]>),
    /// It asks whether the node still has the process, after this many doubts.
    Probe(u64),
}

/// An operation of the pool that the cache works on.
enum Work {
    Access(CachedAccess),
    Pass(Pass),
    Flush(Flush),
    /// It is being worked on.
    Taken,
}

/// What a parked work waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Awaits {
    /// Room, or the end of another operation.
    #[default]
    Others,
    /// Lines on their way to the node.
    Leaving,
    /// The answer to a probe of its process.
    Probe,
}

/// How far a work is.
enum Step {
    /// It waits, and must be tried again when an operation has ended.
    Park(Awaits),
    /// Its own fetches or its own operation are in flight.
    Underway,
    /// It has ended.
    Ended(Outcome),
    /// It is no work any more: it was passed on.
    Gone,
    /// The cache cannot do it: this operation goes past the cache.
    Pass(Op),
}

impl Cached {
    fn new(inner: Box<dyn Backend>, settings: CacheSettings) -> Cached {
        let CacheSettings { bytes, line_bytes } = settings;
        let config = CacheConfig {
            bytes,
            ways: settings::WAYS,
            fetches_max: FETCHES_MAX,
            eviction: Eviction::Posted,
        };
        let cache = Cache::new(config, WAITING_MAX).expect("the settings were checked");
        Cached {
            doubts: inner.doubts(),
            inner,
            cache,
            block_lines: u64::from(line_bytes) / regions::LINE,
            regions: Regions::default(),
            recent: None,
            leaving: Leaving::default(),
            asked: Slab::new(),
            works: Slab::new(),
            parked: VecDeque::new(),
            passing: Vec::new(),
            passing_all: None,
            has_passed: false,
            fetches: 0,
            doubtful: FxHashSet::default(),
            probing: FxHashSet::default(),
            failures: FxHashMap::default(),
            done: Vec::new(),
            due: VecDeque::new(),
            ended: Ended::default(),
        }
    }

    /// Begins an operation of the inner backend.
    fn ask(&mut self, asker: Asker, purpose: Purpose, op: Op) {
        let asked = self.asked.insert(Asked { process: asker.process, purpose });
        if let Some(outcome) = self.inner.begin(OpId::new(asked), asker, op) {
            self.due.push_back((asked, outcome));
        }
    }

    /// Begins the writes of lines that have left the cache, all of one region.
    fn write_back(&mut self, lines: SmallVec<[u64; 1]>) {
        let Some((region, _)) = lines.first().and_then(|&line| self.regions.at_line(line)) else {
            return lines.iter().for_each(|&line| self.leaving.drop_line(line));
        };
        let asker = Asker { process: region.process, compute: 0 };
        match self.leaving.write(&lines, &self.regions) {
            Some((segments, data)) => {
                self.ask(asker, Purpose::WriteBack(lines), Op::Write(segments, data));
            }
            None => lines.iter().for_each(|&line| self.leaving.drop_line(line)),
        }
    }

    /// Sends what the cache has given up. What belongs to no region any more is dropped.
    fn leave(&mut self, victim: &Victim) {
        let line = victim.line.number();
        let Some((region, _)) = self.regions.at_line(line) else { return };
        let process = region.process;
        if self.leaving.add(victim, process) {
            self.write_back(SmallVec::from_slice(&[line]));
        }
    }

    /// Writes once more what had no answer.
    fn retry(&mut self) {
        for line in self.leaving.retry() {
            self.write_back(SmallVec::from_slice(&[line]));
        }
    }

    /// Adds a work and does what can be done of it now.
    fn work_on(&mut self, work: Work) {
        let place = self.works.insert(work);
        self.step(place);
    }

    fn step(&mut self, place: usize) {
        let mut work = std::mem::replace(&mut self.works[place], Work::Taken);
        let (id, asker, step) = match &mut work {
            Work::Access(access) => (access.id, access.asker, self.step_access(place, access)),
            Work::Pass(pass) => (pass.id, pass.asker, self.step_pass(place, pass)),
            Work::Flush(flush) => (flush.id, flush.asker, self.step_flush(flush)),
            Work::Taken => unreachable!("a work is worked on once at a time"),
        };
        match step {
            Step::Underway => self.works[place] = work,
            Step::Park(awaits) => {
                work.awaits(awaits);
                self.works[place] = work;
                self.parked.push_back(place);
            }
            Step::Ended(outcome) => {
                self.works.remove(place);
                self.done.push((id, outcome));
            }
            Step::Gone => drop(self.works.remove(place)),
            Step::Pass(op) => {
                self.works.remove(place);
                self.pass(id, asker, op);
            }
        }
    }

    /// Tries everything that waits for others, and once more when one of them let go what the
    /// others wait for: nothing else may end that would try those before it again.
    fn unpark(&mut self) {
        loop {
            self.has_passed = false;
            for _ in 0..self.parked.len() {
                let Some(place) = self.parked.pop_front() else { break };
                self.step(place);
            }
            if !self.has_passed {
                break;
            }
        }
    }

    /// Notices that processes may be lost: nothing of them is a hit before their node was asked.
    fn notice_doubt(&mut self) {
        let doubts = self.inner.doubts();
        if doubts != self.doubts {
            self.doubts = doubts;
            self.recent = None;
            self.doubtful = self.regions.processes().collect();
        }
    }

    fn begin_op(&mut self, id: OpId, asker: Asker, op: Op) {
        self.notice_doubt();
        match op {
            Op::Read(segments) if self.takes(asker, &segments, Permissions::READ) => {
                self.work_on(Work::Access(CachedAccess::read(id, asker, segments)));
            }
            Op::Write(segments, data) if self.takes(asker, &segments, Permissions::WRITE) => {
                self.work_on(Work::Access(CachedAccess::write(id, asker, segments, data)));
            }
            Op::Fence => self.work_on(Work::Flush(Flush::new(id, asker, true))),
            Op::Flush => self.work_on(Work::Flush(Flush::new(id, asker, false))),
            op => self.pass(id, asker, op),
        }
    }

    /// True if the cache takes an access of these ranges.
    fn takes(&self, asker: Asker, segments: &[Segment], needed: Permissions) -> bool {
        let bytes = segments.iter().fold(0_u64, |sum, segment| sum.saturating_add(segment.bytes));
        let is_cached = |&Segment { address, bytes }: &Segment| {
            let region = self.regions.find(asker.process, address, bytes);
            region.is_some_and(|region| region.permissions.allow(needed))
        };
        bytes <= ACCESS_MAX && segments.iter().all(is_cached)
    }
}

impl Work {
    fn awaits(&mut self, awaits: Awaits) {
        match self {
            Work::Access(access) => (access.awaits, access.is_parked) = (awaits, true),
            Work::Pass(pass) => pass.awaits = awaits,
            Work::Flush(_) | Work::Taken => {}
        }
    }
}

impl Backend for Cached {
    fn now(&self) -> Ps {
        self.inner.now()
    }

    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome> {
        if let Some(reply) = self.hit(asker, &op) {
            return Some(Ok(reply));
        }
        self.begin_op(id, asker, op);
        self.settle_due();
        let at = self.done.iter().position(|(done, _)| *done == id)?;
        Some(self.done.swap_remove(at).1)
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        let progress = self.inner.progress(&mut self.ended);
        self.settle_ended(ended);
        ended.operations.append(&mut self.done);
        match progress {
            _ if !ended.operations.is_empty() => Progress::Ended,
            // What ended was the cache's own.
            Progress::Ended => Progress::Wait(Duration::ZERO),
            Progress::Idle => {
                debug_assert!(self.works.is_empty(), "a work waits for nothing");
                Progress::Idle
            }
            wait @ Progress::Wait(_) => wait,
        }
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        if self.works.is_empty() && self.done.is_empty() { self.inner.waits() } else { None }
    }

    fn new_process(&mut self, next: ProcessId) -> Result<ProcessId, Error> {
        self.inner.new_process(next)
    }

    fn at_once(&mut self, asker: Asker, access: Access<'_>) -> Option<Result<u64, Error>> {
        match access {
            Access::Read(from, to) => self.read_hit(asker, from, to).then_some(Ok(0)),
            Access::Write(to, from) => {
                let is_done = self.write_hit(asker, to, from);
                if !self.due.is_empty() {
                    self.settle_due();
                }
                is_done.then_some(Ok(0))
            }
            Access::Modify(..) => None,
        }
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        self.inner.direct().is_some().then_some(self)
    }

    fn doubts(&self) -> u64 {
        self.inner.doubts()
    }

    fn tend(&mut self) -> Duration {
        self.inner.tend()
    }

    fn end(&mut self, why: End) -> Result<(), Error> {
        // Without a recipient of errors, and with all cached memory about to end, nothing is
        // written.
        let flushed = if why == End::Closed { self.flush_all() } else { Ok(()) };
        let ended = self.inner.end(why);
        // Later accesses are refused by the inner backend.
        let processes: Vec<ProcessId> = self.regions.processes().collect();
        processes.into_iter().for_each(|process| self.regions.remove_all(process));
        self.recent = None;
        ended.and(flushed)
    }

    fn extension(&self) -> Option<&dyn Any> {
        self.inner.extension()
    }
}

impl Direct for Cached {
    fn begin(&mut self, asker: Asker, access: Waited<'_>) -> Option<WaitedId> {
        let segment = match access {
            Waited::Read(segment) => segment,
            Waited::Write(address, data) => Segment { address, bytes: data.len() as u64 },
        };
        if !self.regions.touched(asker.process, segment).is_empty() {
            return None;
        }
        self.inner.direct()?.begin(asker, access)
    }

    fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration> {
        let direct = self.inner.direct().expect("it has begun the access");
        let looked = direct.look(id, lent, &mut self.ended);
        self.settle_ended(ended);
        ended.operations.append(&mut self.done);
        looked
    }
}
