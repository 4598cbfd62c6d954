//! When messages become late: an alarm for each that is long enough to have one.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::Ps;

use super::slab::Name;

#[derive(Debug, Default)]
pub(super) struct Alarms {
    /// Those that no iteration has seen, with their patience: it runs from the end of the first
    /// that does, and grants something.
    unseen: Vec<(Ps, Name)>,
    /// The earliest first. Messages that ended before are still among them.
    set: BinaryHeap<Reverse<(Ps, Name)>>,
}

impl Alarms {
    #[inline]
    pub(super) fn add(&mut self, patience: Ps, message: Name) {
        self.unseen.push((patience, message));
    }

    /// An iteration that ends now has seen all that it could.
    #[inline]
    pub(super) fn set_unseen(&mut self, now: Ps) {
        for (patience, message) in self.unseen.drain(..) {
            self.set.push(Reverse((now + patience, message)));
        }
    }

    /// Takes the first that is due.
    #[inline]
    pub(super) fn pop_until(&mut self, now: Ps) -> Option<Name> {
        let &Reverse((at, message)) = self.set.peek()?;
        if at > now {
            return None;
        }
        self.set.pop();
        Some(message)
    }
}
