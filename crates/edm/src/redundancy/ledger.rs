//! The grants that an interface has received and not yet answered.

use std::collections::VecDeque;

use ethermem_units::Bytes;

use crate::message::{MessageId, NodeId};

/// A grant by what it allows: one chunk of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    pub(super) peer: NodeId,
    pub(super) id: MessageId,
    pub(super) bytes: Bytes,
}

/// The switch sends the n-th chunk of a port where the n-th grant said, so each grant is answered,
/// in order: by its chunk, or by word that it stays unused. A host drops grants for good reasons (a
/// message timed out, a peer failed) and in several places; here, where all pass, none is missed.
#[derive(Debug)]
pub(super) struct Ledger {
    owed: VecDeque<Owed>,
    capacity: usize,
}

impl Ledger {
    pub(super) fn new(capacity: usize) -> Ledger {
        Ledger { owed: VecDeque::with_capacity(capacity), capacity }
    }

    /// A grant came. Says whether there was room, which a switch that keeps its bound leaves.
    #[must_use]
    pub(super) fn push(&mut self, owed: Owed) -> bool {
        let room = self.owed.len() < self.capacity;
        if room {
            self.owed.push_back(owed);
        }
        room
    }

    pub(super) fn front(&self) -> Option<Owed> {
        self.owed.front().copied()
    }

    pub(super) fn pop(&mut self) -> Option<Owed> {
        self.owed.pop_front()
    }

    /// A chunk answers the oldest grant. What it leaves, because the demand was rounded up, is
    /// still to be answered: the switch waits for every byte that it granted.
    pub(super) fn answer(&mut self, bytes: Bytes) {
        let owed = self.owed.front_mut().expect("a chunk answers a grant");
        owed.bytes -= bytes;
        if owed.bytes == Bytes(0) {
            self.owed.pop_front();
        }
    }

    pub(super) fn clear(&mut self) {
        self.owed.clear();
    }
}
