//! The limit on local memory: what is local, when new mappings must wait for their registration,
//! and which pages may be put.
//!
//! Once mappings are held, memory of the program grows by a page that the pager puts, and by little
//! else. So the pager keeps the limit by putting nothing above it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::agent::Answer;
use crate::memory_map::ProcessFiles;
use crate::pager::{Local, Pager};
use crate::process::{Held, Process};
use crate::protocol::{Ask, BATCH_PAGES, PAGE_BYTES};

/// Mappings are held when the rest of the limit is below this, or below a share of the limit: what
/// a program could fill between two looks of the pager, on several processors.
const HOLD_BYTES: u64 = 64 << 20;
const HOLD_BYTES_OF_PROCESS: u64 = 16 << 20;
const HOLD_SHARE: u64 = 4;
/// Smallest effective limit in pages: programs need some pages to make progress.
const SMALLEST_PAGES: u64 = 256;
/// Processes whose memory is read in one look, so that its cost does not grow with their number.
const MEASURED_MAX: usize = 32;
/// Growth in pages, beyond the pages put, after which a process is searched for new mappings.
const GROWN_PAGES: u64 = 8;
/// A fault or a fork waits this long for room while an agent is late, or no page can be taken.
const LATE_PATIENCE: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_millis(10);
/// Largest number of pages that are put above the limit before room is looked for again.
const GRACE_MAX: usize = 4096;
/// Pause after an attempt that found no page to take, unless an agent answers meanwhile.
const IDLE: Duration = Duration::from_millis(1);
/// How long a fork that was allowed may take.
const FORK_PATIENCE: Duration = Duration::from_secs(1);

/// State of the limit, over all processes.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// Pages in the memory of programs: the sum over all processes.
    pub(crate) occupied: u64,
    /// Resident pages of files and shared memory, which the limit does not count: the sum over all
    /// processes.
    pub(crate) beside: u64,
    /// True once new mappings wait for their registration.
    pub(crate) is_held: bool,
    /// True once local memory would have exceeded its limit; part of it is the standby list then.
    pub(crate) is_over: bool,
    /// Processes in the order in which their memory is read next.
    pub(crate) turns: VecDeque<usize>,
    /// Processes that fork: until the fork is reported their pages count twice.
    forking: Vec<(usize, Instant)>,
    /// Processes whose agents did not answer in time.
    pub(crate) late: Vec<usize>,
    /// Since when a thread waits for room.
    starved: Option<Instant>,
    /// Pages that may be put above the limit, as nothing could be taken for long.
    grace: usize,
    /// How many such pages there are next: more, while nothing can be taken.
    next_grace: usize,
    /// Until then nothing is tried, as no page could be taken just before.
    idle_until: Option<Instant>,
}

impl Pager<'_> {
    /// Pages in local memory, including those on standby.
    pub(crate) fn local_pages(&self) -> u64 {
        self.occupied() + self.standby.pages()
    }

    /// Pages in the memory of programs. Those of a process that forks count twice, as each write to
    /// a shared page copies it without a reported fault.
    pub(crate) fn occupied(&self) -> u64 {
        let of = |(id, _): &(usize, Instant)| self.processes.get(id).map_or(0, |it| it.occupied);
        self.room.occupied + self.room.forking.iter().map(of).sum::<u64>()
    }

    /// Sets the number of pages that a process occupies.
    pub(crate) fn set_occupied(&mut self, id: usize, pages: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        self.room.occupied = (self.room.occupied + pages).saturating_sub(process.occupied);
        process.occupied = pages;
    }

    /// Reads how much memory a process occupies.
    pub(crate) fn measure_one(&mut self, id: usize) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let Some(resident) = process.files.as_ref().map(ProcessFiles::resident) else { return };
        let beside = std::mem::replace(&mut process.beside, resident.shared);
        self.room.beside = (self.room.beside + resident.shared).saturating_sub(beside);
        let pages = resident.private.saturating_sub(process.shared);
        process.has_grown |= pages > process.occupied + GROWN_PAGES;
        self.set_occupied(id, pages);
    }

    /// Reads how much memory some of the processes occupy, each in turn, and registers mappings
    /// that no agent reported.
    pub(crate) fn measure(&mut self) {
        for _ in 0..self.room.turns.len().min(MEASURED_MAX) {
            let Some(id) = self.room.turns.pop_front() else { break };
            self.measure_one(id);
            let Some(process) = self.processes.get_mut(&id) else { continue };
            self.room.turns.push_back(id);
            if self.room.is_held && process.has_grown && process.may_scan() {
                process.has_grown = false;
                // A process that ends meanwhile has no mappings.
                let _ = process.discover();
            }
        }
        self.note_peak();
    }

    pub(crate) fn note_peak(&mut self) {
        let local = self.room.occupied + self.standby.pages();
        let remote = self.setup.store.pages();
        self.counts.beside_pages = self.counts.beside_pages.max(self.room.beside);
        self.counts.peak_pages = self.counts.peak_pages.max(local);
        self.counts.held_pages = self.counts.held_pages.max(local + remote);
    }

    /// Pages that may be local now.
    pub(crate) fn limit(&self) -> Option<u64> {
        match self.setup.local {
            Local::All => None,
            Local::Bytes(bytes) => Some((bytes / PAGE_BYTES as u64).max(SMALLEST_PAGES)),
            Local::Share { of, least_bytes } => {
                let held = self.local_pages() + self.setup.store.pages();
                let least = (least_bytes / PAGE_BYTES as u64).max(SMALLEST_PAGES);
                Some(((held as f64 * of) as u64).max(least))
            }
        }
    }

    /// Pages that may be in the memory of programs, under this limit.
    pub(crate) fn most(&self, limit: u64) -> u64 {
        let standby = if self.room.is_over { self.standby.capacity() } else { 0 };
        limit.saturating_sub(standby).max(limit / 2)
    }

    /// Makes new mappings wait for their registration, once the program is near its limit.
    pub(crate) fn hold_near(&mut self, limit: u64) {
        let bytes = HOLD_BYTES.max(HOLD_BYTES_OF_PROCESS * self.processes.len() as u64);
        let margin = (bytes / PAGE_BYTES as u64).max(limit / HOLD_SHARE);
        if self.room.is_held || self.local_pages() + margin <= limit {
            return;
        }
        self.room.is_held = true;
        let all: Vec<usize> = self.processes.keys().copied().collect();
        all.into_iter().for_each(|id| self.hold(id));
    }

    /// Makes the new mappings of a process wait, if its agent can be told now.
    fn hold(&mut self, id: usize) {
        let is_held = self.room.is_held;
        let Some(process) = self.processes.get_mut(&id) else { return };
        if !is_held || process.held != Held::No || process.agent_thread == 0 || !process.can_give()
        {
            return;
        }
        if let Some(agent) = &process.agent
            && agent.go(true)
        {
            (process.held, process.is_busy) = (Held::Told, true);
        }
    }

    /// Lets a process run whose agent is ready.
    fn begin(&mut self, id: usize) {
        self.measure_one(id);
        let is_held = self.room.is_held;
        let Some(process) = self.processes.get_mut(&id) else { return };
        if is_held {
            let _ = process.discover();
            process.held = Held::Told;
        }
        if let Some(agent) = &process.agent {
            process.is_busy = agent.go(is_held);
        }
    }

    /// Handles the answer of an agent that started, or that was told something other than to take
    /// pages.
    pub(crate) fn done(&mut self, id: usize, said: u64) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        process.is_busy = false;
        self.room.idle_until = None;
        if process.agent_thread == 0 {
            if process.ready(said) {
                self.begin(id);
            } else {
                self.ended(id);
            }
            return;
        }
        if process.held == Held::Told {
            process.held = Held::Yes;
            // What was mapped before the agent knew.
            let _ = process.discover();
        }
        self.hold(id);
    }

    /// Handles what a thread of a process asks, if one does.
    pub(crate) fn heed(&mut self, id: usize) {
        self.hold(id);
        let Some(process) = self.processes.get_mut(&id) else { return };
        let Some(ask) = process.agent.as_ref().and_then(|agent| agent.asked) else { return };
        match ask.kind {
            Ask::FORKS if self.setup.local != Local::All => {
                if self.room.forking.iter().all(|(known, _)| *known != id) {
                    self.room.forking.push((id, Instant::now()));
                }
                return;
            }
            Ask::GROWN => process.grew(ask.start, ask.bytes),
            _ => {}
        }
        grant(process);
    }

    /// Lets threads fork for whose children there is room.
    pub(crate) fn allow_forks(&mut self) {
        let Some(limit) = self.limit() else { return };
        if self.room.forking.is_empty() {
            return;
        }
        let has_room = self.occupied() <= self.most(limit);
        let is_late = self.processes.values().any(Process::is_late);
        // While pages leave, a fork waits for as long as it takes.
        let is_stuck = self.room.idle_until.is_some() && !is_late;
        let patience = if is_stuck { PATIENCE } else { LATE_PATIENCE };
        let mut overruns = 0;
        self.room.forking.retain(|(id, since)| {
            let Some(process) = self.processes.get_mut(id) else { return false };
            let is_asking = process.agent.as_ref().is_some_and(|agent| agent.asked.is_some());
            if is_asking && (has_room || since.elapsed() > patience) {
                overruns += u64::from(!has_room);
                grant(process);
            }
            since.elapsed() < FORK_PATIENCE
        });
        self.counts.overruns += overruns;
    }

    /// Records that the fork of a process was reported.
    pub(crate) fn forked(&mut self, id: usize) {
        self.room.forking.retain(|(forking, _)| *forking != id);
    }

    /// True if a thread waits for room.
    pub(crate) fn is_starved(&self) -> bool {
        self.room.starved.is_some() || !self.room.forking.is_empty()
    }

    /// Number of pages, of `pages`, that may be put now; 0 if the thread must wait. Makes room if
    /// there is none.
    pub(crate) fn allowed(&mut self, pages: usize) -> Result<usize, String> {
        let Some(limit) = self.limit() else { return Ok(pages) };
        if !self.has_room(limit, pages) {
            if self.room.grace > 0 {
                let pages = pages.min(self.room.grace);
                self.room.grace -= pages;
                self.counts.overruns += pages as u64;
                return Ok(pages);
            }
            self.take_for(limit, pages)?;
        }
        let free = self.most(limit).saturating_sub(self.occupied());
        if free > 0 {
            (self.room.starved, self.room.grace) = (None, 0);
            self.room.next_grace = BATCH_PAGES;
            return Ok(pages.min(usize::try_from(free).unwrap_or(pages)));
        }
        let is_late = |process: &Process| process.ordered.is_some() || process.is_busy;
        let patience = if self.processes.values().any(is_late) { LATE_PATIENCE } else { PATIENCE };
        let since = *self.room.starved.get_or_insert_with(Instant::now);
        if since.elapsed() > patience {
            (self.room.starved, self.room.grace) = (None, self.room.next_grace.max(BATCH_PAGES));
            self.room.next_grace = (self.room.grace * 2).min(GRACE_MAX);
        }
        Ok(0)
    }

    /// True if an attempt to take pages may succeed.
    pub(crate) fn may_take(&self) -> bool {
        self.room.idle_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Records the result of an attempt to take pages.
    pub(crate) fn tried(&mut self, took: bool) {
        self.room.idle_until = (!took).then(|| Instant::now() + IDLE);
    }

    fn has_room(&mut self, limit: u64, pages: usize) -> bool {
        let wanted = self.occupied() + pages as u64;
        if !self.room.is_over && wanted > limit {
            self.room.is_over = true;
            self.widen_standby(limit);
        }
        wanted <= self.most(limit)
    }

    /// Handles the answer of an agent, or its absence, and what its process asks.
    pub(crate) fn heard(&mut self, id: usize, answer: Option<Answer>) -> Result<(), String> {
        if let Some(answer) = answer {
            self.answered(id, answer)?;
        }
        self.heed(id);
        Ok(())
    }
}

/// Lets the thread of a process proceed that asked.
fn grant(process: &mut Process) {
    if let Some(agent) = &mut process.agent {
        agent.asked = None;
        // An agent that is gone needs no answer.
        agent.grant();
    }
}
