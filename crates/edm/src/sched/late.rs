//! The alarms at which messages become late: one for each message that is long enough.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::Ps;

use super::slab::Name;

#[derive(Debug, Default)]
pub(super) struct Alarms {
    /// Messages that no iteration has seen, with their patience. It runs from the end of the first
    /// iteration that sees the message and grants something.
    unseen: Vec<(Ps, Name)>,
    /// Alarms, the earliest first. Messages that have ended are still among them.
    set: BinaryHeap<Reverse<(Ps, Name)>>,
}

impl Alarms {
    #[inline]
    pub(super) fn add(&mut self, patience: Ps, message: Name) {
        self.unseen.push((patience, message));
    }

    /// Starts the patience of unseen messages: an iteration that ends now has seen all of them.
    #[inline]
    pub(super) fn set_unseen(&mut self, now: Ps) {
        for (patience, message) in self.unseen.drain(..) {
            self.set.push(Reverse((now + patience, message)));
        }
    }

    /// Takes the first alarm that is due.
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
