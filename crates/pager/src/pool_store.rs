//! Pages in a pool: on a memory node, or in this process behind the pool's interface.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use ethermem::{Error, Pending, Permissions, Pool, Region, Thread};

use crate::protocol::PAGE_BYTES;
use crate::store::{Backing, CHUNK_PAGES};

/// Limit of writes in flight.
const WRITES: usize = 64;
/// Interval of keep-alives while the pool is otherwise idle, well within any lease.
const SIGN_OF_LIFE: Duration = Duration::from_millis(500);

/// Regions of a pool, each of a chunk's size.
pub(crate) struct InPool {
    // The pool is dropped last, after what uses it.
    regions: Vec<Region>,
    writes: VecDeque<Pending<()>>,
    thread: Thread,
    asked: Instant,
    pool: Pool,
}

impl InPool {
    pub(crate) fn new(pool: Pool) -> Result<InPool, Error> {
        let thread = pool.thread()?;
        let (regions, writes) = (Vec::new(), VecDeque::new());
        Ok(InPool { regions, writes, thread, asked: Instant::now(), pool })
    }

    fn place(&self, slot: u32) -> (&Region, u64) {
        let (chunk, index) = (slot as usize / CHUNK_PAGES, slot as usize % CHUNK_PAGES);
        (&self.regions[chunk], (index * PAGE_BYTES) as u64)
    }

    /// Text of an error, with the pool's name.
    fn said(&self, error: &Error) -> String {
        format!("{}: {error}", self.pool.url())
    }
}

impl Backing for InPool {
    fn grow(&mut self) -> Result<(), String> {
        let bytes = (CHUNK_PAGES * PAGE_BYTES) as u64;
        let region = self.thread.alloc(bytes, Permissions::READ_WRITE).wait();
        self.regions.push(region.map_err(|error| self.said(&error))?);
        Ok(())
    }

    fn save(&mut self, slot: u32, page: &[u8]) -> Result<(), String> {
        self.asked = Instant::now();
        let (region, offset) = self.place(slot);
        let write = region.write(offset, page);
        self.writes.push_back(write);
        while let Some(mut first) = self.writes.pop_front() {
            match first.poll_result() {
                Some(result) => result.map_err(|error| self.said(&error))?,
                None if self.writes.len() >= WRITES => {
                    first.wait().map_err(|error| self.said(&error))?;
                }
                None => {
                    self.writes.push_front(first);
                    break;
                }
            }
        }
        Ok(())
    }

    fn load(&mut self, slots: &[u32], to: &mut [u8]) -> Result<(), String> {
        self.asked = Instant::now();
        // Pages that left together are stored together, so that each run of them needs one read.
        let is_next = |one: &u32, next: &u32| {
            *next == one + 1 && !(*next as usize).is_multiple_of(CHUNK_PAGES)
        };
        let mut runs = slots.chunk_by(is_next).map(|run| (run[0], run.len() * PAGE_BYTES));
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

    fn tick(&mut self) -> Result<(), String> {
        while let Some(write) = self.writes.pop_front() {
            write.wait().map_err(|error| self.said(&error))?;
        }
        if let Some(region) = self.regions.first()
            && self.asked.elapsed() >= SIGN_OF_LIFE
        {
            self.asked = Instant::now();
            region.read_into(0, &mut [0; 8]).map_err(|error| self.said(&error))?;
        }
        Ok(())
    }
}

impl Drop for InPool {
    fn drop(&mut self) {
        // Operations in flight complete before their regions are freed. A lost node needs no frees.
        let writes = self.writes.drain(..).try_for_each(Pending::wait);
        let frees: Vec<Pending<()>> = self.regions.drain(..).map(Region::free).collect();
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
