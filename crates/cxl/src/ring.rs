//! A queue of a fixed capacity, whose memory is reserved once.

/// A bounded queue. It never allocates after construction.
#[derive(Clone, Debug)]
pub(crate) struct Ring<T> {
    items: Box<[Option<T>]>,
    head: usize,
    length: usize,
}

impl<T> Ring<T> {
    /// An empty queue for `capacity` items.
    pub(crate) fn new(capacity: usize) -> Ring<T> {
        Ring { items: (0..capacity).map(|_| None).collect(), head: 0, length: 0 }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.length == self.items.len()
    }

    /// Appends an item, or gives it back if the queue is full.
    #[inline]
    pub(crate) fn push(&mut self, item: T) -> Result<(), T> {
        if self.is_full() {
            return Err(item);
        }
        let at = (self.head + self.length) % self.items.len();
        self.items[at] = Some(item);
        self.length += 1;
        Ok(())
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&T> {
        self.items.get(self.head)?.as_ref()
    }

    #[inline]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let item = self.items.get_mut(self.head)?.take()?;
        self.head = (self.head + 1) % self.items.len();
        self.length -= 1;
        Some(item)
    }

    /// Removes the items that do not satisfy `keep`, and keeps the order of the others.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for _ in 0..self.length {
            let Some(item) = self.pop() else { return };
            if keep(&item) {
                let kept = self.push(item);
                debug_assert!(kept.is_ok(), "an item was taken out just before");
            }
        }
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
