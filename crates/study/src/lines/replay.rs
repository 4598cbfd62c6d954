//! The replay itself: the program's time, the messages under way, the cache.

use std::collections::BTreeMap;

use ethermem_lines::prefetch::{Found, Prefetcher};
use ethermem_lines::{LINE_BYTES, TrafficKind};
use ethermem_sim::engine::{Advance, Heard, LINE_BYTES as DATA_BYTES, LineAccess as Asked};
use ethermem_sim::engine::{Live, Placed};
use ethermem_sim::{Kind, Message, NodeIndex};
use ethermem_trace::LineAccess;
use ethermem_units::{Bytes, Ps};

use super::cache::{Pages, Tags};
use super::{HIT, LOOKUP, LineError, LineSetup, POSTED_MAX, Totals};

const COMPUTE: NodeIndex = 0;
const MEMORY: NodeIndex = 1;

/// Why a message is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    /// A load waits for it.
    Load,
    /// It fetches a line for a store.
    Store,
    /// It writes a line.
    Write,
    /// It prefetches a line.
    Prefetch,
}

/// A message under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    line: u64,
    purpose: Purpose,
}

/// What ends an access.
#[derive(Clone, Copy, Debug)]
enum Wait {
    /// The time.
    Until(Ps),
    /// The end of a message.
    For(u64),
}

/// Where the cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// There is none.
    Nowhere,
    /// In the fabric: messages have addresses.
    Inside,
    /// In front of the fabric.
    InFront,
}

pub(super) struct Replay<'s> {
    setup: &'s LineSetup,
    live: Box<dyn Live>,
    place: Place,
    tags: Option<Tags>,
    pages: Pages,
    prefetcher: Prefetcher,
    flights: BTreeMap<u64, Flight>,
    /// Number of flights by purpose.
    under_way: BTreeMap<Purpose, usize>,
    /// Name of the next message.
    next: u64,
    /// Ends of fetches since the access that is being done began.
    ends: BTreeMap<u64, Ps>,
    /// Lines that memory was asked for, each with the name of the message that came next.
    asked: BTreeMap<u64, u64>,
    /// The program's time.
    now: Ps,
    /// Arrival of the last message: none may be earlier.
    latest: Ps,
    totals: Totals,
}

impl<'s> Replay<'s> {
    pub(super) fn new(
        setup: &'s LineSetup,
        mut live: Box<dyn Live>,
    ) -> Result<Replay<'s>, LineError> {
        let place = match (setup.cache.0, live.caches().is_some()) {
            (0, _) => Place::Nowhere,
            (_, true) => Place::Inside,
            (_, false) => Place::InFront,
        };
        let tags = (place != Place::Nowhere).then(|| Tags::new(setup.cache)).transpose();
        Ok(Replay {
            setup,
            live,
            place,
            tags: tags.map_err(LineError::Cache)?,
            pages: Pages::default(),
            prefetcher: Prefetcher::new(setup.prefetch),
            flights: BTreeMap::new(),
            under_way: BTreeMap::new(),
            next: 0,
            ends: BTreeMap::new(),
            asked: BTreeMap::new(),
            now: Ps::ZERO,
            latest: Ps::ZERO,
            totals: Totals::default(),
        })
    }

    pub(super) fn run(mut self, accesses: &[LineAccess]) -> Result<Totals, LineError> {
        let mut before = accesses.first().map_or(0, |access| access.instructions);
        let mut began = Ps::ZERO;
        for (at, access) in accesses.iter().enumerate() {
            let run = access.instructions - before;
            before = access.instructions;
            let ran = Ps((run as f64 / self.setup.instructions_per_ns * 1000.0).round() as u64);
            self.now += ran;
            if at == self.setup.warmup {
                self.totals = Totals::default();
                began = self.now - ran;
            }
            self.totals.computing += ran;
            self.reach(self.now)?;
            let line = self.pages.place(access.address / LINE_BYTES);
            match access.kind {
                TrafficKind::WriteBack => self.write_back(line)?,
                kind => self.fetch(line, kind == TrafficKind::Load)?,
            }
        }
        self.totals.duration = self.now - began;
        while !self.flights.is_empty() {
            self.hear(Ps::MAX)?;
        }
        self.live.close().map_err(|violation| LineError::Broken(violation.0))?;
        Ok(self.totals)
    }

    /// A line that the processor asks for: a load waits for it.
    fn fetch(&mut self, line: u64, is_load: bool) -> Result<(), LineError> {
        let purpose = if is_load { Purpose::Load } else { Purpose::Store };
        let began = self.now;
        self.ends.clear();
        let (found, victim) = match &mut self.tags {
            Some(tags) => tags.access(line),
            None => (Found::Miss, None),
        };
        let coming = self.tags.as_mut().and_then(|tags| tags.coming(line, began));
        // A line that was evicted on its way is fetched again.
        let coming = coming.filter(|_| found != Found::Miss);
        let asks = self.next;
        let wait = match (self.place, found, coming) {
            (Place::InFront, Found::Hit | Found::Prefetched, None) => Wait::Until(began + HIT),
            (Place::InFront, Found::Hit | Found::Prefetched, Some(coming)) => match coming.ends {
                Some(ends) => Wait::Until(ends),
                None => Wait::For(coming.name),
            },
            _ => Wait::For(self.send(line, purpose, found == Found::Miss)?),
        };
        if self.place == Place::InFront {
            self.evict(victim)?;
        }
        self.prefetch(line, found)?;
        if is_load {
            let least = if self.place == Place::InFront { began + HIT } else { began };
            let ended = match wait {
                Wait::Until(at) => at,
                Wait::For(name) => self.end_of(name)?,
            };
            self.now = self.now.max(ended).max(least);
        }
        let is_late = coming.is_some();
        // A fabric's own cache says itself whether it had the line: memory was not asked for it.
        let is_miss = match self.place {
            Place::Inside if is_load => self.asked.get(&line).is_some_and(|at| *at > asks),
            _ => found == Found::Miss,
        };
        self.totals.fetched(is_load, !is_miss && !is_late, is_late, self.now - began);
        Ok(())
    }

    /// A dirty line that the processor's caches give up.
    fn write_back(&mut self, line: u64) -> Result<(), LineError> {
        let (is_hit, victim) = match &mut self.tags {
            Some(tags) => tags.write(line),
            None => (false, None),
        };
        self.totals.written(is_hit);
        match self.place {
            Place::InFront => self.evict(victim),
            Place::Inside | Place::Nowhere => self.send(line, Purpose::Write, false).map(|_| ()),
        }
    }

    fn evict(&mut self, victim: Option<u64>) -> Result<(), LineError> {
        let Some(line) = victim else { return Ok(()) };
        self.send(line, Purpose::Write, false).map(|_| ())
    }

    fn prefetch(&mut self, line: u64, found: Found) -> Result<(), LineError> {
        let under_way = self.under_way.get(&Purpose::Prefetch).copied().unwrap_or(0);
        let Some(tags) = &mut self.tags else { return Ok(()) };
        if found == Found::Prefetched {
            self.totals.prefetched_used += 1;
        }
        let Some(next) = self.prefetcher.accessed(line, found) else { return Ok(()) };
        if under_way >= POSTED_MAX {
            return Ok(());
        }
        let Some(victim) = tags.prefetch(next) else { return Ok(()) };
        self.totals.prefetches += 1;
        self.send(next, Purpose::Prefetch, true)?;
        if self.place == Place::InFront { self.evict(victim) } else { Ok(()) }
    }

    /// Sends a message now, or once there is room for one of its purpose. `fetches` is true if the
    /// line comes into the cache by it.
    fn send(&mut self, line: u64, purpose: Purpose, fetches: bool) -> Result<u64, LineError> {
        while self.under_way.get(&purpose).is_some_and(|count| *count >= POSTED_MAX) {
            let ended = self.hear(Ps::MAX)?;
            self.now = self.now.max(ended);
        }
        let lookup = if self.place == Place::InFront { LOOKUP } else { Ps::ZERO };
        let arrival = (self.now + lookup).max(self.latest).max(self.live.now());
        self.latest = arrival;
        let name = self.next;
        self.next += 1;
        let is_write = purpose == Purpose::Write;
        let kind = if is_write { Kind::Write } else { Kind::Read };
        let message = Message {
            index: name,
            arrival,
            kind,
            compute: COMPUTE,
            memory: MEMORY,
            bytes: Bytes(LINE_BYTES),
        };
        match (self.place, is_write) {
            (Place::Inside, true) => {
                let data = vec![0; DATA_BYTES];
                self.live.submit_placed(message, Placed::Write(line * LINE_BYTES, data));
            }
            (Place::Inside, false) => {
                self.live.submit_placed(message, Placed::Read(line * LINE_BYTES));
            }
            _ => {
                *self.totals.memory_accesses(!is_write) += 1;
                self.live.submit(message);
            }
        }
        self.flights.insert(name, Flight { line, purpose });
        *self.under_way.entry(purpose).or_default() += 1;
        if fetches && let Some(tags) = &mut self.tags {
            tags.begins(line, name);
        }
        Ok(name)
    }

    /// Runs the fabric up to the program's time.
    fn reach(&mut self, now: Ps) -> Result<(), LineError> {
        while self.live.now() < now && !self.flights.is_empty() {
            self.hear(now)?;
        }
        Ok(())
    }

    /// Runs until a fetch has ended that was under way when the access began. Returns when it has.
    fn end_of(&mut self, name: u64) -> Result<Ps, LineError> {
        loop {
            if let Some(&ended) = self.ends.get(&name) {
                return Ok(ended);
            }
            self.hear(Ps::MAX)?;
        }
    }

    /// Runs until a message has ended, or to `until`. Returns the end of the last that has.
    fn hear(&mut self, until: Ps) -> Result<Ps, LineError> {
        loop {
            let mut heard = Vec::new();
            let advanced = self.live.advance(until, &mut heard).map_err(LineError::Source)?;
            self.supply();
            let mut last = None;
            for heard in heard {
                if let Heard::Ended { message, outcome } = heard {
                    let at = outcome.map_err(|loss| {
                        LineError::Lost(format!(
                            "{} lost an access: {loss:?}",
                            self.setup.fabric.name
                        ))
                    })?;
                    self.ended(message, at);
                    last = Some(at);
                }
            }
            match (last, advanced) {
                (Some(at), _) => return Ok(at),
                (None, Advance::Reached) => return Ok(until),
                (None, Advance::Heard) => {}
                (None, Advance::Idle) => {
                    let name = self.setup.fabric.name;
                    return Err(LineError::Broken(format!("{name} never ends an access")));
                }
            }
        }
    }

    fn ended(&mut self, name: u64, at: Ps) {
        let Some(Flight { line, purpose }) = self.flights.remove(&name) else { return };
        *self.under_way.entry(purpose).or_default() -= 1;
        if purpose == Purpose::Write {
            return;
        }
        if self.place == Place::Inside
            && let Some(caches) = self.live.caches()
        {
            caches.take(name);
        }
        self.ends.insert(name, at);
        if let Some(tags) = &mut self.tags {
            tags.ended(line, name, at);
        }
        self.prefetcher.arrived(line, purpose == Purpose::Prefetch);
    }

    /// Does what the memory node asks for. Its memory is zeros, as a trace has no data.
    fn supply(&mut self) {
        let Some(caches) = self.live.caches() else { return };
        while let Some(asked) = caches.ask() {
            match asked {
                Asked::Read { memory, address, access } => {
                    caches.supply(memory, access, [0; DATA_BYTES]);
                    self.asked.insert(address / LINE_BYTES, self.next);
                    self.totals.memory_reads += 1;
                }
                Asked::Write { .. } => self.totals.memory_writes += 1,
            }
        }
    }
}
