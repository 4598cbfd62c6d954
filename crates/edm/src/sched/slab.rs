//! Messages that wait, and pairs of ports that have any: by index, the indices used again.

use super::rule::{Flow, Ranked};

/// No entry, no pair.
pub(super) const NONE: u32 = u32::MAX;

/// The sequence number of an entry that is free.
pub(super) const ENDED: u64 = u64::MAX;

/// One message waiting for grants.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) sequence: u64,
    pub(super) remaining: u32,
    pub(super) bytes: u32,
    pub(super) tag: u32,
    pub(super) next: u32,
    pub(super) flow: Flow,
    pub(super) started: bool,
    pub(super) late: bool,
}

impl Entry {
    #[inline]
    pub(super) fn ranked(&self) -> Ranked {
        let Entry { remaining, bytes: size, sequence, late, .. } = *self;
        Ranked { remaining, size, sequence, late }
    }
}

/// A message by the place of its entry, and its sequence number to tell it from the next there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Name {
    pub(super) sequence: u64,
    pub(super) entry: u32,
    pub(super) source: u16,
    pub(super) destination: u16,
}

/// A pair of ports with messages.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// Of its candidate, if it is listed.
    pub(super) priority: u64,
    pub(super) best: u32,
    pub(super) head: [u32; 2],
    pub(super) tail: [u32; 2],
    /// Where its candidate stands in the destination's queue and in the source's list.
    pub(super) in_destination: u16,
    pub(super) in_source: u16,
    pub(super) active: [u8; 2],
    pub(super) source: u16,
    pub(super) destination: u16,
}

/// Items of a capacity fixed at construction, the one freed last used next. Memory of items never
/// used is never touched.
#[derive(Debug)]
pub(super) struct Slab<T> {
    items: Vec<T>,
    free: Vec<u32>,
    capacity: usize,
}

impl<T> Slab<T> {
    pub(super) fn new(capacity: usize) -> Slab<T> {
        let (items, free) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        Slab { items, free, capacity }
    }

    #[inline]
    pub(super) fn insert(&mut self, item: T) -> u32 {
        if let Some(index) = self.free.pop() {
            self.items[index as usize] = item;
            return index;
        }
        // X bounds every pair, so the reservation is never outgrown.
        assert!(self.items.len() < self.capacity, "notification queue overflow");
        self.items.push(item);
        self.items.len() as u32 - 1
    }

    #[inline]
    pub(super) fn remove(&mut self, index: u32) {
        self.free.push(index);
    }

    pub(super) fn in_use(&self) -> usize {
        self.items.len() - self.free.len()
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;
    #[inline]
    fn index(&self, index: u32) -> &T {
        &self.items[index as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut T {
        &mut self.items[index as usize]
    }
}
