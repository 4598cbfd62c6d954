//! Message queues: the messages that wait for each destination, the order in which they are
//! dequeued, and the messages that share a notification.
//!
//! `Order::Pair` and `Order::Strict`: one first-in-first-out queue per destination. A read waits at
//! its head until earlier writes were handed to the transmitter in full: those that share bytes
//! with it or, under `Strict`, all. The link and the switch keep the order from there. A write need
//! not wait for earlier reads: the scheduler holds its notification until they were released.
//!
//! `Order::Relaxed`: one lane per destination, kind and size class; the lane of the smallest sizes
//! goes first. A fence, and every message after it, waits in the queue until the lanes are empty
//! and nothing is in flight. What follows the fence waits until the fence is done.

use ethermem_units::Ps;

use crate::message::NodeId;

use super::entry::{Entry, List, NONE, kind, state};
use super::peers::{FENCE_INHERITED, FENCING, QUEUED, WaitingQueues};
use super::{Control, Host};

/// Maximum number of writes that share a notification. It bounds the work of one call.
pub(super) const MEMBERS_MAX: u8 = 64;
/// Maximum bytes of the writes that share a notification.
const BATCH_BYTES_MAX: u32 = 64 << 10;

const CLASSES: u32 = 8;
/// Lanes of a destination: reads by size class, then writes by size class.
pub(super) const LANES: usize = 2 * CLASSES as usize;

/// The lane of a size class: up to 64 B, 256 B, 1 KiB, ... 256 KiB, and larger.
const fn lane(bytes: u32, write: bool) -> usize {
    let log2_ceil = u32::BITS - (bytes - 1).leading_zeros();
    let class = log2_ceil.saturating_sub(5) / 2;
    let class = if class < CLASSES { class } else { CLASSES - 1 };
    class as usize + if write { CLASSES as usize } else { 0 }
}

impl Host {
    /// Puts a new entry into its queue or lane, or opens it at once.
    #[inline]
    pub(super) fn enqueue(&mut self, now: Ps, index: u32) {
        let entry = &self.slab[index];
        let (peer, fence) = (entry.peer, entry.is(kind::FENCE));
        let alone = self.destination(peer).is_passable() && !fence;
        if alone && self.may_open(index) {
            self.open(now, index);
        } else if self.relaxed {
            self.enqueue_relaxed(now, peer, index);
        } else {
            self.queue_push(peer, index);
        }
    }

    /// Dequeues what may go to `peer`, after something that held it back has ended.
    #[inline]
    pub(super) fn pump(&mut self, now: Ps, peer: NodeId) {
        if self.relaxed {
            self.pump_relaxed(now, peer);
            return;
        }
        loop {
            if !self.peers.destination(peer).is(QUEUED) {
                return;
            }
            let head = self.peers.waiting(peer).queue.head;
            if !self.may_open(head) {
                return;
            }
            self.queue_unlink(peer, head);
            self.open_batch(now, head);
        }
    }

    /// Removes an ended entry from the queue that it waits in.
    pub(super) fn remove_queued(&mut self, index: u32) {
        let entry = self.slab[index];
        let peer = entry.peer;
        if self.relaxed && !entry.is(kind::BEHIND_FENCE) {
            self.lane_unlink(peer, lane(entry.bytes, entry.is(kind::WRITE)), index);
        } else {
            if entry.is(kind::FENCE) {
                match entry.next {
                    NONE => self.destination(peer).flags |= FENCE_INHERITED,
                    next => self.slab[next].kind |= kind::FENCE,
                }
            }
            self.queue_unlink(peer, index);
        }
        self.slab.release(index, state::QUEUED);
    }

    /// Any entry that waits for `peer`; the order does not matter.
    pub(super) fn any_queued(&mut self, peer: NodeId) -> Option<u32> {
        let WaitingQueues { queue: List { head, .. }, lanes } = *self.peers.waiting(peer);
        match (head, lanes) {
            (NONE, 0) => None,
            (NONE, lanes) => Some(self.lane_head(peer, lanes.trailing_zeros() as usize)),
            (head, _) => Some(head),
        }
    }

    /// True if a message may be dequeued now, provided that it is next.
    #[inline]
    fn may_open(&self, index: u32) -> bool {
        let entry = &self.slab[index];
        let write = entry.is(kind::WRITE);
        self.has_place(entry.peer, write) && (write || self.relaxed || !self.waits_for_write(entry))
    }

    /// True if a read or a write to `peer` would find a free id within X.
    #[inline]
    fn has_place(&self, peer: NodeId, write: bool) -> bool {
        self.peers.has_free_row(peer, write)
            && (!write || self.peers.destination(peer).writes_active < self.notifications_max)
    }

    /// True if an earlier dequeued write that was not sent in full orders this read.
    #[inline]
    fn waits_for_write(&self, read: &Entry) -> bool {
        let destination = self.peers.destination(read.peer);
        destination.writes_active > 0 && (self.strict || self.overlaps_write(read))
    }

    fn overlaps_write(&self, read: &Entry) -> bool {
        let rows = self.peers.destination(read.peer).rows[1];
        let end = read.address.saturating_add(u64::from(read.bytes));
        (0..u8::BITS as usize).filter(|row| rows & 1 << row != 0).any(|row| {
            let mut member = self.peers.leader(read.peer, true, row);
            while member != NONE {
                let write = &self.slab[member];
                let write_end = write.address.saturating_add(u64::from(write.bytes));
                let sent = write.moved == write.bytes;
                if !sent && write.address < end && read.address < write_end {
                    return true;
                }
                member = write.next;
            }
            false
        })
    }

    /// Assigns an id to an entry and queues its request or notification for transmission.
    #[inline]
    fn open(&mut self, now: Ps, index: u32) {
        let entry = &mut self.slab[index];
        let peer = entry.peer;
        let write = entry.is(kind::WRITE);
        if entry.is(kind::NAMED) {
            self.peers.open_as(peer, entry.id, index);
        } else {
            entry.id = self.peers.open(peer, write, index);
        }
        let destination = self.peers.destination_mut(peer);
        entry.state = (entry.state | state::OPEN | state::UNSENT) & !state::QUEUED;
        entry.next = NONE;
        entry.before = index;
        entry.cursor = index;
        if write {
            destination.writes_active += 1;
            assert!(
                destination.writes_active <= self.notifications_max,
                "more than X = {} notifications to {peer:?}",
                self.notifications_max
            );
        } else {
            entry.granted = entry.demand;
        }
        self.control.push(now, Control::Open(index));
    }

    /// Opens an entry that was just dequeued. Small writes that would wait behind it share its
    /// notification.
    fn open_batch(&mut self, now: Ps, leader: u32) {
        self.open(now, leader);
        let entry = self.slab[leader];
        let saturated = self.destination(entry.peer).writes_active == self.notifications_max;
        if !self.batching || !saturated || !self.may_share(leader) {
            return;
        }
        let (mut tail, mut members, mut demand) = (leader, 1, entry.bytes);
        while members < MEMBERS_MAX {
            let next = self.next_write(entry.peer);
            if next == NONE || !self.may_share(next) {
                break;
            }
            let bytes = self.slab[next].bytes;
            if demand + bytes > BATCH_BYTES_MAX {
                break;
            }
            self.unlink_next_write(entry.peer, next);
            let member = &mut self.slab[next];
            member.state = (member.state | state::OPEN) & !state::QUEUED;
            member.id = entry.id;
            member.member = members;
            member.next = NONE;
            self.slab[tail].next = next;
            tail = next;
            members += 1;
            demand += bytes;
        }
        self.slab[leader].demand = demand;
        self.counters.batched += u64::from(members - 1);
    }

    #[inline]
    fn may_share(&self, index: u32) -> bool {
        let entry = &self.slab[index];
        entry.is(kind::WRITE) && !entry.is(kind::FENCE) && entry.bytes <= self.chunk
    }

    /// The next entry in dequeue order, if it is a write.
    fn next_write(&mut self, peer: NodeId) -> u32 {
        if !self.relaxed {
            return self.peers.waiting(peer).queue.head;
        }
        match self.peers.waiting(peer).lanes >> CLASSES {
            0 => NONE,
            lanes => self.lane_head(peer, (lanes.trailing_zeros() + CLASSES) as usize),
        }
    }

    fn unlink_next_write(&mut self, peer: NodeId, index: u32) {
        if self.relaxed {
            self.lane_unlink(peer, lane(self.slab[index].bytes, true), index);
        } else {
            self.queue_unlink(peer, index);
        }
    }

    fn enqueue_relaxed(&mut self, now: Ps, peer: NodeId, index: u32) {
        let entry = &mut self.slab[index];
        let destination = self.peers.destination_mut(peer);
        if destination.is(FENCE_INHERITED) {
            destination.flags &= !FENCE_INHERITED;
            entry.kind |= kind::FENCE;
        }
        if self.peers.waiting(peer).queue.is_empty() && !entry.is(kind::FENCE) {
            let (bytes, write) = (entry.bytes, entry.is(kind::WRITE));
            self.lane_push(peer, lane(bytes, write), index);
        } else {
            entry.kind |= kind::BEHIND_FENCE;
            self.queue_push(peer, index);
        }
        self.pump_relaxed(now, peer);
    }

    fn pump_relaxed(&mut self, now: Ps, peer: NodeId) {
        loop {
            if !self.peers.destination(peer).is(QUEUED) {
                return;
            }
            if self.destination(peer).is(FENCING) {
                if !self.destination(peer).is_quiet() {
                    return;
                }
                self.destination(peer).flags &= !FENCING;
            }
            while let Some(index) = self.lane_pop(peer) {
                self.open_batch(now, index);
            }
            let destination = *self.peers.destination(peer);
            let WaitingQueues { queue: List { head, .. }, lanes } = *self.peers.waiting(peer);
            if lanes != 0 || head == NONE {
                return;
            }
            if self.slab[head].is(kind::FENCE) {
                if !destination.is_quiet() || !self.may_open(head) {
                    return;
                }
                self.queue_unlink(peer, head);
                self.open(now, head);
                self.destination(peer).flags |= FENCING;
            } else {
                self.release_behind_fence(peer);
            }
        }
    }

    /// Moves what waited behind a completed fence to the lanes, up to the next fence. Each message
    /// is moved once.
    fn release_behind_fence(&mut self, peer: NodeId) {
        loop {
            let head = self.peers.waiting(peer).queue.head;
            if head == NONE || self.slab[head].is(kind::FENCE) {
                return;
            }
            self.queue_unlink(peer, head);
            let entry = &mut self.slab[head];
            entry.kind &= !kind::BEHIND_FENCE;
            let lane = lane(entry.bytes, entry.is(kind::WRITE));
            self.lane_push(peer, lane, head);
        }
    }

    /// Takes the first entry of the smallest size class that may be opened. Where a read and a
    /// write tie, the read goes first.
    fn lane_pop(&mut self, peer: NodeId) -> Option<u32> {
        let lanes = u32::from(self.peers.waiting(peer).lanes);
        let open = |write: bool, lanes: u32| {
            (lanes != 0 && self.has_place(peer, write)).then(|| lanes.trailing_zeros())
        };
        let read = open(false, lanes & ((1 << CLASSES) - 1));
        let write = open(true, lanes >> CLASSES);
        let lane = match (read, write) {
            (Some(read), Some(write)) if read <= write => read,
            (Some(read), None) => read,
            (_, Some(write)) => write + CLASSES,
            (None, None) => return None,
        };
        let index = self.lane_head(peer, lane as usize);
        self.lane_unlink(peer, lane as usize, index);
        Some(index)
    }

    #[inline]
    fn queue_push(&mut self, peer: NodeId, index: u32) {
        self.slab.push_back(&mut self.peers.waiting(peer).queue, index);
        self.destination(peer).flags |= QUEUED;
    }

    #[inline]
    fn queue_unlink(&mut self, peer: NodeId, index: u32) {
        self.slab.unlink(&mut self.peers.waiting(peer).queue, index);
        self.unmark_if_empty(peer);
    }

    fn lane_head(&self, peer: NodeId, lane: usize) -> u32 {
        self.lanes[usize::from(peer.number()) * LANES + lane].head
    }

    fn lane_push(&mut self, peer: NodeId, lane: usize, index: u32) {
        self.slab.push_back(&mut self.lanes[usize::from(peer.number()) * LANES + lane], index);
        self.peers.waiting(peer).lanes |= 1 << lane;
        self.destination(peer).flags |= QUEUED;
    }

    fn lane_unlink(&mut self, peer: NodeId, lane: usize, index: u32) {
        let list = &mut self.lanes[usize::from(peer.number()) * LANES + lane];
        self.slab.unlink(list, index);
        if list.is_empty() {
            self.peers.waiting(peer).lanes &= !(1 << lane);
            self.unmark_if_empty(peer);
        }
    }

    #[inline]
    fn unmark_if_empty(&mut self, peer: NodeId) {
        let WaitingQueues { queue, lanes } = *self.peers.waiting(peer);
        if queue.is_empty() && lanes == 0 {
            self.destination(peer).flags &= !QUEUED;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_grow_fourfold() {
        let classes = [
            (1, 0),
            (64, 0),
            (65, 1),
            (256, 1),
            (257, 2),
            (1 << 10, 2),
            (1 << 12, 3),
            (1 << 14, 4),
            (1 << 16, 5),
            (1 << 18, 6),
            ((1 << 18) + 1, 7),
            ((4 << 20) - 64, 7),
        ];
        for (bytes, class) in classes {
            assert_eq!(lane(bytes, false), class, "{bytes} B");
            assert_eq!(lane(bytes, true), class + 8, "{bytes} B");
        }
    }
}
