//! Eviction: taking pages out of programs, and storing them.

use std::time::Instant;

use ethermem_trace::{Access, AccessKind};
use ethermem_units::Bytes;
use nix::errno::Errno;
use smallvec::SmallVec;
use twox_hash::XxHash3_128;

use crate::agent::Answer;
use crate::pager::Pager;
use crate::process::Process;
use crate::protocol::{BATCH_PAGES, Done, PAGE_BYTES};
use crate::standby::Owner;
use crate::stream::MOST_PAGES;
use crate::table::{NO_SLOT, State};

/// Fraction of the limit (1 over this) by which pages are taken out beyond the required number, so
/// that faults find free room.
const SLACK_SHARE: u64 = 64;
/// Room in pages that faults find: as many as one of them brings.
const READY_PAGES: usize = MOST_PAGES;
/// Size of the standby list: the limit divided by this.
const STANDBY_SHARE: u64 = 16;
impl Pager<'_> {
    /// Takes pages out before they are needed, so that faults find room.
    pub(crate) fn make_room(&mut self) -> Result<(), String> {
        let Some(limit) = self.limit() else { return Ok(()) };
        self.hold_near(limit);
        self.note_peak();
        if !self.room.is_over && self.local_pages() <= limit {
            return Ok(());
        }
        self.room.is_over = true;
        self.widen_standby(limit);
        // A page that is due is not delayed, unless there is hardly any room.
        let wanted = if self.next_due().is_some() { 1 } else { READY_PAGES };
        self.take_for(limit, wanted)
    }

    /// Gives the standby list its part of local memory, once a page has had to leave.
    pub(crate) fn widen_standby(&mut self, limit: u64) {
        self.standby.widen(limit / STANDBY_SHARE);
    }

    /// Takes pages out until `pages` more fit, and some beyond them.
    pub(crate) fn take_for(&mut self, limit: u64, pages: usize) -> Result<(), String> {
        let most = self.most(limit);
        if self.occupied() + pages as u64 <= most || !self.may_take() {
            return Ok(());
        }
        let slack = (limit / SLACK_SHARE).max(BATCH_PAGES as u64).max(pages as u64);
        let began = Instant::now();
        let before = self.counts.taken_pages;
        let result = self.take_until(most.saturating_sub(slack), limit);
        self.tried(self.counts.taken_pages > before);
        self.counts.taking_ns += u64::try_from(began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        result
    }

    fn take_until(&mut self, target: u64, limit: u64) -> Result<(), String> {
        // Each process keeps a few pages, fewer where there are many processes.
        let keep = usize::try_from(limit).unwrap_or(usize::MAX) / (4 * self.processes.len().max(1));
        let mut tried: SmallVec<[usize; 8]> = SmallVec::new();
        while self.occupied() > target {
            let largest = self
                .processes
                .iter()
                .filter(|(id, process)| process.can_give() && !tried.contains(id))
                .max_by_key(|(_, process)| process.occupied)
                .map(|(id, _)| *id);
            let Some(id) = largest else { return Ok(()) };
            self.measure_one(id);
            let excess = self.occupied().saturating_sub(target);
            let wanted = usize::try_from(excess).unwrap_or(usize::MAX).min(BATCH_PAGES);
            match self.take_from(id, wanted, keep)? {
                Round::Took => {}
                Round::Late => self.room.late.push(id),
                Round::Nothing => tried.push(id),
            }
        }
        Ok(())
    }

    fn take_from(&mut self, id: usize, wanted: usize, keep: usize) -> Result<Round, String> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(Round::Nothing) };
        let pages = process.oldest(wanted, keep).unwrap_or_default();
        let (false, Some(agent)) = (pages.is_empty(), &mut process.agent) else {
            return Ok(Round::Nothing);
        };
        let answer = agent.take(&pages);
        process.ordered = Some(pages);
        let round = self.answered(id, answer);
        self.heed(id);
        round
    }

    /// Handles an agent's answer, or its absence.
    pub(crate) fn answered(&mut self, id: usize, answer: Answer) -> Result<Round, String> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(Round::Nothing) };
        match answer {
            Answer::Later => Ok(Round::Late),
            Answer::Gone => {
                self.ended(id);
                Ok(Round::Took)
            }
            Answer::Done(done) if process.ordered.is_none() => {
                self.done(id, u64::from(done.errors[0].unsigned_abs()));
                Ok(Round::Took)
            }
            Answer::Done(done) => {
                let pages = process.ordered.take().unwrap_or_default();
                self.sort(id, &pages, &done)
            }
        }
    }

    /// Keeps the pages that were moved, and requeues the others.
    fn sort(&mut self, id: usize, pages: &[u64], done: &Done) -> Result<Round, String> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(Round::Nothing) };
        let mut moved = Vec::with_capacity(pages.len());
        let mut shared = Vec::new();
        for (place, page) in pages.iter().enumerate() {
            if done.errors[place] == 0 {
                moved.push((place, *page));
                continue;
            }
            match Errno::from_raw(done.errors[place]) {
                // The page is absent: the program discarded it, or it is the zero page.
                Errno::ENOENT => {}
                Errno::EAGAIN => requeue(process, *page),
                Errno::EBUSY if !process.table.get(*page).refused => {
                    process.table.entry(*page).refused = true;
                    requeue(process, *page);
                    shared.push(*page);
                }
                // The mapping's pages must stay, until the next walk.
                _ => self.counts.kept_pages += 1,
            }
        }
        if let (false, Some(agent)) = (shared.is_empty(), &process.agent) {
            process.is_busy = agent.unshare(&shared);
        }
        if moved.is_empty() {
            // An event may have to be read first, so the pager retries later.
            return Ok(Round::Nothing);
        }
        let left = process.occupied.saturating_sub(moved.len() as u64);
        self.set_occupied(id, left);
        let Some(process) = self.processes.get_mut(&id) else { return Ok(Round::Nothing) };
        let mut taken = std::mem::take(&mut self.taken);
        let mut kept = Ok(());
        if let Some(agent) = &process.agent {
            for ((place, _), content) in moved.iter().zip(taken.chunks_exact_mut(PAGE_BYTES)) {
                agent.shown(*place, content);
            }
            let mut each = moved.into_iter().zip(taken.chunks_exact(PAGE_BYTES));
            kept = each.try_for_each(|((_, page), content)| self.keep(id, page, content));
        }
        self.taken = taken;
        kept.map(|()| Round::Took)
    }

    /// Puts a page that was taken out on standby.
    fn keep(&mut self, id: usize, page: u64, content: &[u8]) -> Result<(), String> {
        self.counts.taken_pages += 1;
        let owner = Owner { process: id, page };
        let place = loop {
            match self.standby.push(owner, content) {
                Some(place) => break place,
                None => self.demote_oldest()?,
            }
        };
        if let Some(process) = self.processes.get_mut(&id) {
            let entry = process.table.entry(page);
            entry.left = process.queue.left();
            (entry.state, entry.standby, entry.refused) = (State::Standby, place, false);
        }
        Ok(())
    }

    fn demote_oldest(&mut self) -> Result<(), String> {
        let Some((owner, place)) = self.standby.oldest() else {
            return Err("the standby list is full of pages that nobody owns".to_owned());
        };
        let entry = self.processes.get(&owner.process).map(|it| it.table.get(owner.page));
        let is_owner = entry.is_some_and(|it| it.state == State::Standby && it.standby == place);
        if is_owner { self.demote(owner) } else { Err("a page on standby lost its owner".into()) }
    }

    /// Moves a page from standby to the store.
    pub(crate) fn demote(&mut self, owner: Owner) -> Result<(), String> {
        let Some(process) = self.processes.get_mut(&owner.process) else { return Ok(()) };
        let entry = process.table.entry(owner.page);
        let mut written = None;
        let content = self.standby.page(entry.standby);
        let slot = (entry.slot != NO_SLOT).then_some(entry.slot);
        if is_zero(content) {
            if let Some(slot) = slot {
                self.setup.store.release(slot);
            }
            self.counts.empty_pages += 1;
            (entry.state, entry.slot) = (State::Unknown, NO_SLOT);
        } else {
            let hash = XxHash3_128::oneshot_with_seed(self.seed, content);
            if slot.is_some() && entry.hash == hash {
                self.counts.dropped_pages += 1;
            } else {
                entry.slot = self.setup.store.save(slot, content)?;
                entry.hash = hash;
                self.counts.written_pages += 1;
                written = process.number;
            }
            entry.state = State::Stored;
        }
        self.standby.release(entry.standby);
        if let Some(process) = written {
            let now = Instant::now();
            self.setup.link.transfer(now, PAGE_BYTES as u64);
            self.setup.recorder.access(&Access {
                time: self.time(now),
                process,
                thread: 0,
                address: owner.page,
                bytes: Bytes(PAGE_BYTES as u64),
                kind: AccessKind::WriteBack,
                prefetched: false,
            });
        }
        Ok(())
    }
}

/// Result of an attempt to take pages out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// Some were taken, or will be at the next attempt.
    Took,
    /// The agent has not answered.
    Late,
    /// No page can be taken.
    Nothing,
}

fn requeue(process: &mut Process, page: u64) {
    let entry = process.table.entry(page);
    entry.queued = true;
    process.queue.push(page, entry.level);
}

fn is_zero(page: &[u8]) -> bool {
    page.chunks_exact(8).all(|word| word == [0; 8])
}
