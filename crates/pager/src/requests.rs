//! Pages that were asked of a store behind a network.
//!
//! Faults overlap: while pages are on their way, the pager serves other faults and takes pages out.
//! What comes is put only where the page still has the content that was asked for.

use std::time::Duration;

use nix::errno::Errno;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::pager::Pager;
use crate::protocol::PAGE_BYTES;
use crate::store::{Edition, Ticket};
use crate::stream::MOST_PAGES;
use crate::table::State;

const PAGE: u64 = PAGE_BYTES as u64;

/// A run of pages that was asked for as one.
#[derive(Clone, Debug)]
struct Run {
    process: usize,
    /// Address of the first page.
    page: u64,
    /// What the store held of each page. `None` for one on standby, which was not asked for.
    editions: SmallVec<[Option<Edition>; 1]>,
    /// Pages that threads wait for, and whether the first of them writes.
    waiters: SmallVec<[(u64, bool); 1]>,
}

impl Run {
    /// True if the store was asked for `page` of address space `id`.
    fn brings(&self, id: usize, page: u64) -> bool {
        let at = page.checked_sub(self.page).map(|bytes| (bytes / PAGE) as usize);
        let edition = at.and_then(|at| self.editions.get(at));
        self.process == id && edition.is_some_and(Option::is_some)
    }
}

/// All runs that were asked for and are not in the program's memory.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    under_way: FxHashMap<Ticket, Run>,
    /// Runs that have come, with their content, and that the kernel did not yet allow to be put.
    held: Vec<(Run, Vec<u8>)>,
    /// Reused to avoid reallocation.
    come: Vec<(Ticket, Vec<u8>)>,
}

impl Requests {
    /// Lets a thread wait for a page that comes with an earlier request, if there is one.
    pub(crate) fn wait_for(&mut self, id: usize, page: u64, write: bool) -> bool {
        let held = self.held.iter_mut().map(|(run, _)| run);
        let mut runs = self.under_way.values_mut().chain(held);
        let Some(run) = runs.find(|run| run.brings(id, page)) else { return false };
        if run.waiters.iter().all(|&(known, _)| known != page) {
            run.waiters.push((page, write));
        }
        true
    }

    /// True if pages have come that the kernel did not yet allow to be put.
    pub(crate) fn has_held(&self) -> bool {
        !self.held.is_empty()
    }

    /// Forgets what was asked for an address space that is gone.
    pub(crate) fn forget(&mut self, id: usize) {
        self.under_way.retain(|_, run| run.process != id);
        self.held.retain(|(run, _)| run.process != id);
    }
}

impl Pager<'_> {
    /// Asks for a run of pages, the first of which is in the store. Returns false where the store
    /// is here.
    pub(crate) fn ask(&mut self, id: usize, page: u64, pages: usize, write: bool) -> bool {
        if self.requests.wait_for(id, page, write) {
            return true;
        }
        let Some(process) = self.processes.get(&id) else { return true };
        let mut slots: SmallVec<[u32; MOST_PAGES]> = SmallVec::new();
        let mut editions = SmallVec::new();
        for entry in (page..).step_by(PAGE_BYTES).take(pages).map(|page| process.table.get(page)) {
            let is_stored = entry.state == State::Stored;
            editions.push(is_stored.then(|| self.setup.store.edition(entry.slot)));
            slots.extend(is_stored.then_some(entry.slot));
        }
        let Some(ticket) = self.setup.store.ask(&slots) else { return false };
        let waiters = SmallVec::from_slice(&[(page, write)]);
        self.requests.under_way.insert(ticket, Run { process: id, page, editions, waiters });
        let under_way = self.requests.under_way.len() as u64;
        self.counts.overlap_most = self.counts.overlap_most.max(under_way);
        true
    }

    /// Takes what has come of the store. Returns how long nothing will come unless the store's
    /// descriptor is readable; `None` if nothing is under way.
    pub(crate) fn receive(&mut self) -> Result<Option<Duration>, String> {
        let mut come = std::mem::take(&mut self.requests.come);
        let rest = self.setup.store.turn(&mut come)?;
        for (ticket, content) in come.drain(..) {
            if let Some(run) = self.requests.under_way.remove(&ticket) {
                self.bring(run, content)?;
            }
        }
        self.requests.come = come;
        Ok(rest)
    }

    /// Puts what has come before, where the kernel allows it by now.
    pub(crate) fn bring_held(&mut self) -> Result<(), String> {
        for (run, content) in std::mem::take(&mut self.requests.held) {
            let has_order = self.processes.get(&run.process).is_some_and(|it| it.ordered.is_some());
            if has_order {
                self.requests.held.push((run, content));
            } else {
                self.bring(run, content)?;
            }
        }
        Ok(())
    }

    /// Puts a run of pages with the content that has come, as far as it is still theirs.
    fn bring(&mut self, run: Run, content: Vec<u8>) -> Result<(), String> {
        let Run { process: id, page: first, .. } = run;
        let at = |place: usize| first + (place * PAGE_BYTES) as u64;
        let current: SmallVec<[bool; MOST_PAGES]> = run
            .editions
            .iter()
            .enumerate()
            .map(|(place, edition)| edition.is_some_and(|it| self.is_current(id, at(place), it)))
            .collect();
        let mut place = 0;
        while place < current.len() {
            let pages = current[place..].iter().take_while(|is_current| **is_current).count();
            if pages == 0 {
                if run.editions[place].is_none() && self.state(id, at(place)) == State::Standby {
                    self.put(id, at(place), 1, false)?;
                }
                place += 1;
                continue;
            }
            let before = run.editions[..place].iter().flatten().count();
            let from = &content[before * PAGE_BYTES..][..pages * PAGE_BYTES];
            let (put, result) = self.copy(id, at(place), from)?;
            if result == Err(Errno::EAGAIN) {
                self.requests.held.push((run, content));
                return Ok(());
            }
            // What cannot be put is present already, or no longer mapped.
            place += if result.is_ok() { pages } else { put + 1 };
        }
        for &(page, write) in &run.waiters {
            let asked = current[((page - first) / PAGE) as usize];
            match self.state(id, page) {
                State::Resident => {}
                // It left again meanwhile, with another content or to another place.
                State::Stored if !asked => self.put(id, page, 1, write)?,
                State::Standby => self.put(id, page, 1, write)?,
                // The thread tries again, and finds out.
                State::Stored | State::Unknown | State::Removed => self.wake(id, page),
            }
        }
        Ok(())
    }

    /// True if a page is in the store with this content.
    fn is_current(&self, id: usize, page: u64, edition: Edition) -> bool {
        let Some(process) = self.processes.get(&id) else { return false };
        let entry = process.table.get(page);
        entry.state == State::Stored && self.setup.store.edition(entry.slot) == edition
    }
}
