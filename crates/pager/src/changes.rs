//! Changes of address spaces: forks, mappings that are moved or unmapped, and exits.

use std::time::{Duration, Instant};

use crate::fault;
use crate::pager::Pager;
use crate::process::{Origin, Process, registered};
use crate::protocol::{Hello, PAGE_BYTES};
use crate::standby::Owner;
use crate::table::{NO_SLOT, Page, State};

/// How long a fork's child waits for a moment at which all changes of its parent have been read.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);

impl Pager<'_> {
    /// Handles a fork: `file` reports the events of the child's address space.
    pub(crate) fn fork(&mut self, id: usize, file: i32) -> Result<Option<usize>, String> {
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
        child.injected = parent.injected;
        child.probe = parent.probe;
        child.queue = parent.queue.of_child();
        child.origin = Some(Origin { parent: id, moved: Vec::new(), since: Instant::now() });
        for (page, entry) in parent.table.pages() {
            if entry.state != State::Unknown || entry.slot != NO_SLOT {
                if entry.slot != NO_SLOT {
                    self.setup.store.share(entry.slot);
                }
                *child.table.entry(page) = Page { queued: false, refused: false, ..entry };
            }
        }
        let occupied = parent.occupied;
        self.forked(id);
        if let Some(parent) = self.processes.get_mut(&id) {
            parent.table.retry_refused();
        }
        let child = self.add(child);
        // They share these pages, and each write copies one.
        self.set_occupied(child, occupied);
        Ok(Some(child))
    }

    /// Settles a fork's child, which has announced itself and waits: replaces what the pager
    /// assumed by what the kernel shows. A registration, a move or an unmapping may have happened
    /// between the fork and its event, or before the fork and been reported after it. Returns
    /// whether this was possible now.
    pub(crate) fn settle(&mut self, id: usize, hello: &Hello, smaps: &str) -> bool {
        let Some(process) = self.processes.get(&id) else { return true };
        let Some(origin) = &process.origin else { return true };
        let is_early = origin.since.elapsed() < SETTLE_PATIENCE;
        if is_early && self.processes.get(&origin.parent).is_some_and(Process::is_changing) {
            return false;
        }
        let Ok(registered) = registered(smaps, hello) else { return true };
        let moved = self.processes.get_mut(&id).and_then(|process| process.origin.take());
        for (from, to, bytes) in moved.into_iter().flat_map(|origin| origin.moved) {
            if registered.all.contains(&(to..to + bytes)) {
                self.remap(id, from, to, bytes, false);
            }
        }
        let mut end = 0;
        for range in registered.all.iter() {
            self.forget(id, end, range.start);
            end = range.end;
        }
        self.forget(id, end, !(PAGE_BYTES as u64 - 1));
        for range in registered.wiped.iter() {
            self.forget(id, range.start, range.end);
        }
        if let Some(process) = self.processes.get_mut(&id) {
            process.served = registered.writable;
            process.shared = registered.staying_pages;
        }
        true
    }

    /// True if the faults of a process can be served by what is known of it. A fork's child without
    /// an agent is settled by its first fault.
    pub(crate) fn is_settled(&mut self, id: usize) -> bool {
        let Some(process) = self.processes.get(&id) else { return true };
        let (Some(hello), Some(_)) = (process.injected, &process.origin) else { return true };
        let smaps = process.peer.as_ref().map(|peer| peer.path("smaps"));
        smaps.is_none_or(|smaps| self.settle(id, &hello, &smaps))
    }

    /// Moves pages to other addresses. `kept` is true if their old addresses stay mapped.
    pub(crate) fn remap(&mut self, id: usize, from: u64, to: u64, bytes: u64, kept: bool) {
        for child in self.processes.values_mut() {
            if let Some(origin) = child.origin.as_mut().filter(|origin| origin.parent == id) {
                origin.moved.push((from, to, bytes));
            }
        }
        self.forget(id, to, to + bytes);
        let Some(process) = self.processes.get_mut(&id) else { return };
        let mut moved = Vec::new();
        process.table.take(from, from + bytes, |page, entry| moved.push((page, entry)));
        for (page, entry) in moved {
            let page = page - from + to;
            if entry.queued {
                process.queue.push(page, entry.level);
            }
            if entry.state == State::Standby {
                self.standby.rename(Owner { process: id, page }, entry.standby);
            }
            *process.table.entry(page) = entry;
        }
        process.fresh.remove(to..to + bytes);
        if !kept {
            process.fresh.remove(from..from + bytes);
            process.served.remove(from..from + bytes);
        }
        process.served.insert(to..to + bytes);
    }

    /// The program discarded the content of `start..end`.
    pub(crate) fn remove(&mut self, id: usize, start: u64, end: u64) {
        self.forget(id, start, end);
        let Some(process) = self.processes.get_mut(&id) else { return };
        for page in (start..end).step_by(PAGE_BYTES) {
            process.table.entry(page).state = State::Removed;
        }
    }

    /// `start..end` was unmapped.
    pub(crate) fn unmap(&mut self, id: usize, start: u64, end: u64) {
        self.forget(id, start, end);
        if let Some(process) = self.processes.get_mut(&id) {
            process.fresh.remove(start..end);
            process.served.remove(start..end);
        }
    }

    /// Drops the content of `start..end`.
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

    /// Handles the end of an address space or of its agent.
    pub(crate) fn ended(&mut self, id: usize) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        if process.is_alive() {
            // Its faults are still served, but pages can no longer be taken out.
            process.agent = None;
            process.ordered = None;
            process.files = None;
            return;
        }
        self.forget(id, 0, !(PAGE_BYTES as u64 - 1));
        self.forked(id);
        self.set_occupied(id, 0);
        if let Some(process) = self.processes.remove(&id) {
            self.room.beside = self.room.beside.saturating_sub(process.beside);
        }
        self.await_no_more(id);
    }

    /// Looks for address spaces that ended without an event.
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
        self.forget_the_gone();
    }
}

#[cfg(test)]
mod tests;
