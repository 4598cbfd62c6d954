//! Pages into a program's memory: where their content comes from, and what the table says of them
//! then.

use nix::errno::Errno;
use smallvec::SmallVec;

use super::Pager;
use crate::door;
use crate::fault::Faults;
use crate::protocol::PAGE_BYTES;
use crate::stream::MOST_PAGES;
use crate::table::{Page, State};

impl Pager<'_> {
    /// Puts pages at their addresses in the program, and resumes the threads that wait. Pages of a
    /// store behind a network are asked for, and put when they come.
    pub(crate) fn put(
        &mut self,
        id: usize,
        page: u64,
        pages: usize,
        write: bool,
    ) -> Result<(), String> {
        if self.challenge(id, page, write)? {
            return Ok(());
        }
        if self.state(id, page) == State::Stored && self.ask(id, page, pages, write) {
            return Ok(());
        }
        let pages = match self.allowed(pages)? {
            0 => {
                self.again.push((id, page, write));
                return Ok(());
            }
            pages => pages,
        };
        // What left to make room may have sent this page from standby to the store.
        if self.state(id, page) == State::Stored && self.ask(id, page, pages, write) {
            return Ok(());
        }
        let there = self.in_place(id, page, pages).map(|(faults, content)| {
            let (bytes, result) = faults.copy(page, content);
            (bytes / PAGE_BYTES, result)
        });
        let (put, result) = match there {
            Some(done) => done,
            None => self.put_gathered(id, page, pages)?,
        };
        for place in 0..put {
            self.arrived(id, page + (place * PAGE_BYTES) as u64, place == 0);
        }
        let Some(process) = self.processes.get_mut(&id) else { return Ok(()) };
        match result {
            Err(Errno::EAGAIN) if put == 0 => self.again.push((id, page, write)),
            // The page is present already or no longer mapped; the thread retries and finds out.
            Err(_) if put == 0 => drop(process.faults.wake(page)),
            _ => {}
        }
        Ok(())
    }

    /// Answers a fault at the probe page of an unannounced fork's child with a secret. A process
    /// that repeats the secret can read that address space, so it is the process's own.
    fn challenge(&mut self, id: usize, page: u64, write: bool) -> Result<bool, String> {
        let Some(process) = self.processes.get_mut(&id) else { return Ok(false) };
        let is_probe = process.agent.is_none() && process.probe != 0 && page == process.probe;
        if !is_probe || process.injected.is_some() {
            return Ok(false);
        }
        let (secret, content) = door::secret().map_err(|error| format!("random bytes: {error}"))?;
        match process.faults.copy(page, &content).1 {
            Ok(()) => process.secret = Some(secret),
            Err(Errno::EAGAIN) => self.again.push((id, page, write)),
            Err(_) => drop(process.faults.wake(page)),
        }
        Ok(true)
    }

    /// The pages' content where it is contiguous in memory, so that the kernel copies it from
    /// there.
    fn in_place(&self, id: usize, page: u64, pages: usize) -> Option<(&Faults, &[u8])> {
        let process = self.processes.get(&id)?;
        let entry = process.table.get(page);
        let content = match entry.state {
            State::Standby if pages == 1 => self.standby.page(entry.standby),
            State::Stored => {
                let addresses = (page..).step_by(PAGE_BYTES).take(pages);
                let entries = addresses.map(|page| process.table.get(page));
                let stored = entries.map(|it| (it.state == State::Stored).then_some(it.slot));
                self.setup.store.view(&stored.collect::<Option<SmallVec<[u32; MOST_PAGES]>>>()?)?
            }
            _ => return None,
        };
        Some((&process.faults, content))
    }

    /// Puts pages whose content must be gathered, and returns the number put before any error.
    fn put_gathered(
        &mut self,
        id: usize,
        page: u64,
        pages: usize,
    ) -> Result<(usize, nix::Result<()>), String> {
        let mut content = std::mem::take(&mut self.content);
        let gathered = self.gather(id, page, &mut content[..pages * PAGE_BYTES]);
        self.content = content;
        gathered?;
        let Some(process) = self.processes.get(&id) else { return Ok((0, Ok(()))) };
        // Fresh memory gets pages of its own, not the kernel's common page of zeroes: a write to
        // that one would take a page without a fault that is reported.
        let (bytes, result) = process.faults.copy(page, &self.content[..pages * PAGE_BYTES]);
        Ok((bytes / PAGE_BYTES, result))
    }

    /// Fills `to` with the pages from `page` on. A run of pages in the store is requested at once,
    /// as the store may be remote.
    fn gather(&mut self, id: usize, page: u64, to: &mut [u8]) -> Result<(), String> {
        let Some(process) = self.processes.get(&id) else { return Ok(()) };
        let entries: SmallVec<[Page; MOST_PAGES]> = (page..)
            .step_by(PAGE_BYTES)
            .take(to.len() / PAGE_BYTES)
            .map(|page| process.table.get(page))
            .collect();
        let mut rest = to;
        for run in entries.chunk_by(|one, next| one.state == next.state) {
            let (content, others) = rest.split_at_mut(run.len() * PAGE_BYTES);
            rest = others;
            match run[0].state {
                State::Stored => {
                    let slots: SmallVec<[u32; MOST_PAGES]> =
                        run.iter().map(|entry| entry.slot).collect();
                    self.setup.store.load(&slots, content)?;
                }
                State::Standby => {
                    for (entry, content) in run.iter().zip(content.chunks_exact_mut(PAGE_BYTES)) {
                        content.copy_from_slice(self.standby.page(entry.standby));
                    }
                }
                State::Unknown | State::Removed | State::Resident => content.fill(0),
            }
        }
        Ok(())
    }

    /// Copies pages to the program's memory as far as there is room, and returns the number put
    /// before any error.
    pub(crate) fn copy(
        &mut self,
        id: usize,
        page: u64,
        content: &[u8],
    ) -> Result<(usize, nix::Result<()>), String> {
        let pages = self.allowed(content.len() / PAGE_BYTES)?;
        if pages == 0 {
            return Ok((0, Err(Errno::EAGAIN)));
        }
        let Some(process) = self.processes.get(&id) else { return Ok((0, Err(Errno::ESRCH))) };
        let (bytes, result) = process.faults.copy(page, &content[..pages * PAGE_BYTES]);
        let put = bytes / PAGE_BYTES;
        for place in 0..put {
            self.arrived(id, page + (place * PAGE_BYTES) as u64, place == 0);
        }
        Ok((put, result))
    }

    /// Lets threads that wait for a page retry.
    pub(crate) fn wake(&self, id: usize, page: u64) {
        if let Some(process) = self.processes.get(&id) {
            let _ = process.faults.wake(page);
        }
    }

    /// Records that a page is in the program's memory again. `is_needed` is true if a thread waits
    /// for it.
    fn arrived(&mut self, id: usize, page: u64, is_needed: bool) {
        let Some(process) = self.processes.get_mut(&id) else { return };
        let entry = process.table.entry(page);
        if is_needed && entry.is_kept() {
            entry.level = process.queue.level_after(entry.left, entry.level);
        }
        match entry.state {
            State::Standby => {
                self.standby.release(entry.standby);
                self.counts.rescued_pages += 1;
            }
            State::Stored => {}
            State::Unknown | State::Removed | State::Resident => {
                self.counts.zero_pages += 1;
                entry.level = 0;
            }
        }
        entry.state = State::Resident;
        if !entry.queued {
            entry.queued = true;
            process.queue.push(page, entry.level);
        }
        let occupied = process.occupied + 1;
        self.set_occupied(id, occupied);
    }
}
