//! Physical pages without an owner.
//!
//! A page fault takes one from the buffer, which the slow path keeps filled with pages of zeros.

/// A page on its way from its last owner to the buffer.
#[derive(Clone, Copy, Debug)]
struct Zeroing {
    page: u32,
    /// Number of its bytes that are zero already.
    done: u64,
}

/// The free physical pages.
///
/// Every physical page is in exactly one state: owned, in the buffer, being zeroed, dirty, or
/// fresh.
pub(crate) struct FreePages {
    page_bytes: u64,
    /// A ring of zeroed pages: `ready` pages from `next` on are valid.
    buffer: Box<[u32]>,
    next: usize,
    ready: usize,
    zeroing: Option<Zeroing>,
    /// Pages that still hold their last owners' data.
    dirty: Vec<u32>,
    /// Pages from this one on were never owned, and are zeros as they were given.
    fresh: u32,
    physical_pages: u32,
    /// Number of bytes zeroed since the start.
    zeroed_bytes: u64,
}

impl FreePages {
    pub(crate) fn new(physical_pages: u32, page_bytes: u64, buffer_pages: u32) -> FreePages {
        let buffer = vec![0; buffer_pages.min(physical_pages) as usize].into_boxed_slice();
        let mut free = FreePages {
            page_bytes,
            buffer,
            next: 0,
            ready: 0,
            zeroing: None,
            // The capacity is reserved at once, because growing could move many items.
            dirty: Vec::with_capacity(physical_pages as usize),
            fresh: 0,
            physical_pages,
            zeroed_bytes: 0,
        };
        free.fill_fresh();
        free
    }

    /// Takes a page of zeros, in constant time; `None` while the buffer is empty.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.ready = self.ready.checked_sub(1)?;
        let page = self.buffer[self.next];
        self.next += 1;
        if self.next == self.buffer.len() {
            self.next = 0;
        }
        Some(page)
    }

    /// Takes a page back from its owner.
    pub(crate) fn give(&mut self, page: u32) {
        self.dirty.push(page);
    }

    /// Fills the buffer until it is full, no page is free, or more than `budget_bytes` were zeroed.
    /// `zero` is given a page and a part of it. Fresh pages cost nothing and come first.
    pub(crate) fn refill(&mut self, budget_bytes: u64, mut zero: impl FnMut(u32, u64, u64)) {
        self.fill_fresh();
        let mut left = budget_bytes;
        while self.ready < self.buffer.len() {
            let next = self.zeroing.or_else(|| {
                let page = self.dirty.pop()?;
                Some(Zeroing { page, done: 0 })
            });
            let Some(Zeroing { page, done }) = next else {
                return;
            };
            let part = left.min(self.page_bytes - done);
            zero(page, done, part);
            self.zeroed_bytes += part;
            left -= part;
            if done + part < self.page_bytes {
                self.zeroing = Some(Zeroing { page, done: done + part });
                return;
            }
            self.zeroing = None;
            self.push(page);
        }
    }

    /// True if [`FreePages::refill`] has work to do.
    pub(crate) fn wants_refill(&self) -> bool {
        let some = self.zeroing.is_some() || !self.dirty.is_empty();
        self.ready < self.buffer.len() && (some || self.fresh < self.physical_pages)
    }

    /// True if enough pages are ready for tasks that are not urgent: half of the buffer is kept for
    /// page faults.
    pub(crate) fn has_spare(&self) -> bool {
        2 * self.ready > self.buffer.len() || !self.wants_refill()
    }

    /// Number of bytes zeroed since the start.
    pub(crate) fn zeroed_bytes(&self) -> u64 {
        self.zeroed_bytes
    }

    /// Number of pages without an owner.
    pub(crate) fn count(&self) -> u64 {
        let fresh = self.physical_pages - self.fresh;
        let waiting = self.dirty.len() + self.ready + usize::from(self.zeroing.is_some());
        u64::from(fresh) + waiting as u64
    }

    pub(crate) fn buffer_bytes(&self) -> usize {
        size_of_val(&*self.buffer)
    }

    fn fill_fresh(&mut self) {
        while self.ready < self.buffer.len() && self.fresh < self.physical_pages {
            self.push(self.fresh);
            self.fresh += 1;
        }
    }

    fn push(&mut self, page: u32) {
        let at = (self.next + self.ready) % self.buffer.len();
        self.buffer[at] = page;
        self.ready += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_pages_come_back_zeroed_in_full_and_last() {
        let mut free = FreePages::new(3, 4096, 2);
        assert_eq!([free.take(), free.take(), free.take()], [Some(0), Some(1), None]);
        free.give(1);
        assert!(free.wants_refill());
        let mut zeroed = Vec::new();
        free.refill(1000, |page, from, bytes| zeroed.push((page, from, bytes)));
        assert_eq!((free.take(), free.take()), (Some(2), None), "the fresh page at once");
        assert_eq!(free.count(), 1);
        while free.wants_refill() {
            free.refill(1000, |page, from, bytes| zeroed.push((page, from, bytes)));
        }
        let parts = [(0, 1000), (1000, 1000), (2000, 1000), (3000, 1000), (4000, 96)];
        assert_eq!(zeroed, parts.map(|(from, bytes)| (1, from, bytes)));
        assert_eq!((free.take(), free.count()), (Some(1), 0));
    }
}
