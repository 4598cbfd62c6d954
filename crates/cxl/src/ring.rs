//! A queue of a fixed capacity.

use std::collections::VecDeque;

use crate::slots::Storage;

/// A bounded queue. With reserved storage it never allocates after construction.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    items: VecDeque<T>,
    capacity: usize,
}

impl<T> Ring<T> {
    /// An empty queue for `capacity` items, whose memory is reserved.
    pub(crate) fn new(capacity: usize) -> Ring<T> {
        Ring::with(capacity, Storage::Reserved)
    }

    /// An empty queue for `capacity` items.
    pub(crate) fn with(capacity: usize, storage: Storage) -> Ring<T> {
        let items = match storage {
            Storage::Reserved => VecDeque::with_capacity(capacity),
            Storage::OnDemand => VecDeque::new(),
        };
        Ring { items, capacity }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.items.len() == self.capacity
    }

    /// Appends an item, or gives it back if the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        self.items.push_back(item);
        Ok(())
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.front()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        self.items.pop_front()
    }

    /// Removes the items that do not satisfy `keep`, and keeps the order of the others.
    pub(crate) fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        self.items.retain(keep);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_first_in_first_out_and_gives_back_what_does_not_fit() {
        let mut ring = Ring::new(3);
        for round in 0..5 {
            assert_eq!([round, round + 1, round + 2].map(|item| ring.push(item)), [Ok(()); 3]);
            assert_eq!(ring.push(9), Err(9));
            assert_eq!(ring.front(), Some(&round));
            assert_eq!(
                [(); 3].map(|()| ring.pop()),
                [Some(round), Some(round + 1), Some(round + 2)]
            );
            assert_eq!((ring.pop(), ring.len()), (None, 0));
            ring.push(round).unwrap();
            ring.pop();
        }
    }

    #[test]
    fn what_is_kept_keeps_its_order() {
        let mut ring = Ring::new(5);
        (0..5).for_each(|item| ring.push(item).unwrap());
        ring.retain(|item| item % 2 == 0);
        assert_eq!([(); 4].map(|()| ring.pop()), [Some(0), Some(2), Some(4), None]);
        let mut none = Ring::<u8>::new(0);
        assert_eq!((none.pop(), none.push(1)), (None, Err(1)));
    }
}
