//! The grants that an interface has received and not answered yet.

use std::collections::VecDeque;

use ethermem_units::Bytes;

use crate::message::{MessageId, NodeId};

/// A grant, described by what it allows: one chunk of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owed {
    pub(super) peer: NodeId,
    pub(super) id: MessageId,
    pub(super) bytes: Bytes,
}

/// The unanswered grants. The switch sends the n-th chunk of a port where the n-th grant said, so
/// each grant is answered in order: by its chunk, or by a notice that it stays unused. A host drops
/// grants in several places and for good reasons, such as a timeout or a failed peer. All grants
/// pass here, so none is missed.
#[derive(Debug)]
pub(super) struct Ledger {
    owed: VecDeque<Owed>,
    capacity: usize,
}

impl Ledger {
    pub(super) fn new(capacity: usize) -> Ledger {
        Ledger { owed: VecDeque::with_capacity(capacity), capacity }
    }

    /// Records a grant. Returns whether there was room; a switch that keeps its bound leaves room.
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

    /// Records a chunk as the answer to the oldest grant. The part that a chunk leaves, because the
    /// demand was rounded up, must still be answered: the switch waits for every granted byte.
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
