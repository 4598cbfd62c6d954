//! The pager is one thread that serves the faults of all processes of a program. It takes pages out
//! of them so that local memory stays within its limit.

mod put;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use ethermem_trace::{Access, AccessKind};
use ethermem_units::{Bytes, Ns};
use nix::errno::Errno;
use nix::unistd::{Pid, getpid};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::agent::Agent;
use crate::counts::Counts;
use crate::delay::Link;
use crate::fault::{Event, Faults};
use crate::limit::Room;
use crate::memory_map;
use crate::peer::Peer;
use crate::place::{Place, Placement};
use crate::process::Process;
use crate::processors::Processors;
use crate::protocol::{BATCH_PAGES, FORKED, INJECTED, PAGE_BYTES, STARTED};
use crate::record::Recorder;
use crate::requests::Requests;
use crate::run::BY_ITSELF_MAX;
use crate::standby::Standby;
use crate::store::Store;
use crate::stream::MOST_PAGES;
use crate::table::State;

/// Pages in flight, in the order in which they are put. At equal times the page that a thread waits
/// for precedes its prefetched run, which takes long to put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Awaited {
    due: Instant,
    /// True if no thread waits for the first of them.
    is_along: bool,
    asked: Instant,
    process: usize,
    page: u64,
    pages: usize,
}

/// How often the pager looks up the process of an address space's fault.
const NAMINGS_MAX: u8 = 3;

/// The process of a thread that a fault names, if it can be known. The kernel gives the thread's
/// number in its own namespace, where another thread here may have that number.
fn peer_of(thread: u32) -> Option<Peer> {
    let number = memory_map::process_of(thread)?;
    let peer = Peer::of_number(Pid::from_raw(number.cast_signed())).ok()?;
    (peer.is_of_this_namespace() && peer.descends_from(getpid())).then_some(peer)
}

/// How much of a program's private memory may be local, over all of its processes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Local {
    /// All memory may be local.
    All,
    /// This many bytes may be local.
    Bytes(u64),
    /// A fraction of what the program holds at the time, locally and remotely.
    Share {
        /// The fraction, 0 to 1.
        of: f64,
        /// This many bytes may be local in any case.
        least_bytes: u64,
    },
}

/// Parameters of a run.
pub(crate) struct Setup<'r> {
    pub(crate) local: Local,
    /// True if pages are prefetched.
    pub(crate) prefetch: bool,
    pub(crate) placement: Placement,
    pub(crate) store: Store,
    pub(crate) link: Link,
    pub(crate) recorder: &'r mut dyn Recorder,
}

/// All state of a run.
pub(crate) struct Pager<'r> {
    pub(crate) processes: FxHashMap<usize, Process>,
    /// Agents of forks' children whose address space is not yet known or settled.
    waiting: Vec<Agent>,
    next_process: usize,
    pub(crate) setup: Setup<'r>,
    pub(crate) standby: Standby,
    pub(crate) counts: Counts,
    /// Programs that ran without being served, with the reason.
    pub(crate) by_itself: Vec<String>,
    awaited: BinaryHeap<Reverse<Awaited>>,
    pub(crate) requests: Requests,
    /// Faults that the kernel did not yet allow to be served: process, page, write.
    again: Vec<(usize, u64, bool)>,
    events: Vec<Event>,
    pub(crate) content: Vec<u8>,
    /// Buffer for pages that were taken out.
    pub(crate) taken: Vec<u8>,
    pub(crate) began: Instant,
    /// Seed of the hash that detects changed pages. It is secret, so that no content can be made to
    /// collide.
    pub(crate) seed: u64,
    pub(crate) room: Room,
    pub(crate) place: Place,
    /// Present if the run accounts for processors.
    pub(crate) processors: Option<Processors>,
}

impl<'r> Pager<'r> {
    pub(crate) fn new(setup: Setup<'r>, seed: u64) -> Pager<'r> {
        Pager {
            processes: FxHashMap::default(),
            waiting: Vec::new(),
            next_process: 0,
            standby: Standby::new(1),
            place: Place::new(setup.placement),
            setup,
            counts: Counts::default(),
            by_itself: Vec::new(),
            awaited: BinaryHeap::new(),
            requests: Requests::default(),
            again: Vec::new(),
            events: Vec::new(),
            content: vec![0; MOST_PAGES * PAGE_BYTES],
            taken: vec![0; BATCH_PAGES * PAGE_BYTES],
            began: Instant::now(),
            seed,
            room: Room::default(),
            processors: None,
        }
    }

    /// Handles the announcement of a program or a fork's child, and returns an address space that
    /// became known.
    pub(crate) fn meet(&mut self, mut agent: Agent, faults: Option<Faults>) -> Option<usize> {
        match (agent.hello.kind, faults) {
            (STARTED | INJECTED, Some(faults)) => {
                self.place.greet(&agent.peer);
                agent.serve(None).ok()?;
                let id = self.add(Process::new(faults));
                let process = self.processes.get_mut(&id)?;
                process.number = Some(agent.peer.number().as_raw().unsigned_abs());
                process.probe = agent.hello.probe;
                process.injected = (agent.hello.kind == INJECTED).then_some(agent.hello);
                (process.agent, process.is_busy) = (Some(agent), true);
                Some(id)
            }
            (FORKED, _) => {
                self.waiting.push(agent);
                None
            }
            _ => {
                let error = Errno::from_raw(agent.hello.error.cast_signed()).desc();
                self.leave_out(format!("{}: userfaultfd: {error}", agent.peer.file()));
                // The program runs without the pager, as it cannot be served.
                agent.answer_with(false).ok()?;
                None
            }
        }
    }

    /// Records a program that runs without being served.
    pub(crate) fn leave_out(&mut self, which: String) {
        self.counts.unserved += 1;
        if self.by_itself.len() < BY_ITSELF_MAX {
            self.by_itself.push(which);
        }
    }

    pub(crate) fn add(&mut self, process: Process) -> usize {
        let id = self.next_process;
        self.next_process += 1;
        self.processes.insert(id, process);
        self.room.turns.push_back(id);
        self.counts.processes += 1;
        id
    }

    /// Lets forks' children proceed that have announced themselves and whose address space is known
    /// and settled. Returns those whose events can be read from now on.
    pub(crate) fn admit(&mut self) -> Vec<usize> {
        let mut admitted = Vec::new();
        for mut agent in std::mem::take(&mut self.waiting) {
            let secret = Some(agent.hello.secret);
            let is_it = |process: &Process| process.secret == secret && process.agent.is_none();
            let id = self.processes.iter().find(|(_, it)| is_it(it)).map(|(id, _)| *id);
            let Some(id) = id else {
                // The secret was at the probe page before the child could report it.
                self.leave_out(format!("{}: it does not know its memory", agent.peer.file()));
                continue;
            };
            if !self.settle(id, &agent.hello, &agent.peer.path("smaps")) {
                self.waiting.push(agent);
                continue;
            }
            self.place.greet(&agent.peer);
            if let Some(process) = self.processes.get_mut(&id)
                && agent.serve(Some(process.faults.as_fd())).is_ok()
            {
                process.number = Some(agent.peer.number().as_raw().unsigned_abs());
                process.secret = None;
                (process.agent, process.is_busy) = (Some(agent), true);
                admitted.push(id);
            }
        }
        admitted
    }

    /// Drops forks' children that ended before they could be admitted.
    pub(crate) fn forget_the_gone(&mut self) {
        self.waiting.retain(|agent| !agent.peer.has_ended());
    }

    /// Reads and serves the events of one address space. Returns the address spaces that are new.
    pub(crate) fn serve(&mut self, id: usize) -> Result<Vec<usize>, String> {
        let mut new = Vec::new();
        let Some(process) = self.processes.get_mut(&id) else { return Ok(new) };
        if process.ordered.is_some() {
            return Ok(new);
        }
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if process.read_events(&mut events).is_err() {
            events.clear();
        }
        // Changes come first. Once they are read, the kernel allows pages to be put again. Each
        // page must be put in its state after the changes, even if its fault preceded them.
        for event in &events {
            match *event {
                Event::Fault { .. } => {}
                Event::Fork { file } => new.extend(self.fork(id, file)?),
                Event::Remap { from, to, bytes, kept } => self.remap(id, from, to, bytes, kept),
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
        self.place.faulted(id, thread);
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        if process.number.is_none() && page != process.probe && process.namings < NAMINGS_MAX {
            process.namings += 1;
            process.peer = peer_of(thread);
            let number = process.peer.as_ref().map(|peer| peer.number().as_raw().unsigned_abs());
            process.number = number;
        }
        let has_order = self.processes.get(&id).is_some_and(|it| it.ordered.is_some());
        if has_order || !self.is_settled(id) {
            self.again.push((id, page, write));
            return Ok(());
        }
        if self.state(id, page) != State::Stored {
            let pages = self.window(id, page);
            return self.put(id, page, pages, write);
        }
        let now = Instant::now();
        let on_its_way = |due, page, pages, is_along| {
            Reverse(Awaited { due, is_along, asked: now, process: id, page, pages })
        };
        if let Some(due) = self.when_it_comes(id, page) {
            self.waits(id, thread, now, due);
            self.awaited.push(on_its_way(due, page, 1, false));
            return Ok(());
        }
        if self.requests.wait_for(id, page, write) {
            return Ok(());
        }
        let pages = self.window(id, page);
        self.record(now, id, thread, page, pages);
        let due = self.setup.link.due(now, pages - 1);
        if let Some(due) = due {
            self.waits(id, thread, now, due.page);
        }
        match due {
            Some(due) if due.page == due.run => {
                self.awaited.push(on_its_way(due.page, page, pages, false));
            }
            Some(due) => {
                self.awaited.push(on_its_way(due.page, page, 1, false));
                let next = page + PAGE_BYTES as u64;
                self.awaited.push(on_its_way(due.run, next, pages - 1, true));
            }
            None => return self.put(id, page, pages, write),
        }
        Ok(())
    }

    /// Time at which `page` arrives with an earlier request.
    fn when_it_comes(&self, id: usize, page: u64) -> Option<Instant> {
        let awaited = self.awaited.iter().map(|Reverse(awaited)| awaited);
        let comes = |it: &&Awaited| {
            let bytes = (it.pages * PAGE_BYTES) as u64;
            it.process == id && (it.page..it.page + bytes).contains(&page)
        };
        awaited.filter(comes).map(|it| it.due).min()
    }

    pub(crate) fn state(&self, id: usize, page: u64) -> State {
        self.processes.get(&id).map_or(State::Unknown, |process| process.table.get(page).state)
    }

    /// Number of pages to bring from `page` on: those of a run whose content is stored where that
    /// of `page` is, in memory that is served.
    fn window(&mut self, id: usize, page: u64) -> usize {
        let Some(process) = self.processes.get_mut(&id) else { return 1 };
        if !self.setup.prefetch {
            return 1;
        }
        let wanted = process.streams.window(page);
        let end = process.end_of(page).unwrap_or(page);
        let kept = process.table.get(page).is_kept();
        let pages = (1..wanted)
            .map(|place| page + (place * PAGE_BYTES) as u64)
            .take_while(|next| {
                let entry = process.table.get(*next);
                let is_alike = if kept { entry.is_kept() } else { entry.state == State::Unknown };
                *next < end && is_alike
            })
            .count()
            + 1;
        process.streams.brought(page, pages);
        pages
    }

    fn waits(&mut self, id: usize, thread: u32, from: Instant, until: Instant) {
        let process = self.processes.get(&id).and_then(|process| process.number).unwrap_or(0);
        let (from, until) = (self.time(from), self.time(until));
        self.setup.recorder.waits(process, thread, from, until);
    }

    fn record(&mut self, now: Instant, id: usize, thread: u32, page: u64, pages: usize) {
        self.counts.read_pages += 1;
        self.counts.prefetched_pages += pages as u64 - 1;
        let process = self.processes.get(&id).and_then(|process| process.number).unwrap_or(0);
        let waited = Access {
            time: self.time(now),
            process,
            thread,
            address: page,
            bytes: Bytes(PAGE_BYTES as u64),
            kind: AccessKind::Read,
            prefetched: false,
        };
        self.setup.recorder.access(&waited);
        if pages > 1 {
            self.setup.recorder.access(&Access {
                address: page + PAGE_BYTES as u64,
                bytes: Bytes(((pages - 1) * PAGE_BYTES) as u64),
                prefetched: true,
                ..waited
            });
        }
    }

    /// Retries what the kernel did not allow while an event was unread.
    pub(crate) fn retry(&mut self) -> Result<(), String> {
        self.bring_held()?;
        let again = std::mem::take(&mut self.again);
        for (id, page, write) in again {
            let has_order = self.processes.get(&id).is_some_and(|it| it.ordered.is_some());
            if has_order || !self.is_settled(id) {
                self.again.push((id, page, write));
                continue;
            }
            self.put(id, page, 1, write)?;
        }
        Ok(())
    }

    /// True if faults wait that the kernel did not allow to be served, or children that could not
    /// be settled.
    pub(crate) fn has_retries(&self) -> bool {
        let waits = !self.again.is_empty() || !self.waiting.is_empty() || self.requests.has_held();
        waits || self.is_starved()
    }

    /// Time at which the next page in flight is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.awaited.peek().map(|Reverse(awaited)| awaited.due)
    }

    /// Puts the pages that are due first, now that their time has come.
    pub(crate) fn deliver(&mut self, now: Instant) -> Result<(), String> {
        let Some(Reverse(awaited)) = self.awaited.pop() else { return Ok(()) };
        let Awaited { due, is_along, asked, process: id, page, pages } = awaited;
        if !is_along {
            self.setup.recorder.delayed(due - asked, now - asked);
        }
        let addresses = (page..).step_by(PAGE_BYTES).take(pages);
        let pages: SmallVec<[(u64, bool); MOST_PAGES]> =
            addresses.map(|page| (page, self.state(id, page) == State::Stored)).collect();
        for run in pages.chunk_by(|one, next| one.1 == next.1) {
            let (page, is_stored) = run[0];
            if is_stored {
                self.put(id, page, run.len(), true)?;
            } else if let Some(process) = self.processes.get(&id) {
                // The page has arrived or was discarded meanwhile, and may be in eviction.
                for (page, _) in run {
                    let _ = process.faults.wake(*page);
                }
            }
        }
        Ok(())
    }

    /// Drops the pages in flight of an address space.
    pub(crate) fn await_no_more(&mut self, id: usize) {
        self.awaited.retain(|Reverse(awaited)| awaited.process != id);
        self.requests.forget(id);
    }

    /// Time of `now` since the start of the run.
    pub(crate) fn time(&self, now: Instant) -> Ns {
        Ns(u64::try_from(now.duration_since(self.began).as_nanos()).unwrap_or(u64::MAX))
    }

    /// Looks, from time to time, at what the program has of the processors.
    pub(crate) fn account(&mut self, now: Instant) {
        let agents = self.processes.values().filter_map(|process| process.agent.as_ref());
        if let Some(processors) = &mut self.processors {
            processors.look(now, agents.map(|agent| &agent.peer));
        }
    }

    /// Duration of the run so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_is_due_at_once_the_page_that_a_thread_waits_for_is_put_first() {
        let due = Instant::now();
        let later = due + Duration::from_micros(1);
        let run = Awaited { due, is_along: true, asked: due, process: 0, page: 4096, pages: 31 };
        let next = Awaited { due: later, is_along: false, page: 0, pages: 1, ..run };
        // A thread touched a page of the run after the run was requested.
        let within = Awaited { due, is_along: false, asked: later, page: 8192, pages: 1, ..run };
        let mut awaited = BinaryHeap::from([run, next, within].map(Reverse));
        let put = std::iter::from_fn(|| awaited.pop().map(|Reverse(awaited)| awaited));
        assert_eq!(put.collect::<Vec<_>>(), [within, run, next]);
    }
}
