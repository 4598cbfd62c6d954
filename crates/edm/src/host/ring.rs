//! A queue of a capacity fixed at construction, each item with the time it became ready.

use std::collections::VecDeque;

use ethermem_units::Ps;

#[derive(Debug)]
pub(super) struct Ring<T> {
    items: VecDeque<(Ps, T)>,
    capacity: usize,
}

impl<T> Ring<T> {
    pub(super) fn new(capacity: usize) -> Ring<T> {
        Ring { items: VecDeque::with_capacity(capacity), capacity }
    }

    pub(super) fn is_full(&self) -> bool {
        self.items.len() == self.capacity
    }

    /// When the first became ready; [`Ps::MAX`] when empty.
    #[inline]
    pub(super) fn ready(&self) -> Ps {
        self.items.front().map_or(Ps::MAX, |&(ready, _)| ready)
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.items.front_mut().map(|(_, item)| item)
    }

    /// Appends. The capacity must have been checked: growing would allocate.
    #[inline]
    pub(super) fn push(&mut self, ready: Ps, item: T) {
        assert!(!self.is_full(), "a ring of {} overflowed", self.capacity);
        self.items.push_back((ready, item));
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let (_, item) = self.items.pop_front()?;
        if self.items.is_empty() {
            // Starts over at the first slot, so a short queue stays within one or two cache lines.
            self.items.clear();
        }
        Some(item)
    }

    /// Keeps the items that `keep` says, in order. Linear: for failures only.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.items.retain(|(_, item)| keep(item));
    }
}
