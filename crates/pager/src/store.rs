//! Storage for pages that are not in local memory.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use crate::protocol::PAGE_BYTES;

/// Number of pages by which a backing grows.
pub(crate) const CHUNK_PAGES: usize = 512;

/// Memory for pages, indexed by slot.
pub(crate) trait Backing {
    /// Makes room for `CHUNK_PAGES` more pages.
    fn grow(&mut self) -> Result<(), String>;
    /// Stores a page.
    fn save(&mut self, slot: u32, page: &[u8]) -> Result<(), String>;
    /// Loads pages, one after the other, into `to`.
    fn load(&mut self, slots: &[u32], to: &mut [u8]) -> Result<(), String>;
    /// The pages, where they are contiguous in this process's memory.
    fn view(&self, _slots: &[u32]) -> Option<&[u8]> {
        None
    }
    /// Begins to load pages, where that takes a network's time. Otherwise they are for
    /// [`Backing::load`].
    fn ask(&mut self, _slots: &[u32]) -> Option<Ticket> {
        None
    }
    /// Does what can be done without waiting. Appends what has come, and returns how long nothing
    /// will come unless [`Backing::descriptor`] is readable; `None` if nothing was asked.
    fn turn(&mut self, _come: &mut Vec<(Ticket, Vec<u8>)>) -> Result<Option<Duration>, String> {
        Ok(None)
    }
    /// True if something was asked for that has not come, or was not saved yet.
    fn is_under_way(&self) -> bool {
        false
    }
    /// The descriptor that becomes readable when pages may have come.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
    /// Called periodically: keeps the backing's lease alive.
    fn tick(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Identifies pages that were asked for; no two are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ticket(pub(crate) u64);

/// Memory of this process.
#[derive(Debug, Default)]
pub(crate) struct InProcess {
    chunks: Vec<Box<[u8]>>,
}

impl InProcess {
    fn place(slot: u32) -> (usize, std::ops::Range<usize>) {
        let slot = slot as usize;
        let start = slot % CHUNK_PAGES * PAGE_BYTES;
        (slot / CHUNK_PAGES, start..start + PAGE_BYTES)
    }
}

impl Backing for InProcess {
    fn grow(&mut self) -> Result<(), String> {
        self.chunks.push(vec![0; CHUNK_PAGES * PAGE_BYTES].into_boxed_slice());
        Ok(())
    }

    fn save(&mut self, slot: u32, page: &[u8]) -> Result<(), String> {
        let (chunk, range) = InProcess::place(slot);
        self.chunks[chunk][range].copy_from_slice(page);
        Ok(())
    }

    fn load(&mut self, slots: &[u32], to: &mut [u8]) -> Result<(), String> {
        for (slot, page) in slots.iter().zip(to.chunks_exact_mut(PAGE_BYTES)) {
            let (chunk, range) = InProcess::place(*slot);
            page.copy_from_slice(&self.chunks[chunk][range]);
        }
        Ok(())
    }

    fn view(&self, slots: &[u32]) -> Option<&[u8]> {
        let is_row = slots.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let (chunk, range) = InProcess::place(*slots.first()?);
        let end = range.start + slots.len() * PAGE_BYTES;
        // A row ends where its chunk ends.
        if is_row { self.chunks[chunk].get(range.start..end) } else { None }
    }
}

/// A backing with reference-counted slots: processes share a slot after a fork.
pub(crate) struct Store {
    backing: Box<dyn Backing>,
    users: Vec<u32>,
    /// Number of times that each slot was written, so that what was asked for before is known.
    writes: Vec<u32>,
    free: Vec<u32>,
}

/// The content of a slot at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Edition {
    pub(crate) slot: u32,
    write: u32,
}

impl Store {
    pub(crate) fn new(backing: Box<dyn Backing>) -> Store {
        Store { backing, users: Vec::new(), writes: Vec::new(), free: Vec::new() }
    }

    /// Stores a page at `slot` if that has no other user, else at a new slot, and returns the slot.
    pub(crate) fn save(&mut self, slot: Option<u32>, page: &[u8]) -> Result<u32, String> {
        let slot = match slot {
            Some(slot) if self.users[slot as usize] == 1 => slot,
            Some(shared) => {
                self.release(shared);
                self.allocate()?
            }
            None => self.allocate()?,
        };
        self.writes[slot as usize] = self.writes[slot as usize].wrapping_add(1);
        self.backing.save(slot, page)?;
        Ok(slot)
    }

    /// What the slot holds now.
    pub(crate) fn edition(&self, slot: u32) -> Edition {
        Edition { slot, write: self.writes[slot as usize] }
    }

    /// Begins to load pages, where that takes a network's time.
    pub(crate) fn ask(&mut self, slots: &[u32]) -> Option<Ticket> {
        self.backing.ask(slots)
    }

    /// As [`Backing::turn`].
    pub(crate) fn turn(
        &mut self,
        come: &mut Vec<(Ticket, Vec<u8>)>,
    ) -> Result<Option<Duration>, String> {
        self.backing.turn(come)
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.backing.is_under_way()
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.backing.descriptor()
    }

    pub(crate) fn load(&mut self, slots: &[u32], to: &mut [u8]) -> Result<(), String> {
        self.backing.load(slots, to)
    }

    pub(crate) fn view(&self, slots: &[u32]) -> Option<&[u8]> {
        self.backing.view(slots)
    }

    pub(crate) fn tick(&mut self) -> Result<(), String> {
        self.backing.tick()
    }

    /// Adds a user of `slot`.
    pub(crate) fn share(&mut self, slot: u32) {
        self.users[slot as usize] += 1;
    }

    /// Removes a user of `slot`.
    pub(crate) fn release(&mut self, slot: u32) {
        let users = &mut self.users[slot as usize];
        *users -= 1;
        if *users == 0 {
            self.free.push(slot);
        }
    }

    /// Number of pages in the store.
    pub(crate) fn pages(&self) -> u64 {
        (self.users.len() - self.free.len()) as u64
    }

    fn allocate(&mut self) -> Result<u32, String> {
        if self.free.is_empty() {
            self.backing.grow()?;
            let first = u32::try_from(self.users.len()).map_err(|_| "the store is full")?;
            self.users.resize(self.users.len() + CHUNK_PAGES, 0);
            self.writes.resize(self.users.len(), 0);
            self.free.extend((first..first + CHUNK_PAGES as u32).rev());
        }
        let slot = self.free.pop().ok_or("the store is full")?;
        self.users[slot as usize] = 1;
        Ok(slot)
    }
}

#[cfg(test)]
mod tests {
    use super::{CHUNK_PAGES, InProcess, Store};
    use crate::protocol::PAGE_BYTES;

    #[test]
    fn pages_are_seen_where_they_lie_side_by_side() {
        let mut store = Store::new(Box::new(InProcess::default()));
        let pages = CHUNK_PAGES as u32 + 2;
        for page in 0..pages {
            assert_eq!(store.save(None, &[page as u8; PAGE_BYTES]), Ok(page));
        }
        let seen = store.view(&[3, 4, 5]).expect("a row");
        assert_eq!(seen.len(), 3 * PAGE_BYTES);
        let firsts: Vec<u8> = seen.chunks_exact(PAGE_BYTES).map(|page| page[7]).collect();
        assert_eq!(firsts, [3, 4, 5]);
        assert_eq!(store.view(&[pages - 1]).map(|page| page[0]), Some((pages - 1) as u8));
        let apart = CHUNK_PAGES as u32;
        assert!(store.view(&[apart - 2, apart - 1]).is_some(), "the end of a chunk");
        for apart in [&[3, 5][..], &[4, 3], &[3, 3], &[apart - 1, apart], &[]] {
            assert_eq!(store.view(apart), None, "{apart:?}");
        }
    }

    #[test]
    fn a_shared_place_keeps_its_content_when_one_user_writes() {
        let mut store = Store::new(Box::new(InProcess::default()));
        let first = store.save(None, &[1; PAGE_BYTES]).expect("room");
        store.share(first);
        let second = store.save(Some(first), &[2; PAGE_BYTES]).expect("room");
        assert_ne!(first, second);
        let mut both = vec![0; 2 * PAGE_BYTES];
        store.load(&[first, second], &mut both).expect("both are there");
        assert_eq!((both[0], both[PAGE_BYTES]), (1, 2));
        assert_eq!(store.save(Some(first), &[3; PAGE_BYTES]), Ok(first), "one user is left");
        store.release(first);
        store.release(second);
        assert_eq!(store.pages(), 0);
    }
}
