//! A queue of a capacity fixed at construction, each item with the time it became ready.

use std::collections::VecDeque;

use ethermem_units::Ps;

/// The first item lies within, and mostly there is one at most: the memory behind is then not
/// touched.
#[derive(Debug)]
pub(super) struct Ring<T> {
    /// When the first became ready; [`Ps::MAX`] when empty.
    ready: Ps,
    /// Invariant: `None` only when there is none behind it.
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

    /// When the first became ready; [`Ps::MAX`] when empty.
    #[inline]
    pub(super) fn ready(&self) -> Ps {
        self.ready
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        self.first.as_mut()
    }

    /// Appends. The capacity must have been checked: growing would allocate.
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

    /// The next one becomes the first.
    #[inline]
    fn follow_up(&mut self) {
        self.ready = Ps::MAX;
        if let Some((ready, item)) = self.behind.pop_front() {
            (self.ready, self.first) = (ready, Some(item));
            if self.behind.is_empty() {
                // Starts over at the first slot, so that a short queue stays in few cache lines.
                self.behind.clear();
            }
        }
    }

    /// Keeps the items that `keep` says, in order. Linear: for failures only.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        let first_stays = self.first.as_ref().is_none_or(&mut keep);
        self.behind.retain(|(_, item)| keep(item));
        if !first_stays {
            self.first = None;
            self.follow_up();
        }
    }
}
