//! Changes of address spaces: forks, mappings that move or go, ends.

use std::time::{Duration, Instant};

use crate::fault;
use crate::pager::Pager;
use crate::process::{Origin, Process, registered};
use crate::protocol::{Hello, PAGE_BYTES};
use crate::standby::Owner;
use crate::table::{NO_SLOT, Page, State};

/// How long a fork's child waits for a moment at which no change of its parent is unread.
const SETTLE_PATIENCE: Duration = Duration::from_secs(60);

impl Pager<'_> {
    /// A process forked: its child's address space, of which `file` tells.
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
        child.origin = Some(Origin { parent: id, moved: Vec::new(), since: Instant::now() });
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

    /// Settles a fork's child, which has announced itself and waits: what is known of it becomes
    /// what it really has. A registration, and a mapping that moved or went, may have come between
    /// the fork and its being told, or before the fork and been told after it. Whether that could
    /// be done now.
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
        }
        true
    }

    /// Whether faults of a process can be served by what is known of it. A fork's child without an
    /// agent does not wait until it is settled: its first fault does.
    pub(crate) fn is_settled(&mut self, id: usize) -> bool {
        let Some(process) = self.processes.get(&id) else { return true };
        let (Some(hello), Some(_)) = (process.injected, &process.origin) else { return true };
        let smaps = process.peer.as_ref().map(|peer| peer.path("smaps"));
        smaps.is_none_or(|smaps| self.settle(id, &hello, &smaps))
    }

    /// Pages have other addresses now. `kept` is whether their old ones are still mapped.
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
                process.queue.push_back(page);
            }
            if entry.state == State::Standby {
                self.standby.rename(Owner { process: id, page }, entry.standby);
            }
            *process.table.entry(page) = entry;
        }
        if !kept {
            process.served.remove(from..from + bytes);
        }
        process.served.insert(to..to + bytes);
    }

    /// The program gave back `start..end`.
    pub(crate) fn remove(&mut self, id: usize, start: u64, end: u64) {
        self.forget(id, start, end);
        let Some(process) = self.processes.get_mut(&id) else { return };
        for page in (start..end).step_by(PAGE_BYTES) {
            process.table.entry(page).state = State::Removed;
        }
    }

    /// Nothing is mapped at `start..end` any more.
    pub(crate) fn unmap(&mut self, id: usize, start: u64, end: u64) {
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
        if process.is_alive() {
            // Its faults are served on; nothing can be taken out any more.
            process.agent = None;
            process.ordered = None;
            process.files = None;
            return;
        }
        self.forget(id, 0, !(PAGE_BYTES as u64 - 1));
        self.processes.remove(&id);
        self.await_no_more(id);
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
        self.forget_the_gone();
    }
}
