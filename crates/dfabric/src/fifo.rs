//! A queue of fixed capacity, in memory that one owner has alone.

/// Values in order; a full queue refuses.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<T> {
    slots: Box<[Option<T>]>,
    first: usize,
    length: usize,
}

impl<T: Copy> Fifo<T> {
    pub(crate) fn new(capacity: usize) -> Fifo<T> {
        Fifo { slots: vec![None; capacity].into(), first: 0, length: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    pub(crate) fn is_full(&self) -> bool {
        self.length == self.slots.len()
    }

    /// Adds a value; false if there is no room.
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.is_full() {
            return false;
        }
        let at = (self.first + self.length) % self.slots.len();
        self.slots[at] = Some(value);
        self.length += 1;
        true
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        let value = self.slots.get_mut(self.first)?.take()?;
        self.first = (self.first + 1) % self.slots.len();
        self.length -= 1;
        Some(value)
    }

    /// Keeps the values for which `keep` is true, in their order.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        for _ in 0..self.length {
            if let Some(value) = self.pop().filter(&mut keep) {
                self.push(value);
            }
        }
    }

    /// The value that is `after` behind the first.
    pub(crate) fn get(&self, after: usize) -> Option<&T> {
        let at = (self.first + after).checked_rem(self.slots.len())?;
        self.slots.get(at)?.as_ref().filter(|_| after < self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_in_order_and_a_full_queue_refuses() {
        let mut fifo = Fifo::new(2);
        for lap in 0..3 {
            assert!(fifo.push(lap) && fifo.push(lap + 10) && !fifo.push(99));
            assert_eq!((fifo.get(1), fifo.get(2), fifo.len()), (Some(&(lap + 10)), None, 2));
            assert_eq!((fifo.pop(), fifo.pop(), fifo.pop()), (Some(lap), Some(lap + 10), None));
        }
        let mut some = Fifo::new(4);
        (0..4).for_each(|value| assert!(some.push(value)));
        some.retain(|value| value % 2 == 1);
        assert_eq!((some.pop(), some.pop(), some.pop()), (Some(1), Some(3), None));
        let mut none = Fifo::new(0);
        assert!(!none.push(1) && none.pop().is_none() && none.get(0).is_none());
    }
}
