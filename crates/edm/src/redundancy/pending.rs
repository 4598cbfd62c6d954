//! Requests from their submission to the end of their last copy.

use std::collections::VecDeque;

use ethermem_units::Ps;

use crate::message::{Event, FailReason, MessageId, NodeId, Op, Request, Token, WriteKind};

/// The index that stands for no request.
const NONE: u32 = u32::MAX;

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Done,
    Failed(FailReason),
}

/// A clock of a request. Each clock runs equally long for all requests, so a list in the order of
/// their starts is also in the order of their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Clock {
    /// The request waits for its answer.
    Answer = 0,
    /// The first answer has come; the request waits for its second answer.
    Copy = 1,
}

/// A list of requests, ordered by time.
#[derive(Clone, Copy, Debug)]
struct ByTime {
    head: u32,
    tail: u32,
}

/// One request. `next` links a destination's queue or the free list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) request: Request,
    pub(super) deadline: Ps,
    pub(super) id: MessageId,
    /// The interfaces that have a copy in flight, one bit each.
    pub(super) copies: u8,
    /// True while the request is in the queue of its destination.
    pub(super) queued: bool,
    /// The list by time that the request is in, if any.
    timed: Option<Clock>,
    /// True once the event is decided; from then on nothing of the request may reach the caller.
    pub(super) ended: bool,
    /// True while the event was not polled.
    unpolled: bool,
    /// The answer of the memory node, from whichever copy came first.
    pub(super) answer: Option<Outcome>,
    /// Why the last failed copy failed.
    pub(super) why: FailReason,
    outcome: Outcome,
    pub(super) next: u32,
    time_next: u32,
    time_before: u32,
}

impl Pending {
    pub(super) fn is_write(&self) -> bool {
        matches!(self.request.op, Op::Write { .. })
    }

    fn event(&self) -> Event {
        let token = self.request.token;
        match (self.outcome, self.request.op) {
            (Outcome::Failed(why), _) => Event::Failed { token, why },
            (Outcome::Done, Op::Read { .. }) => Event::ReadDone { token },
            (Outcome::Done, Op::ReadModifyWrite { .. }) => Event::RmwDone { token },
            (Outcome::Done, Op::Write { kind: WriteKind::Posted, .. }) => {
                Event::WriteSent { token }
            }
            (Outcome::Done, Op::Write { kind: WriteKind::Acknowledged, .. }) => {
                Event::WriteApplied { token }
            }
        }
    }
}

/// All requests of a node, in a slab of fixed capacity.
#[derive(Debug)]
pub(super) struct Requests {
    slab: Vec<Pending>,
    capacity: usize,
    free: u32,
    clocks: [ByTime; 2],
    /// Requests that ended and were not polled, in the order of the endings.
    events: VecDeque<u32>,
}

impl Requests {
    pub(super) fn new(capacity: usize) -> Requests {
        Requests {
            slab: Vec::with_capacity(capacity),
            capacity,
            free: NONE,
            clocks: [ByTime { head: NONE, tail: NONE }; 2],
            events: VecDeque::with_capacity(capacity),
        }
    }

    /// Adds a request; `None` when there is no room.
    pub(super) fn insert(&mut self, request: Request) -> Option<u32> {
        let pending = Pending {
            request,
            deadline: Ps::MAX,
            id: MessageId(0),
            copies: 0,
            queued: false,
            timed: None,
            ended: false,
            unpolled: false,
            answer: None,
            why: FailReason::LinkDown,
            outcome: Outcome::Done,
            next: NONE,
            time_next: NONE,
            time_before: NONE,
        };
        let index = if self.free != NONE {
            let index = self.free;
            self.free = self[index].next;
            self[index] = pending;
            index
        } else if self.slab.len() < self.capacity {
            self.slab.push(pending);
            self.slab.len() as u32 - 1
        } else {
            return None;
        };
        Some(index)
    }

    /// Starts a clock of a request. A request has at most one clock at a time.
    pub(super) fn start(&mut self, index: u32, clock: Clock, deadline: Ps) {
        self.stop(index);
        let tail = std::mem::replace(&mut self.clocks[clock as usize].tail, index);
        match tail {
            NONE => self.clocks[clock as usize].head = index,
            tail => self[tail].time_next = index,
        }
        let pending = &mut self[index];
        pending.deadline = deadline;
        pending.timed = Some(clock);
        pending.time_next = NONE;
        pending.time_before = tail;
    }

    /// Stops the clock of a request, if one runs.
    pub(super) fn stop(&mut self, index: u32) {
        let Some(clock) = self[index].timed.take() else {
            return;
        };
        let Pending { time_next, time_before, .. } = self[index];
        match time_before {
            NONE => self.clocks[clock as usize].head = time_next,
            before => self[before].time_next = time_next,
        }
        match time_next {
            NONE => self.clocks[clock as usize].tail = time_before,
            next => self[next].time_before = time_before,
        }
    }

    /// The request whose clock ends first, and the time of that end.
    pub(super) fn first(&self, clock: Clock) -> Option<(Ps, u32)> {
        let head = self.clocks[clock as usize].head;
        (head != NONE).then(|| (self[head].deadline, head))
    }

    /// Decides the result of a request.
    pub(super) fn end(&mut self, index: u32, outcome: Outcome) {
        assert!(!self[index].ended, "a request ends twice");
        if self[index].timed == Some(Clock::Answer) {
            self.stop(index);
        }
        let pending = &mut self[index];
        pending.ended = true;
        pending.unpolled = true;
        pending.outcome = outcome;
        self.events.push_back(index);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        let index = self.events.pop_front()?;
        self[index].unpolled = false;
        let event = self[index].event();
        self.release(index);
        Some(event)
    }

    /// Frees a request once nothing refers to it.
    pub(super) fn release(&mut self, index: u32) {
        let free = self.free;
        let pending = &mut self[index];
        if pending.ended && !pending.unpolled && pending.copies == 0 && !pending.queued {
            pending.next = free;
            self.free = index;
        }
    }

    /// True if request `index` has copies in flight under this id.
    pub(super) fn has_copies(&self, index: u32, peer: NodeId, id: MessageId) -> bool {
        let pending = &self[index];
        pending.copies != 0 && pending.id == id && pending.request.peer == peer
    }

    /// The token by which the hosts of the interfaces know a request.
    pub(super) fn token(index: u32) -> Token {
        Token(index)
    }
}

impl std::ops::Index<u32> for Requests {
    type Output = Pending;
    fn index(&self, index: u32) -> &Pending {
        &self.slab[index as usize]
    }
}

impl std::ops::IndexMut<u32> for Requests {
    fn index_mut(&mut self, index: u32) -> &mut Pending {
        &mut self.slab[index as usize]
    }
}

/// The requests that wait for one destination.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    head: u32,
    tail: u32,
}

impl Queue {
    pub(super) const EMPTY: Queue = Queue { head: NONE, tail: NONE };

    pub(super) fn head(&self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    pub(super) fn push(&mut self, requests: &mut Requests, index: u32) {
        requests[index].queued = true;
        requests[index].next = NONE;
        match self.tail {
            NONE => self.head = index,
            tail => requests[tail].next = index,
        }
        self.tail = index;
    }

    pub(super) fn pop(&mut self, requests: &mut Requests) -> Option<u32> {
        let index = self.head;
        if index == NONE {
            return None;
        }
        self.head = requests[index].next;
        if self.head == NONE {
            self.tail = NONE;
        }
        requests[index].queued = false;
        Some(index)
    }
}

/// The ids of a node's own messages, by (class, row, destination).
#[derive(Debug)]
pub(super) struct Ids {
    rows: Vec<Row>,
    nodes: usize,
    rows_per_class: [usize; 2],
}

#[derive(Clone, Copy, Debug, Default)]
struct Row {
    generation: u8,
    /// The request that last had the row's id.
    owner: u32,
    used: bool,
    /// True if the memory node may have seen the id.
    exposed: bool,
}

impl Ids {
    pub(super) fn new(nodes: u16, notifications_max: u8) -> Ids {
        let rows_per_class = [usize::from(notifications_max), MessageId::ROWS];
        let rows = usize::from(nodes) * (rows_per_class[0] + rows_per_class[1]);
        Ids { rows: vec![Row::default(); rows], nodes: usize::from(nodes), rows_per_class }
    }

    fn row(&mut self, peer: NodeId, write: bool, row: usize) -> &mut Row {
        let row = usize::from(write) * self.rows_per_class[0] + row;
        &mut self.rows[row * self.nodes + usize::from(peer.number())]
    }

    /// Gives `owner` an id whose row is free. `in_use` tells whether an id still belongs to the
    /// request that had it last.
    pub(super) fn take(
        &mut self,
        peer: NodeId,
        write: bool,
        owner: u32,
        in_use: impl Fn(MessageId, u32) -> bool,
    ) -> Option<MessageId> {
        (0..self.rows_per_class[usize::from(write)]).find_map(|number| {
            let row = self.row(peer, write, number);
            let last = MessageId::new(write, row.generation, number as u8);
            if row.used && in_use(last, row.owner) {
                return None;
            }
            // An id that the memory node never saw is reused. The node tells new ids from copies by
            // how far ahead they are, so a row must not advance too far.
            if !row.used || row.exposed {
                row.generation = (row.generation + 1) & 0xf;
            }
            row.used = true;
            row.owner = owner;
            row.exposed = false;
            Some(MessageId::new(write, row.generation, number as u8))
        })
    }

    pub(super) fn expose(&mut self, peer: NodeId, id: MessageId) {
        self.row(peer, id.is_write(), id.row()).exposed = true;
    }
}
