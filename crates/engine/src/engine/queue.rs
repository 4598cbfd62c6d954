//! The event queue: a wheel of very short buckets for near events, a heap for far ones.
//!
//! Events always leave in the order of (time, insertion). A bucket is a list in that order. It
//! spans so little time that an event almost always goes to its end or into an empty bucket. A
//! bitmap finds the next bucket that is not empty. The cost of an event does not depend on the
//! number of pending events.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::Ps;

/// Span of the wheel in picoseconds, as a power of two: 1 us, more than the latency of any hop.
const WHEEL_SHIFT: u32 = 20;
/// Number of bits of the bitmap that one bit of its summary covers.
const WORD: usize = 64;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct QueuedEvent<E> {
    time: u64,
    event: E,
    /// The next event of its bucket, or the first after the last; or the next free entry.
    next: u32,
}

/// Pending events of type `E`.
///
/// Invariant: the wheel holds the events of its span from the bucket of the last event taken; the
/// heap holds all others. So an event from the heap was inserted before all later events of its
/// bucket, and needs no number beside its place there.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<E> {
    nodes: Vec<QueuedEvent<E>>,
    free: u32,
    /// Span of a bucket in picoseconds, as a power of two.
    bucket_shift: u32,
    /// The last event of each bucket.
    buckets: Vec<u32>,
    /// One bit per bucket that is not empty, and one bit per word of these that is not zero.
    occupied: Vec<u64>,
    summary: Vec<u64>,
    /// The bucket of the last event taken.
    reached: u64,
    /// Far events by time and insertion.
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    far_inserted: u64,
    /// The bucket of the earliest event of `far`; [`u64::MAX`] if it is empty.
    far_bucket: u64,
    near: usize,
}

impl<E: Copy> EventQueue<E> {
    /// Buckets of this many picoseconds, as a power of two of at most 8. With shorter buckets each
    /// has fewer events, and the wheel passes through more memory.
    pub(crate) fn new(bucket_shift: u32) -> EventQueue<E> {
        let buckets = 1 << (WHEEL_SHIFT - bucket_shift);
        EventQueue {
            nodes: Vec::new(),
            free: NONE,
            bucket_shift,
            buckets: vec![NONE; buckets],
            occupied: vec![0; buckets / WORD],
            summary: vec![0; buckets / WORD / WORD],
            reached: 0,
            far: BinaryHeap::new(),
            far_inserted: 0,
            far_bucket: u64::MAX,
            near: 0,
        }
    }

    /// Queues an event; its time must not be before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, at: Ps, event: E) {
        let index = self.allocate(QueuedEvent { time: at.0, event, next: NONE });
        if (at.0 >> self.bucket_shift).wrapping_sub(self.reached) < self.buckets.len() as u64 {
            self.link(at.0, index);
        } else {
            self.push_far(at.0, index);
        }
    }

    /// Takes the earliest event, if it is before `limit`.
    #[inline]
    pub(crate) fn pop_before(&mut self, limit: Ps) -> Option<(Ps, E)> {
        if self.near == 0 && !self.reach_far(limit) {
            return None;
        }
        let slot = self.first_occupied();
        let last = self.buckets[slot];
        let first = self.nodes[last as usize].next;
        let QueuedEvent { time, event, next } = self.nodes[first as usize];
        if time >= limit.0 {
            return None;
        }
        if first == last {
            self.buckets[slot] = NONE;
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            if self.occupied[slot / 64] == 0 {
                self.summary[slot / 4096] &= !(1 << (slot / 64 % 64));
            }
        } else {
            self.nodes[last as usize].next = next;
        }
        self.nodes[first as usize].next = self.free;
        self.free = first;
        self.near -= 1;
        self.reached = time >> self.bucket_shift;
        if self.far_bucket < self.reached + self.buckets.len() as u64 {
            self.bring_near();
        }
        Some((Ps(time), event))
    }

    #[inline]
    fn allocate(&mut self, node: QueuedEvent<E>) -> u32 {
        let index = self.free;
        match self.nodes.get_mut(index as usize) {
            Some(free) => {
                self.free = free.next;
                *free = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        }
    }

    /// Inserts an event behind the events of its bucket that are not later.
    #[inline]
    fn link(&mut self, time: u64, index: u32) {
        self.near += 1;
        let slot = self.slot(time >> self.bucket_shift);
        let last = self.buckets[slot];
        if last == NONE {
            self.buckets[slot] = index;
            self.nodes[index as usize].next = index;
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.summary[slot / 4096] |= 1 << (slot / 64 % 64);
            return;
        }
        let mut before = last;
        if self.nodes[last as usize].time <= time {
            self.buckets[slot] = index;
        } else {
            loop {
                let next = self.nodes[before as usize].next;
                if self.nodes[next as usize].time > time {
                    break;
                }
                before = next;
            }
        }
        self.nodes[index as usize].next = self.nodes[before as usize].next;
        self.nodes[before as usize].next = index;
    }

    #[cold]
    fn push_far(&mut self, time: u64, index: u32) {
        self.far.push(Reverse((time, self.far_inserted, index)));
        self.far_inserted += 1;
        self.far_bucket = self.far_bucket.min(time >> self.bucket_shift);
    }

    /// Advances an empty wheel to the earliest event of all, if it is before `limit`.
    #[cold]
    fn reach_far(&mut self, limit: Ps) -> bool {
        let Some(&Reverse((time, _, _))) = self.far.peek() else { return false };
        if time >= limit.0 {
            return false;
        }
        self.reached = time >> self.bucket_shift;
        self.bring_near();
        true
    }

    /// Moves the far events that the wheel now covers into it.
    #[cold]
    fn bring_near(&mut self) {
        self.far_bucket = u64::MAX;
        while let Some(&Reverse((time, _, index))) = self.far.peek() {
            let bucket = time >> self.bucket_shift;
            if bucket - self.reached >= self.buckets.len() as u64 {
                self.far_bucket = bucket;
                break;
            }
            self.far.pop();
            self.link(time, index);
        }
    }

    /// The index of a bucket in the wheel.
    #[inline]
    fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.buckets.len() - 1)
    }

    /// The first bucket that holds an event, from the last taken one on; one must exist.
    #[inline]
    fn first_occupied(&self) -> usize {
        let start = self.slot(self.reached);
        let bits = self.occupied[start / 64] & (u64::MAX << (start % 64));
        if bits != 0 {
            return start / 64 * 64 + bits.trailing_zeros() as usize;
        }
        self.first_occupied_word((start / 64 + 1) & (self.occupied.len() - 1))
    }

    /// The first word that is not zero, from `start` on and around to it.
    fn first_occupied_word(&self, start: usize) -> usize {
        let mut group = start / 64;
        let mut bits = self.summary[group] & (u64::MAX << (start % 64));
        while bits == 0 {
            group = (group + 1) & (self.summary.len() - 1);
            bits = self.summary[group];
        }
        let word = group * 64 + bits.trailing_zeros() as usize;
        word * 64 + self.occupied[word].trailing_zeros() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_keep_the_order_of_insertion() {
        let mut queue = EventQueue::new(5);
        for event in 0..5 {
            queue.push(Ps(640), event);
        }
        let order: Vec<i32> =
            std::iter::from_fn(|| queue.pop_before(Ps::MAX)).map(|(_, e)| e).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
        assert_eq!(queue.pop_before(Ps::MAX), None);
    }

    proptest! {
        /// The model is a sorted list: pushes at random distances, near, far and now, between pops.
        #[test]
        fn events_leave_by_time_and_insertion(
            steps in prop::collection::vec(
                prop_oneof![
                    3 => (0..200u64).prop_map(Some),
                    2 => (0..2_000_000u64).prop_map(Some),
                    1 => (0..3_000_000_000u64).prop_map(Some),
                    5 => Just(None),
                ], 0..400),
            bucket_shift in 3..=8u32,
        ) {
            let mut queue = EventQueue::new(bucket_shift);
            let mut model = std::collections::BTreeSet::new();
            let mut now = 0;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(delay) => {
                        queue.push(Ps(now + delay), number);
                        model.insert((now + delay, number));
                    }
                    None => {
                        if let Some(&(first, _)) = model.first() {
                            prop_assert_eq!(queue.pop_before(Ps(first)), None);
                        }
                        let popped = queue.pop_before(Ps::MAX).map(|(time, event)| (time.0, event));
                        prop_assert_eq!(popped, model.pop_first());
                        now = popped.map_or(now, |(time, _)| time);
                    }
                }
            }
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop_before(Ps::MAX))
                .map(|(t, e)| (t.0, e))
                .collect();
            prop_assert_eq!(rest, model.into_iter().collect::<Vec<_>>());
        }
    }
}
