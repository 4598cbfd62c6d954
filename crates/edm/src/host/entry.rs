//! Message entries: a slab of cache lines, linked by index.

use ethermem_units::Ps;

use crate::message::{Event, FailReason, MessageId, NodeId, StatusCode, Token};

/// The index that stands for no entry.
pub(super) const NONE: u32 = u32::MAX;

/// The holders of an entry, and what is known of its message. An entry without holders is freed.
pub(super) mod state {
    /// The entry is in a queue of its destination.
    pub(in crate::host) const QUEUED: u8 = 1 << 0;
    /// The entry is in the control queue: its message was not handed to the transmitter.
    pub(in crate::host) const UNSENT: u8 = 1 << 1;
    /// The id is in use: in the message state table, or as a member behind an entry in the table.
    pub(in crate::host) const OPEN: u8 = 1 << 2;
    /// The event waits to be polled.
    pub(in crate::host) const EVENT: u8 = 1 << 3;
    /// The holders: an entry with any of these bits is in use.
    pub(in crate::host) const HELD: u8 = QUEUED | UNSENT | OPEN | EVENT;

    /// The event was decided. From now on nothing of the message may reach the caller.
    pub(in crate::host) const ENDED: u8 = 1 << 4;
    /// All data was sent; an acknowledgement is due.
    pub(in crate::host) const AWAITS_ACK: u8 = 1 << 5;
    /// The entry is in the deadline list.
    pub(in crate::host) const TIMED: u8 = 1 << 6;
    /// The peer may have seen the id.
    pub(in crate::host) const EXPOSED: u8 = 1 << 7;
}

/// The kind of a message.
pub(super) mod kind {
    /// Set for a write, clear for a read.
    pub(in crate::host) const WRITE: u8 = 1 << 0;
    /// For a write: it is acknowledged.
    pub(in crate::host) const ACKED: u8 = 1 << 1;
    /// For a read: it is an atomic.
    pub(in crate::host) const MODIFY: u8 = 1 << 2;
    /// The message is ordered against all other messages to its destination.
    pub(in crate::host) const FENCE: u8 = 1 << 3;
    /// The entry waits in the queue behind a fence (relaxed order).
    pub(in crate::host) const BEHIND_FENCE: u8 = 1 << 4;
    /// The caller chose the id.
    pub(in crate::host) const NAMED: u8 = 1 << 5;
}

/// One message that this host sends as compute node: 64 bytes, one cache line.
///
/// `demand`, `granted` and `moved` belong to the id, so to the entry that leads it. Other entries
/// that share the id use `moved` for their own bytes. Invariant: moved <= granted <= demand, where
/// a read's request counts as a full grant.
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
    /// In a queue: the next entry. In an open id: the next member. In the free list: the next free
    /// entry.
    pub(super) next: u32,
    /// In a queue: the previous entry. In the leader of an open id: the member whose
    /// acknowledgement is next.
    pub(super) before: u32,
    /// In a leader: the member whose data goes next.
    pub(super) cursor: u32,
    /// The next entry in the deadline list; once ended, in the list of events.
    pub(super) time_next: u32,
    pub(super) time_before: u32,
    pub(super) peer: NodeId,
    pub(super) id: MessageId,
    pub(super) state: u8,
    pub(super) kind: u8,
    pub(super) member: u8,
    /// In the leader of a write: number of acknowledgements that are due. In an atomic: its opcode.
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

/// A list of entries, linked by `next` and `before`.
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

/// Entries up to a capacity fixed at construction. Memory of unused entries is never touched. The
/// entry freed last is reused first, so the working set is the messages in flight.
#[derive(Debug)]
pub(super) struct Slab {
    entries: Vec<Entry>,
    capacity: usize,
    free: u32,
    /// Operands of atomics, by entry; they are too large and too rare for the entry's cache line.
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

    /// Removes `holders` from an entry, and frees it when no holder is left.
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

    /// Removes an entry from `list`. It stays marked as queued until it is released or reused.
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

    /// Appends an entry to a list ordered by time.
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

    /// Removes an entry from a list ordered by time.
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
