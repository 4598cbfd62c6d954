//! One address space that the pager serves.

use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

use crate::agent::Agent;
use crate::door::Secret;
use crate::fault::{self, Event, Faults};
use crate::memory_map::{self, ProcessFiles};
use crate::order;
use crate::peer::Peer;
use crate::protocol::{BATCH_PAGES, Hello, PAGE_BYTES};
use crate::queue::Queue;
use crate::ranges::Ranges;
use crate::stream::Streams;
use crate::table::{State, Table};
use crate::threads::Descriptors;

/// Number of ranges that one walk through the page table returns.
const SCAN_RANGES: usize = 512;
/// Ratio of the pause between two walks to the duration of the last, so that a program whose pages
/// must all stay costs little.
const SCAN_SHARE: u32 = 10;
const SCAN_PAUSE: Duration = Duration::from_millis(1);
/// Number of most recent pages that stay, whatever the limit. An instruction may need several at
/// once, and a program whose pages are evicted before use makes no progress.
const KEEP_PAGES: usize = 64;
const KEEP_PAGES_OF_THREAD: usize = 8;
const KEEP_PAGES_LEAST: usize = 16;

/// Number of looks at threads that change mappings, as they may never all rest: a minute or more.
/// It is a number and not a time. A thread that was preempted within a change needs the processor,
/// and may wait seconds for it on a busy machine.
const CHANGE_LOOKS: u32 = 1_000_000;
const CHANGE_PAUSE: Duration = Duration::from_micros(20);
/// Address of a page where the kernel never maps anything by itself.
const LOW_PAGE: u64 = 1 << 20;

/// An address space, and all that the pager knows of it.
pub(crate) struct Process {
    pub(crate) faults: Faults,
    /// Number of the process. For a fork's child it is unknown until its agent announces itself or,
    /// without an agent, until its first fault.
    pub(crate) number: Option<u32>,
    /// For a fork's child without an agent: the process that its first faults named.
    pub(crate) peer: Option<Peer>,
    /// Number of lookups of the process that a fault names.
    pub(crate) namings: u8,
    /// The probe page, where a fork's child finds the secret that proves which address space is its
    /// own, or 0.
    pub(crate) probe: u64,
    /// Secret that was put at the probe page.
    pub(crate) secret: Option<Secret>,
    pub(crate) agent: Option<Agent>,
    /// Announcement of the agent that was written into the program; forks have it, but no agent.
    pub(crate) injected: Option<Hello>,
    /// Number of the agent's thread, 0 until it is ready.
    pub(crate) agent_thread: u32,
    pub(crate) files: Option<ProcessFiles>,
    pub(crate) table: Table,
    /// Ranges whose absent pages are reported; empty in a fork's child until it is settled.
    pub(crate) served: Ranges,
    /// The parent's state, for a fork's child, until the child is settled.
    pub(crate) origin: Option<Origin>,
    /// Pages in the program's memory, in the order in which they leave.
    pub(crate) queue: Queue,
    pub(crate) streams: Streams,
    /// Thread descriptors, whose pages must stay.
    descriptors: Descriptors,
    /// Pages that the agent was ordered to take; present until it answers.
    pub(crate) ordered: Option<Vec<u64>>,
    /// True while the agent starts or unshares pages, and has not answered.
    pub(crate) is_busy: bool,
    /// Pages that the process occupies, as last read and updated since. Only
    /// [`Pager::set_occupied`](crate::pager::Pager::set_occupied) changes it.
    pub(crate) occupied: u64,
    /// Resident pages of files and shared memory when they were last counted.
    pub(crate) beside: u64,
    /// Pages that do not count, as the parent of a fork has them: those that stay in any case.
    pub(crate) shared: u64,
    /// True if it grew by other pages than the pager put.
    pub(crate) has_grown: bool,
    /// State of its new mappings.
    pub(crate) held: Held,
    /// Ranges that the pager registered when the program mapped them. They may have been unmapped
    /// before, so only the next walk through the mappings makes them `served`.
    pub(crate) fresh: Ranges,
    scan_after: Instant,
}

/// How new mappings are treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// They do not.
    No,
    /// The agent was told, and has not answered.
    Told,
    /// They do.
    Yes,
}

/// The parent of a fork's child. The kernel reports a fork and the parent's earlier changes of
/// mappings in any order.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) parent: usize,
    /// Mappings of the parent whose moves were reported after the fork: from, to, bytes.
    pub(crate) moved: Vec<(u64, u64, u64)>,
    /// Time when the fork was reported.
    pub(crate) since: Instant,
}

impl Process {
    pub(crate) fn new(faults: Faults) -> Process {
        Process {
            faults,
            number: None,
            peer: None,
            namings: 0,
            probe: 0,
            secret: None,
            agent: None,
            injected: None,
            agent_thread: 0,
            files: None,
            table: Table::default(),
            served: Ranges::default(),
            origin: None,
            queue: Queue::default(),
            streams: Streams::default(),
            descriptors: Descriptors::default(),
            ordered: None,
            is_busy: false,
            occupied: 0,
            beside: 0,
            shared: 0,
            has_grown: false,
            held: Held::No,
            fresh: Ranges::default(),
            scan_after: Instant::now(),
        }
    }

    /// Records that the agent is ready and runs as thread `said`. The process is inspected through
    /// that thread, because its first thread may end before the others and then shows nothing.
    /// Returns whether `said` is a thread of the process.
    pub(crate) fn ready(&mut self, said: u64) -> bool {
        let Some(agent) = &self.agent else { return false };
        let Some(thread) = agent.peer.thread(said) else { return false };
        self.agent_thread = thread.as_raw().unsigned_abs();
        self.files = ProcessFiles::open(&agent.peer.path(&format!("task/{thread}"))).ok();
        true
    }

    /// Address of a page that is not registered.
    fn unserved(&self) -> u64 {
        self.agent.as_ref().map_or(LOW_PAGE, |agent| agent.hello.own_start)
    }

    /// True if a mapping changed and the event has not been read.
    pub(crate) fn is_changing(&self) -> bool {
        self.faults.is_changing(self.unserved())
    }

    /// True if the address space still exists.
    pub(crate) fn is_alive(&self) -> bool {
        self.faults.is_alive(self.unserved())
    }

    /// Reads all events. If a mapping moved, it reads until no change is pending, and puts the
    /// changes in order.
    pub(crate) fn read_events(&self, to: &mut Vec<Event>) -> nix::Result<()> {
        self.faults.read(to)?;
        if !to.iter().any(|event| matches!(event, Event::Remap { .. })) {
            return Ok(());
        }
        for look in 0.. {
            let is_late = look >= CHANGE_LOOKS;
            if self.is_changing() && !is_late {
                // Leaves the processor to the thread that made a change and was preempted.
                std::thread::sleep(CHANGE_PAUSE);
                self.faults.read(to)?;
                continue;
            }
            order::join(to);
            let pages = order::contested(to);
            let known = |page| Some((page, self.faults.is_registered(page)?));
            let registered: Option<Vec<_>> = pages.into_iter().map(known).collect();
            if registered.is_some() || is_late {
                order::arrange(to, &registered.unwrap_or_default());
                break;
            }
        }
        Ok(())
    }

    /// True if pages can be taken out now.
    pub(crate) fn can_give(&self) -> bool {
        let is_idle = self.ordered.is_none() && !self.is_busy;
        is_idle && self.agent.is_some() && self.files.is_some()
    }

    /// Registers memory that the program mapped and has not used.
    pub(crate) fn grew(&mut self, start: u64, bytes: u64) {
        let end = start.saturating_add(bytes);
        let is_own = self.agent.as_ref().is_some_and(|agent| {
            own(&agent.hello).iter().any(|own| own.start < end && start < own.end)
        });
        if !is_own && self.faults.register(start, end).is_ok() {
            self.fresh.insert(start..end);
        }
    }

    /// Ranges of absent pages are reported up to this address, from `page` on.
    pub(crate) fn end_of(&self, page: u64) -> Option<u64> {
        self.served.end_of(page).or_else(|| self.fresh.end_of(page))
    }

    /// True if the agent has yet to answer.
    pub(crate) fn is_late(&self) -> bool {
        self.ordered.is_some() || self.is_busy
    }

    /// True if a walk through the page table would not come too soon after the last.
    pub(crate) fn may_scan(&self) -> bool {
        Instant::now() >= self.scan_after
    }

    /// The next pages to take out, oldest first; the latest `keep` or so stay. A walk through the
    /// page table finds more when the queue is empty.
    pub(crate) fn oldest(&mut self, most: usize, keep: usize) -> io::Result<Vec<u64>> {
        if let Some(agent) = &self.agent {
            self.descriptors.look(&agent.peer.path("task"), self.queue.len(), most);
        }
        let threads = self.descriptors.threads();
        let least = KEEP_PAGES_LEAST + KEEP_PAGES_OF_THREAD / 2 * threads;
        let keep = (KEEP_PAGES + KEEP_PAGES_OF_THREAD * threads).min(keep.max(least));
        if self.queue.len() <= keep && self.may_scan() {
            self.discover()?;
        }
        let most = most.min(self.queue.len().saturating_sub(keep));
        let (mut pages, mut stay) = (Vec::with_capacity(most), Vec::new());
        while pages.len() < most
            && let Some(page) = self.queue.pop(keep)
        {
            let entry = self.table.get(page);
            if entry.queued && self.descriptors.holds(page) {
                stay.push(page);
            } else if entry.queued {
                self.table.entry(page).queued = false;
                if matches!(entry.state, State::Unknown | State::Resident) {
                    pages.push(page);
                }
            }
        }
        for page in stay {
            self.queue.push(page, self.table.get(page).level);
        }
        Ok(pages)
    }

    /// Registers new mappings, and queues the pages that are in memory.
    pub(crate) fn discover(&mut self) -> io::Result<()> {
        let (Some(files), Some(agent)) = (&self.files, &self.agent) else { return Ok(()) };
        let began = Instant::now();
        let mut is_new = false;
        // Where the C library is unknown, so is the word that the kernel writes when a thread ends;
        // musl keeps it among its variables.
        let keeps_variables = self.injected.is_some();
        let own = own(&agent.hello);
        for run in memory_map::runs(&files.maps()?, &own, keeps_variables) {
            let unserved: Vec<_> =
                run.servable.iter().filter(|range| !self.served.contains(range)).collect();
            if unserved.is_empty() {
                continue;
            }
            let register = |range: &Range<u64>| self.faults.register(range.start, range.end);
            is_new |= register(&run.whole).is_ok()
                // Some ranges are the program's own to serve or have changed, so each is tried by
                // itself.
                || unserved.iter().filter(|range| register(range).is_ok()).count() > 0;
        }
        if is_new {
            // The requested ranges may differ: part may have been unmapped, with the event still
            // pending.
            let smaps = agent.peer.path(&format!("task/{}/smaps", self.agent_thread));
            self.served = registered(&smaps, &agent.hello)?.writable;
            self.fresh = Ranges::default();
        }
        let mut found = Vec::new();
        for range in self.served.iter() {
            let mut from = range.start;
            while from < range.end {
                from = fault::present(&files.pagemap, from, range.end, SCAN_RANGES, &mut found)?;
            }
        }
        for page in found.into_iter().flat_map(|(start, end)| (start..end).step_by(PAGE_BYTES)) {
            let entry = self.table.entry(page);
            if !entry.queued && matches!(entry.state, State::Unknown | State::Resident) {
                entry.queued = true;
                self.queue.push(page, entry.level);
            }
        }
        self.scan_after = Instant::now() + SCAN_PAUSE.max(began.elapsed() * SCAN_SHARE);
        Ok(())
    }
}

/// Ranges that the kernel has registered of an address space.
#[derive(Default)]
pub(crate) struct Registration {
    pub(crate) all: Ranges,
    /// Ranges that can be written now.
    pub(crate) writable: Ranges,
    /// Ranges that are zeroes in a fork's child.
    pub(crate) wiped: Ranges,
    /// Private pages elsewhere.
    pub(crate) staying_pages: u64,
}

/// Reads what is registered of the process with these `smaps`, whose agent sent `hello`. Later
/// changes are reported.
pub(crate) fn registered(smaps: &str, hello: &Hello) -> io::Result<Registration> {
    let (parts, staying_pages) = memory_map::registered(smaps)?;
    let mut found = Registration { staying_pages, ..Registration::default() };
    for part in parts {
        for range in without(part.range, hello) {
            found.all.insert(range.clone());
            if part.is_writable {
                found.writable.insert(range.clone());
            }
            if part.is_wiped {
                found.wiped.insert(range);
            }
        }
    }
    Ok(found)
}

/// `range` without the agent's memory.
fn without(range: Range<u64>, hello: &Hello) -> impl Iterator<Item = Range<u64>> {
    let mut left = Ranges::default();
    left.insert(range);
    own(hello).into_iter().for_each(|own| left.remove(own));
    left.iter().collect::<Vec<_>>().into_iter()
}

/// The agent's memory, which stays in place.
fn own(hello: &Hello) -> [Range<u64>; 4] {
    [
        hello.own_start..hello.own_end,
        hello.image_start..hello.image_end,
        hello.staging..hello.staging + (BATCH_PAGES * PAGE_BYTES) as u64,
        hello.probe..hello.probe + PAGE_BYTES as u64,
    ]
}
