//! Slabs of waiting messages and of pairs of ports with messages; indices are reused.

use super::rule::{Flow, Ranked};

/// The index that stands for no entry or no pair.
pub(super) const NONE: u32 = u32::MAX;

/// The sequence number of a free entry.
pub(super) const ENDED: u64 = u64::MAX;

/// One message that waits for grants.
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

/// A message, named by the index of its entry. The sequence number tells it from later users of the
/// entry.
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
    /// The priority of its candidate, if the pair is listed.
    pub(super) priority: u64,
    pub(super) best: u32,
    pub(super) head: [u32; 2],
    pub(super) tail: [u32; 2],
    /// The candidate's places in the destination's queue and in the source's list.
    pub(super) in_destination: u16,
    pub(super) in_source: u16,
    pub(super) active: [u8; 2],
    pub(super) source: u16,
    pub(super) destination: u16,
}

/// Items of a capacity fixed at construction; the item freed last is reused first. Memory of unused
/// items is never touched.
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
        // X bounds every pair, so the reservation is never exceeded.
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
