//! The pager: one thread that serves the faults of all processes of a program, and takes pages
//! out of them so that what is local stays within its limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ethermem_trace::{Access, AccessKind};
use ethermem_units::{Bytes, Ns};
use nix::errno::Errno;
use rustc_hash::FxHashMap;

use crate::agent::Agent;
use crate::counts::Counts;
use crate::delay::Link;
use crate::fault::{self, Event, Faults};
use crate::memory_map;
use crate::process::Process;
use crate::protocol::{FORKED, PAGE_BYTES, STARTED};
use crate::record::Recorder;
use crate::standby::{Owner, Standby};
use crate::store::Store;
use crate::stream::MOST_PAGES;
use crate::table::{NO_SLOT, Page, State};

/// After so many faults the pager looks on which processor its program runs.
const FOLLOW_EVERY: u64 = 256;

/// A fault whose page is on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Awaited {
    due: Instant,
    asked: Instant,
    process: usize,
    page: u64,
    pages: usize,
}

/// How much of a program's private memory may be local, over all of its processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Local {
    /// All of it.
    All,
    /// So many bytes.
    Bytes(u64),
    /// A share, 0 to 1, of what the program holds at the time, locally and remotely.
    Share(f64),
}

/// What a run needs.
pub(crate) struct Setup<'r> {
    pub(crate) local: Local,
    /// Whether pages are brought along that no thread waits for.
    pub(crate) prefetch: bool,
    pub(crate) store: Store,
    pub(crate) link: Link,
    pub(crate) recorder: &'r mut dyn Recorder,
}

/// All state of a run.
pub(crate) struct Pager<'r> {
    pub(crate) processes: FxHashMap<usize, Process>,
    /// Agents of forks' children whose address space is not known yet.
    waiting: Vec<Agent>,
    next_process: usize,
    pub(crate) setup: Setup<'r>,
    pub(crate) standby: Standby,
    pub(crate) counts: Counts,
    awaited: BinaryHeap<Reverse<Awaited>>,
    /// Faults that the kernel would not let be served yet.
    again: Vec<(usize, u64, bool)>,
    events: Vec<Event>,
    pub(crate) content: Vec<u8>,
    pub(crate) began: Instant,
    /// Of the hash that tells a page that changed from one that did not: secret, so that no content
    /// can be made to collide.
    pub(crate) seed: u64,
    processor: Option<usize>,
    /// Whether there was once more in local memory than may be.
    pub(crate) is_over: bool,
}

impl<'r> Pager<'r> {
    pub(crate) fn new(setup: Setup<'r>, seed: u64) -> Pager<'r> {
        Pager {
            processes: FxHashMap::default(),
            waiting: Vec::new(),
            next_process: 0,
            standby: Standby::new(1),
            setup,
            counts: Counts::default(),
            awaited: BinaryHeap::new(),
            again: Vec::new(),
            events: Vec::new(),
            content: vec![0; MOST_PAGES * PAGE_BYTES],
            began: Instant::now(),
            seed,
            processor: None,
            is_over: false,
        }
    }

    /// A program or a fork's child announced itself; the address space that became known.
    pub(crate) fn meet(&mut self, agent: Agent, faults: Option<Faults>) -> Option<usize> {
        match (agent.hello.kind, faults) {
            (STARTED, Some(faults)) => {
                agent.welcome(true, None).ok()?;
                let number = agent.hello.process;
                let id = self.add(Process::new(faults));
                let process = self.processes.get_mut(&id)?;
                process.number = Some(number);
                (process.agent, process.is_busy) = (Some(agent), true);
                Some(id)
            }
            (FORKED, _) => {
                let number = Some(agent.hello.process);
                let known = self
                    .processes
                    .iter()
                    .find(|(_, process)| process.number == number && process.agent.is_none())
                    .map(|(id, _)| *id);
                match known {
                    Some(id) => self.join(id, agent),
                    None => self.waiting.push(agent),
                }
                known
            }
            _ => {
                self.counts.unserved += 1;
                // It runs by itself, as it cannot be served.
                agent.welcome(false, None).ok()?;
                None
            }
        }
    }

    fn add(&mut self, process: Process) -> usize {
        let id = self.next_process;
        self.next_process += 1;
        self.processes.insert(id, process);
        self.counts.processes += 1;
        id
    }

    fn join(&mut self, id: usize, agent: Agent) {
        if let Some(process) = self.processes.get_mut(&id)
            && agent.welcome(true, Some(process.faults.as_fd())).is_ok()
        {
            (process.agent, process.is_busy) = (Some(agent), true);
        }
    }

    /// Reads and serves what one address space tells. Returns those that are new.
    pub(crate) fn serve(&mut self, id: usize) -> Result<Vec<usize>, String> {
        let mut new = Vec::new();
        let Some(process) = self.processes.get_mut(&id) else { return Ok(new) };
        if process.ordered.is_some() {
            return Ok(new);
        }
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if process.faults.read(&mut events).is_err() {
            events.clear();
        }
        // Changes first: once they are read, the kernel lets pages be put again, and each must be
        // put as it is after them, though its fault may have come before.
        for event in &events {
            match *event {
                Event::Fault { .. } => {}
                Event::Fork { file } => new.extend(self.fork(id, file)?),
                Event::Remap { from, to, bytes } => self.remap(id, from, to, bytes),
                Event::Remove { start, end } => self.remove(id, start, end),
                Event::Unmap { start, end } => self.unmap(id, start, end),
            }
        }
        for event in &events {
            if let Event::Fault { page, thread, write } = *event {
                self.fault(id, page, thread, write)?;
            }
        }
        self.events = events;
        Ok(new)
    }

    fn fault(&mut self, id: usize, page: u64, thread: u32, write: bool) -> Result<(), String> {
        self.counts.faults += 1;
        if self.counts.faults % FOLLOW_EVERY == 1 {
            self.follow(thread);
        }
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        if process.number.is_none()
            && let Some(number) = memory_map::process_of(thread)
        {
            process.number = Some(number);
            if let Some(place) = self.waiting.iter().position(|it| it.hello.process == number) {
                let agent = self.waiting.swap_remove(place);
                self.join(id, agent);
            }
        }
        let pages = self.window(id, page);
        if self.state(id, page) != State::Stored {
            return self.put(id, page, pages, write);
        }
        let now = Instant::now();
        self.record(now, id, thread, page, pages);
        match self.setup.link.due(now, (pages * PAGE_BYTES) as u64) {
            Some(due) => {
                self.awaited.push(Reverse(Awaited { due, asked: now, process: id, page, pages }));
                Ok(())
            }
            None => self.put(id, page, pages, write),
        }
    }

    fn state(&self, id: usize, page: u64) -> State {
        self.processes.get(&id).map_or(State::Unknown, |process| process.table.get(page).state)
    }

    /// How many pages to bring from `page` on: those of a run whose content lies where that of
    /// `page` lies, in memory that is served.
    fn window(&mut self, id: usize, page: u64) -> usize {
        let Some(process) = self.processes.get_mut(&id) else { return 1 };
        if !self.setup.prefetch {
            return 1;
        }
        let wanted = process.streams.window(page);
        let end = process.served.end_of(page).unwrap_or(page);
        let absent = |state| matches!(state, State::Stored | State::Standby);
        let first = absent(process.table.get(page).state);
        let pages = (1..wanted)
            .map(|place| page + (place * PAGE_BYTES) as u64)
            .take_while(|next| {
                let state = process.table.get(*next).state;
                *next < end && if first { absent(state) } else { state == State::Unknown }
            })
            .count()
            + 1;
        process.streams.brought(page, pages);
        pages
    }

    fn record(&mut self, now: Instant, id: usize, thread: u32, page: u64, pages: usize) {
        self.counts.read_pages += 1;
        self.counts.prefetched_pages += pages as u64 - 1;
        let process = self.processes.get(&id).and_then(|process| process.number).unwrap_or(0);
        self.setup.recorder.access(&Access {
            time: self.time(now),
            process,
            thread,
            address: page,
            bytes: Bytes((pages * PAGE_BYTES) as u64),
            kind: AccessKind::Read,
        });
    }

    /// Puts the content of pages where the program expects it, and lets it go on.
    fn put(&mut self, id: usize, page: u64, pages: usize, write: bool) -> Result<(), String> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        let mut content = std::mem::take(&mut self.content);
        let mut empty = true;
        for place in 0..pages {
            let entry = process.table.get(page + (place * PAGE_BYTES) as u64);
            let to = &mut content[place * PAGE_BYTES..][..PAGE_BYTES];
            match entry.state {
                State::Stored => self.setup.store.load(&[entry.slot], to)?,
                State::Standby => to.copy_from_slice(self.standby.page(entry.standby)),
                State::Unknown | State::Removed | State::Resident => to.fill(0),
            }
            empty &= !matches!(entry.state, State::Stored | State::Standby);
        }
        let (put, result) = if empty && pages == 1 && !write {
            let result = process.faults.zero(page);
            (usize::from(result.is_ok()), result)
        } else {
            let (bytes, result) = process.faults.copy(page, &content[..pages * PAGE_BYTES]);
            (bytes / PAGE_BYTES, result)
        };
        self.content = content;
        for place in 0..put {
            self.arrived(id, page + (place * PAGE_BYTES) as u64);
        }
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        match result {
            Err(Errno::EAGAIN) if put == 0 => self.again.push((id, page, write)),
            // There already, or no longer mapped: the thread finds out by itself.
            Err(_) if put == 0 => drop(process.faults.wake(page)),
            _ => {}
        }
        Ok(())
    }

    /// A page is in the program's memory again.
    fn arrived(&mut self, id: usize, page: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let entry = process.table.entry(page);
        match entry.state {
            State::Standby => {
                self.standby.release(entry.standby);
                self.counts.rescued_pages += 1;
            }
            State::Stored => {}
            State::Unknown | State::Removed | State::Resident => self.counts.zero_pages += 1,
        }
        entry.state = State::Resident;
        if !entry.queued {
            entry.queued = true;
            process.queue.push_back(page);
        }
        process.occupied += 1;
    }

    /// Tries again what the kernel did not allow while an event had not been read.
    pub(crate) fn retry(&mut self) -> Result<(), String> {
        let again = std::mem::take(&mut self.again);
        for (id, page, write) in again {
            if self.processes.get(&id).is_some_and(|process| process.ordered.is_some()) {
                self.again.push((id, page, write));
                continue;
            }
            self.put(id, page, 1, write)?;
        }
        Ok(())
    }

    /// Whether faults wait that the kernel would not let be served.
    pub(crate) fn has_retries(&self) -> bool {
        !self.again.is_empty()
    }

    pub(crate) fn has_agent(&self, id: usize) -> bool {
        self.processes.get(&id).is_some_and(|process| process.agent.is_some())
    }

    /// When the next page on its way is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.awaited.peek().map(|Reverse(awaited)| awaited.due)
    }

    /// Puts the pages that are due.
    pub(crate) fn deliver(&mut self) -> Result<(), String> {
        while let Some(Reverse(awaited)) = self.awaited.peek().copied() {
            let now = Instant::now();
            if awaited.due > now {
                break;
            }
            self.awaited.pop();
            let wanted = awaited.due - awaited.asked;
            self.setup.recorder.delayed(wanted, now - awaited.asked);
            self.put(awaited.process, awaited.page, awaited.pages, true)?;
        }
        Ok(())
    }

    fn fork(&mut self, id: usize, file: i32) -> Result<Option<usize>, String> {
        let faults = fault::adopt(file).map_err(|error| format!("a fork: {error}"))?;
        let Some(parent) = self.processes.get(&id) else { return Ok(None) };
        let standby: Vec<u64> = parent
            .table
            .pages()
            .filter(|(_, page)| page.state == State::Standby)
            .map(|(page, _)| page)
            .collect();
        for page in standby {
            self.demote(Owner { process: id, page })?;
        }
        let Some(parent) = self.processes.get(&id) else { return Ok(None) };
        let mut child = Process::new(faults);
        child.served = parent.served.clone();
        for (page, entry) in parent.table.pages() {
            if entry.state != State::Unknown || entry.slot != NO_SLOT {
                if entry.slot != NO_SLOT {
                    self.setup.store.share(entry.slot);
                }
                *child.table.entry(page) = Page { queued: false, ..entry };
            }
        }
        Ok(Some(self.add(child)))
    }

    fn remap(&mut self, id: usize, from: u64, to: u64, bytes: u64) {
        self.forget(id, to, to + bytes);
        let Some(process) = self.processes.get_mut(&id) else { return };
        let mut moved = Vec::new();
        process.table.take(from, from + bytes, |page, entry| moved.push((page, entry)));
        for (page, entry) in moved {
            let page = page - from + to;
            if entry.queued {
                process.queue.push_back(page);
            }
            if entry.state == State::Standby {
                self.standby.rename(Owner { process: id, page }, entry.standby);
            }
            *process.table.entry(page) = entry;
        }
        process.served.remove(from..from + bytes);
        process.served.insert(to..to + bytes);
    }

    /// The program gave back `start..end`.
    fn remove(&mut self, id: usize, start: u64, end: u64) {
        self.forget(id, start, end);
        let Some(process) = self.processes.get_mut(&id) else { return };
        for page in (start..end).step_by(PAGE_BYTES) {
            process.table.entry(page).state = State::Removed;
        }
    }

    fn unmap(&mut self, id: usize, start: u64, end: u64) {
        self.forget(id, start, end);
        if let Some(process) = self.processes.get_mut(&id) {
            process.served.remove(start..end);
        }
    }

    /// The content of `start..end` is no longer needed.
    fn forget(&mut self, id: usize, start: u64, end: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let (standby, store) = (&mut self.standby, &mut self.setup.store);
        process.table.take(start, end, |_, entry| {
            if entry.state == State::Standby {
                standby.release(entry.standby);
            }
            if entry.slot != NO_SLOT {
                store.release(entry.slot);
            }
        });
    }

    /// An address space has ended, or its agent has.
    pub(crate) fn ended(&mut self, id: usize) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let unserved = process.agent.as_ref().map_or(1 << 20, |agent| agent.hello.own_start);
        if process.faults.is_alive(unserved) {
            // Its faults are served on; nothing can be taken out any more.
            process.agent = None;
            process.ordered = None;
            return;
        }
        self.forget(id, 0, !(PAGE_BYTES as u64 - 1));
        self.processes.remove(&id);
        self.awaited.retain(|Reverse(awaited)| awaited.process != id);
    }

    /// Looks for address spaces that ended unheard.
    pub(crate) fn sweep(&mut self) {
        let silent: Vec<usize> = self
            .processes
            .iter()
            .filter(|(_, process)| process.agent.is_none())
            .map(|(id, _)| *id)
            .collect();
        for id in silent {
            self.ended(id);
        }
    }

    /// Runs where the thread runs that waits: the kernel then switches from one to the other
    /// without waking a processor.
    fn follow(&mut self, thread: u32) {
        let processor = memory_map::processor_of(thread);
        if processor == self.processor {
            return;
        }
        if let Some(number) = processor {
            let mut set = nix::sched::CpuSet::new();
            if set.set(number).is_ok() {
                // Slower without, and nothing worse.
                let _ = nix::sched::sched_setaffinity(nix::unistd::Pid::from_raw(0), &set);
            }
        }
        self.processor = processor;
    }

    /// `now`, since the run began.
    pub(crate) fn time(&self, now: Instant) -> Ns {
        Ns(u64::try_from(now.duration_since(self.began).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Time of the run so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}
