//! Pages in a pool: on a memory node, or in this process behind the pool's interface.

use std::cell::Cell;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use ethermem::{Error, Pending, Permissions, Pool, Region, Thread, Turn};
use smallvec::SmallVec;

use crate::protocol::PAGE_BYTES;
use crate::store::{Backing, CHUNK_PAGES, Ticket};

/// Limit of writes in flight.
const WRITES: usize = 256;
/// Interval of keep-alives while the pool is otherwise idle, well within any lease.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);
/// How long the pager may sleep although writes are in flight.
const WRITES_REST: Duration = Duration::from_millis(1);

/// Regions of a pool, each of a chunk's size.
pub(crate) struct InPool {
    // The pool is dropped last, after what uses it.
    regions: Vec<Region>,
    /// The region after those, asked for before it is needed, so that no fault waits for it.
    next: Option<Pending<Region>>,
    writes: VecDeque<Pending<()>>,
    reads: VecDeque<Read>,
    last: Ticket,
    sign: Option<Pending<Vec<u8>>>,
    thread: Thread,
    asked: Instant,
    /// Set by the first error: the node is not asked again.
    lost: Cell<bool>,
    pool: Pool,
}

/// A read of pages, in one part for each run of adjacent slots.
struct Read {
    ticket: Ticket,
    parts: SmallVec<[Pending<Vec<u8>>; 1]>,
    /// The content of the parts that have come, from the first on.
    content: Vec<u8>,
    /// Number of those parts.
    come: usize,
}

impl Read {
    /// Takes what has come. Returns whether that is all.
    fn take(&mut self) -> Result<bool, Error> {
        while let Some(part) = self.parts.get_mut(self.come) {
            let Some(result) = part.poll_result() else { return Ok(false) };
            let content = result?;
            if self.content.is_empty() {
                self.content = content;
            } else {
                self.content.extend_from_slice(&content);
            }
            self.come += 1;
        }
        Ok(true)
    }
}

impl InPool {
    pub(crate) fn new(pool: Pool) -> Result<InPool, Error> {
        let thread = pool.thread()?;
        Ok(InPool {
            regions: Vec::new(),
            next: None,
            writes: VecDeque::new(),
            reads: VecDeque::new(),
            last: Ticket(0),
            sign: None,
            thread,
            asked: Instant::now(),
            lost: Cell::new(false),
            pool,
        })
    }

    fn place(&self, slot: u32) -> (&Region, u64) {
        let (chunk, index) = (slot as usize / CHUNK_PAGES, slot as usize % CHUNK_PAGES);
        (&self.regions[chunk], (index * PAGE_BYTES) as u64)
    }

    /// Text of an error after which the pool is not used again, with the pool's name.
    fn said(&self, error: &Error) -> String {
        self.lost.set(true);
        format!("{}: {error}", self.pool.url())
    }

    /// The reads of pages: one for each run that was stored together.
    fn runs(slots: &[u32]) -> impl Iterator<Item = (u32, usize)> {
        let is_next = |one: &u32, next: &u32| {
            *next == one + 1 && !(*next as usize).is_multiple_of(CHUNK_PAGES)
        };
        slots.chunk_by(is_next).map(|run| (run[0], run.len() * PAGE_BYTES))
    }

    /// Takes the results of writes that have ended.
    fn end_writes(&mut self) -> Result<(), String> {
        while let Some(first) = self.writes.front_mut() {
            let Some(result) = first.poll_result() else { break };
            self.writes.pop_front();
            result.map_err(|error| self.said(&error))?;
        }
        Ok(())
    }
}

impl Backing for InPool {
    fn grow(&mut self) -> Result<(), String> {
        let bytes = (CHUNK_PAGES * PAGE_BYTES) as u64;
        let ask = |thread: &Thread| thread.alloc(bytes, Permissions::READ_WRITE);
        let region = self.next.take().unwrap_or_else(|| ask(&self.thread)).wait();
        self.regions.push(region.map_err(|error| self.said(&error))?);
        if self.pool.responses().is_some() {
            self.next = Some(ask(&self.thread));
        }
        Ok(())
    }

    fn save(&mut self, slot: u32, page: &[u8]) -> Result<(), String> {
        self.asked = Instant::now();
        let (region, offset) = self.place(slot);
        let write = region.write(offset, page);
        self.writes.push_back(write);
        self.end_writes()?;
        if self.writes.len() > WRITES
            && let Some(first) = self.writes.pop_front()
        {
            first.wait().map_err(|error| self.said(&error))?;
        }
        Ok(())
    }

    fn load(&mut self, slots: &[u32], to: &mut [u8]) -> Result<(), String> {
        self.asked = Instant::now();
        let mut runs = InPool::runs(slots);
        let Some((first, bytes)) = runs.next() else { return Ok(()) };
        let (start, mut rest) = to.split_at_mut(bytes);
        let others: Vec<Pending<Vec<u8>>> = runs
            .map(|(slot, bytes)| {
                let (region, offset) = self.place(slot);
                region.read(offset, bytes as u64)
            })
            .collect();
        let (region, offset) = self.place(first);
        region.read_into(offset, start).map_err(|error| self.said(&error))?;
        for read in others {
            let content = read.wait().map_err(|error| self.said(&error))?;
            let (run, after) = rest.split_at_mut(content.len());
            run.copy_from_slice(&content);
            rest = after;
        }
        Ok(())
    }

    fn ask(&mut self, slots: &[u32]) -> Option<Ticket> {
        self.pool.responses()?;
        self.asked = Instant::now();
        let parts = InPool::runs(slots)
            .map(|(slot, bytes)| {
                let (region, offset) = self.place(slot);
                region.read(offset, bytes as u64)
            })
            .collect();
        self.last.0 += 1;
        let ticket = self.last;
        self.reads.push_back(Read { ticket, parts, content: Vec::new(), come: 0 });
        Some(ticket)
    }

    fn turn(&mut self, come: &mut Vec<(Ticket, Vec<u8>)>) -> Result<Option<Duration>, String> {
        let rest = match self.pool.turn() {
            Turn::Rest(rest) => rest,
            Turn::Ended | Turn::Idle => Duration::ZERO,
        };
        self.end_writes()?;
        let mut at = 0;
        while let Some(read) = self.reads.get_mut(at) {
            match read.take() {
                Ok(false) => at += 1,
                Ok(true) => come.extend(self.reads.remove(at).map(|it| (it.ticket, it.content))),
                Err(error) => return Err(self.said(&error)),
            }
        }
        Ok(match (self.reads.is_empty(), self.writes.is_empty()) {
            (false, _) => Some(rest),
            (true, false) => Some(rest.max(WRITES_REST)),
            (true, true) => None,
        })
    }

    fn is_under_way(&self) -> bool {
        !self.reads.is_empty() || (!self.writes.is_empty() && self.pool.responses().is_some())
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.pool.responses()
    }

    fn tick(&mut self) -> Result<(), String> {
        self.end_writes()?;
        if let Some(sign) = &mut self.sign {
            let Some(result) = sign.poll_result() else { return Ok(()) };
            self.sign = None;
            result.map_err(|error| self.said(&error))?;
        }
        if let Some(region) = self.regions.first()
            && self.asked.elapsed() >= SIGN_OF_LIFE
        {
            self.asked = Instant::now();
            self.sign = Some(region.read(0, 8));
        }
        Ok(())
    }
}

impl Drop for InPool {
    fn drop(&mut self) {
        // A lost node needs no frees.
        if self.lost.get() {
            return;
        }
        // Operations in flight complete before their regions are freed.
        let writes = self.writes.drain(..).try_for_each(Pending::wait);
        let next = self.next.take().and_then(|next| next.wait().ok());
        let regions = self.regions.drain(..).chain(next);
        let frees: Vec<Pending<()>> = regions.map(Region::free).collect();
        let _ = writes.and_then(|()| frees.into_iter().try_for_each(Pending::wait));
    }
}

#[cfg(test)]
mod tests {
    use ethermem::Pool;

    use super::InPool;
    use crate::protocol::PAGE_BYTES;
    use crate::store::{Backing, CHUNK_PAGES};

    #[test]
    fn pages_come_back_from_a_pool_as_they_went() {
        let pool = Pool::open("local:").expect("a pool in this process");
        let mut pages = InPool::new(pool).expect("a thread");
        pages.grow().expect("room");
        pages.grow().expect("more room");
        let slots = [0, 1, CHUNK_PAGES as u32 - 1, CHUNK_PAGES as u32];
        for slot in slots {
            pages.save(slot, &[slot as u8; PAGE_BYTES]).expect("saved");
        }
        pages.tick().expect("alive");
        let mut all = vec![0; slots.len() * PAGE_BYTES];
        pages.load(&slots, &mut all).expect("loaded");
        for (slot, page) in slots.iter().zip(all.chunks_exact(PAGE_BYTES)) {
            assert!(page.iter().all(|byte| *byte == *slot as u8), "{slot}");
        }
        let mut one = vec![0; PAGE_BYTES];
        pages.load(&slots[1..2], &mut one).expect("loaded");
        assert_eq!(one, [1; PAGE_BYTES]);
    }
}
