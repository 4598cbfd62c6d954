//! A queue of fixed capacity, each item with the time at which it became ready.

use std::collections::VecDeque;

use ethermem_units::Ps;

/// A queue whose first item lies inline. Mostly there is at most one item, and the memory for the
/// others is then not touched.
#[derive(Debug)]
pub(super) struct Ring<T> {
    /// The time at which the first item became ready; [`Ps::MAX`] when empty.
    ready: Ps,
    /// Invariant: `None` only when no item is behind it.
    first: Option<T>,
    behind: VecDeque<(Ps, T)>,
    capacity: usize,
}

impl<T> Ring<T> {
    pub(super) fn new(capacity: usize) -> Ring<T> {
        Ring { ready: Ps::MAX, first: None, behind: VecDeque::with_capacity(capacity), capacity }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.behind.len() + usize::from(self.first.is_some()) == self.capacity
    }

    /// The time at which the first item became ready; [`Ps::MAX`] when empty.
    #[inline]
    pub(super) fn ready(&self) -> Ps {
        self.ready
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// Appends an item. The caller must have checked the capacity, since growing would allocate.
    #[inline]
    pub(super) fn push(&mut self, ready: Ps, item: T) {
        assert!(!self.is_full(), "a ring of {} overflowed", self.capacity);
        if self.first.is_none() {
            (self.ready, self.first) = (ready, Some(item));
        } else {
            self.behind.push_back((ready, item));
        }
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<T> {
        let item = self.first.take()?;
        self.follow_up();
        Some(item)
    }

    /// Makes the next item the first.
    #[inline]
    fn follow_up(&mut self) {
        self.ready = Ps::MAX;
        if let Some((ready, item)) = self.behind.pop_front() {
            (self.ready, self.first) = (ready, Some(item));
            if self.behind.is_empty() {
                // The queue restarts at the first slot, so that a short queue stays in few cache
                // lines.
                self.behind.clear();
            }
        }
    }

    /// Keeps the items for which `keep` is true, in order. It is linear, so it is for failures
    /// only.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let first_stays = self.first.as_ref().is_none_or(&mut keep);
        self.behind.retain(|(_, item)| keep(item));
        if !first_stays {
            self.first = None;
            self.follow_up();
        }
    }
}
