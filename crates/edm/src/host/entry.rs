//! Message entries: a slab of cache lines, linked by index.

use ethermem_units::Ps;

use crate::message::{Event, FailReason, MessageId, NodeId, StatusCode, Token};

/// No entry.
pub(super) const NONE: u32 = u32::MAX;

/// Who still needs an entry; it is freed when nobody does. And what is known of its message.
pub(super) mod state {
    /// In a queue of its destination.
    pub(in crate::host) const QUEUED: u8 = 1 << 0;
    /// In the control queue: not yet handed to the transmitter.
    pub(in crate::host) const UNSENT: u8 = 1 << 1;
    /// Its id is in use: in the message state table, or a member behind an entry that is.
    pub(in crate::host) const OPEN: u8 = 1 << 2;
    /// Its event waits to be polled.
    pub(in crate::host) const EVENT: u8 = 1 << 3;
    /// All of these hold the entry.
    pub(in crate::host) const HELD: u8 = QUEUED | UNSENT | OPEN | EVENT;

    /// Its event was decided. Nothing of it may reach the caller any more.
    pub(in crate::host) const ENDED: u8 = 1 << 4;
    /// All its data was sent; an acknowledgement is due.
    pub(in crate::host) const AWAITS_ACK: u8 = 1 << 5;
    /// In the deadline list.
    pub(in crate::host) const TIMED: u8 = 1 << 6;
    /// The peer may have seen its id.
    pub(in crate::host) const EXPOSED: u8 = 1 << 7;
}

/// What a message is.
pub(super) mod kind {
    /// A write; otherwise a read.
    pub(in crate::host) const WRITE: u8 = 1 << 0;
    /// Of a write: acknowledged.
    pub(in crate::host) const ACKED: u8 = 1 << 1;
    /// Of a read: an atomic.
    pub(in crate::host) const MODIFY: u8 = 1 << 2;
    /// Ordered against everything else to its destination.
    pub(in crate::host) const FENCE: u8 = 1 << 3;
    /// In the queue behind a fence (relaxed order).
    pub(in crate::host) const BEHIND_FENCE: u8 = 1 << 4;
    /// Its id was given with it.
    pub(in crate::host) const NAMED: u8 = 1 << 5;
}

/// One message of this host as compute node: 64 bytes, one cache line.
///
/// `demand`, `granted` and `moved` belong to the id, so to the entry that leads it; the others
/// that share it use `moved` for their own bytes. Invariant: moved <= granted <= demand, a read
/// counting as granted in full by its request.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Entry {
    pub(super) address: u64,
    pub(super) deadline: Ps,
    pub(super) token: Token,
    pub(super) bytes: u32,
    pub(super) demand: u32,
    pub(super) granted: u32,
    pub(super) moved: u32,
    /// Queue: the one behind. Open id: the next member. Free: the next free entry.
    pub(super) next: u32,
    /// Queue: the one before. Leader of an open id: the member whose acknowledgement is next.
    pub(super) before: u32,
    /// Leader: the member whose data goes next.
    pub(super) cursor: u32,
    /// Deadline list; once ended, the list of events.
    pub(super) time_next: u32,
    pub(super) time_before: u32,
    pub(super) peer: NodeId,
    pub(super) id: MessageId,
    pub(super) state: u8,
    pub(super) kind: u8,
    pub(super) member: u8,
    /// Leader of a write: acknowledgements that are due. Atomic: its opcode.
    pub(super) acks_or_opcode: u8,
    pub(super) outcome: Outcome,
}

impl Entry {
    #[inline]
    pub(super) const fn is(&self, kind: u8) -> bool {
        self.kind & kind != 0
    }

    #[inline]
    pub(super) const fn has(&self, state: u8) -> bool {
        self.state & state != 0
    }

    pub(super) fn event(&self) -> Event {
        let token = self.token;
        match self.outcome {
            Outcome::Done if self.is(kind::MODIFY) => Event::RmwDone { token },
            Outcome::Done if !self.is(kind::WRITE) => Event::ReadDone { token },
            Outcome::Done if self.is(kind::ACKED) => Event::WriteApplied { token },
            Outcome::Done => Event::WriteSent { token },
            Outcome::Failed(why) => Event::Failed { token, why },
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed(FailReason),
}

impl Outcome {
    pub(super) const fn of(code: StatusCode) -> Outcome {
        match code {
            StatusCode::Ok => Outcome::Done,
            code => Outcome::Failed(FailReason::Remote(code)),
        }
    }
}

/// A list of entries by `next` and `before`.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) head: u32,
    pub(super) tail: u32,
}

impl List {
    pub(super) const EMPTY: List = List { head: NONE, tail: NONE };

    #[inline]
    pub(super) const fn is_empty(self) -> bool {
        self.head == NONE
    }
}

/// Entries up to a capacity fixed at construction. Memory of entries never used is never touched,
/// and the one freed last is used next, so the working set is that of the messages in flight.
#[derive(Debug)]
pub(super) struct Slab {
    entries: Vec<Entry>,
    capacity: usize,
    free: u32,
    /// Operands of atomics, by entry: too large and too rare for the line.
    operands: Vec<[u64; 2]>,
    in_use: usize,
}

impl Slab {
    pub(super) fn new(capacity: usize) -> Slab {
        Slab {
            entries: Vec::with_capacity(capacity),
            capacity,
            free: NONE,
            operands: Vec::with_capacity(capacity),
            in_use: 0,
        }
    }

    pub(super) const fn in_use(&self) -> usize {
        self.in_use
    }

    /// Takes an entry; `None` when all are in use.
    #[inline]
    pub(super) fn insert(&mut self, entry: Entry, operands: [u64; 2]) -> Option<u32> {
        let modify = entry.is(kind::MODIFY);
        let index = self.free;
        let index = if index != NONE {
            self.free = self.entries[index as usize].next;
            self.entries[index as usize] = entry;
            if modify {
                self.operands[index as usize] = operands;
            }
            index
        } else if self.entries.len() < self.capacity {
            self.entries.push(entry);
            self.operands.push(operands);
            self.entries.len() as u32 - 1
        } else {
            return None;
        };
        self.in_use += 1;
        Some(index)
    }

    #[inline]
    pub(super) fn operands(&self, index: u32) -> [u64; 2] {
        self.operands[index as usize]
    }

    /// Lets go of an entry in the name of `holders`; frees it with the last one.
    #[inline]
    pub(super) fn release(&mut self, index: u32, holders: u8) {
        let entry = &mut self.entries[index as usize];
        entry.state &= !holders;
        if entry.state & state::HELD == 0 {
            assert!(entry.has(state::ENDED), "an entry is freed before its event was decided");
            entry.next = self.free;
            self.free = index;
            self.in_use -= 1;
        }
    }

    #[inline]
    pub(super) fn push_back(&mut self, list: &mut List, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.state |= state::QUEUED;
        entry.next = NONE;
        entry.before = list.tail;
        match list.tail {
            NONE => list.head = index,
            tail => self.entries[tail as usize].next = index,
        }
        list.tail = index;
    }

    /// Takes an entry out of `list`. It stays marked as queued until released or reused.
    #[inline]
    pub(super) fn unlink(&mut self, list: &mut List, index: u32) {
        let Entry { next, before, .. } = self.entries[index as usize];
        match before {
            NONE => list.head = next,
            before => self.entries[before as usize].next = next,
        }
        match next {
            NONE => list.tail = before,
            next => self.entries[next as usize].before = before,
        }
    }

    /// Appends to a list by time.
    #[inline]
    pub(super) fn push_time(&mut self, list: &mut List, index: u32) {
        let entry = &mut self.entries[index as usize];
        entry.time_next = NONE;
        entry.time_before = list.tail;
        match list.tail {
            NONE => list.head = index,
            tail => self.entries[tail as usize].time_next = index,
        }
        list.tail = index;
    }

    /// Takes an entry out of a list by time.
    #[inline]
    pub(super) fn unlink_time(&mut self, list: &mut List, index: u32) {
        let Entry { time_next, time_before, .. } = self.entries[index as usize];
        match time_before {
            NONE => list.head = time_next,
            before => self.entries[before as usize].time_next = time_next,
        }
        match time_next {
            NONE => list.tail = time_before,
            next => self.entries[next as usize].time_before = time_before,
        }
    }
}

impl std::ops::Index<u32> for Slab {
    type Output = Entry;
    #[inline]
    fn index(&self, index: u32) -> &Entry {
        &self.entries[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Slab {
    #[inline]
    fn index_mut(&mut self, index: u32) -> &mut Entry {
        &mut self.entries[index as usize]
    }
}

const _: () = assert!(size_of::<Entry>() == 64, "an entry is one cache line");
