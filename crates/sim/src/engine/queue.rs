//! The event queue: a wheel of short buckets for what is near, a heap for what is far.
//!
//! Events leave in the order of (time, insertion number), always. An event costs a few tens of
//! nanoseconds whatever the number pending: it is linked into the bucket of its time, and only the
//! bucket that time has reached is sorted.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ethermem_units::Ps;

/// Picoseconds a bucket spans, as a power of two: a few events each at a million messages a
/// microsecond.
const BUCKET_SHIFT: u32 = 6;
/// Buckets of the wheel: together 1 us, more than the latency of any hop.
const BUCKETS: usize = 1 << 14;
const WORDS: usize = BUCKETS / 64;
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    time: u64,
    sequence: u64,
    next: u32,
    event: E,
}

/// Pending events of type `E`.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<E> {
    nodes: Vec<Node<E>>,
    free: u32,
    buckets: Vec<u32>,
    /// One bit a bucket that is not empty, and one bit a word of those that is not zero.
    occupied: Vec<u64>,
    summary: [u64; WORDS / 64],
    /// The bucket that time has reached, latest event first.
    current: Vec<(u64, u64, u32)>,
    current_bucket: u64,
    far: BinaryHeap<Reverse<(u64, u64, u32)>>,
    sequence: u64,
    pending: usize,
}

impl<E: Copy> EventQueue<E> {
    pub(crate) fn new() -> EventQueue<E> {
        EventQueue {
            nodes: Vec::new(),
            free: NONE,
            buckets: vec![NONE; BUCKETS],
            occupied: vec![0; WORDS],
            summary: [0; WORDS / 64],
            current: Vec::new(),
            current_bucket: 0,
            far: BinaryHeap::new(),
            sequence: 0,
            pending: 0,
        }
    }

    /// Queues an event; never for a time before the last one taken.
    #[inline]
    pub(crate) fn push(&mut self, at: Ps, event: E) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.pending += 1;
        let index = self.allocate(Node { time: at.0, sequence, next: NONE, event });
        let bucket = at.0 >> BUCKET_SHIFT;
        if bucket <= self.current_bucket {
            let key = (at.0, sequence);
            let place = self.current.partition_point(|&(time, seq, _)| (time, seq) > key);
            self.current.insert(place, (at.0, sequence, index));
        } else if bucket - self.current_bucket < BUCKETS as u64 {
            self.link(bucket, index);
        } else {
            self.far.push(Reverse((at.0, sequence, index)));
        }
    }

    /// Takes the earliest event.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<(Ps, E)> {
        if self.current.is_empty() && !self.advance() {
            return None;
        }
        let (time, _, index) = self.current.pop()?;
        self.pending -= 1;
        let event = self.nodes[index as usize].event;
        self.nodes[index as usize].next = self.free;
        self.free = index;
        Some((Ps(time), event))
    }

    /// The time of the earliest event.
    #[inline]
    pub(crate) fn peek_time(&mut self) -> Option<Ps> {
        if self.current.is_empty() && !self.advance() {
            return None;
        }
        self.current.last().map(|&(time, _, _)| Ps(time))
    }

    fn allocate(&mut self, node: Node<E>) -> u32 {
        if self.free == NONE {
            self.nodes.push(node);
            return (self.nodes.len() - 1) as u32;
        }
        let index = self.free;
        self.free = self.nodes[index as usize].next;
        self.nodes[index as usize] = node;
        index
    }

    #[inline]
    fn link(&mut self, bucket: u64, index: u32) {
        let slot = bucket as usize % BUCKETS;
        self.nodes[index as usize].next = self.buckets[slot];
        self.buckets[slot] = index;
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.summary[slot / 4096] |= 1 << (slot / 64 % 64);
    }

    /// Moves time to the next bucket that holds an event; false when there is none.
    fn advance(&mut self) -> bool {
        if self.pending == 0 {
            return false;
        }
        let near = self.next_occupied();
        let far = self.far.peek().map(|Reverse((time, _, _))| time >> BUCKET_SHIFT);
        let bucket = match (near, far) {
            (Some(near), Some(far)) => near.min(far),
            (Some(only), None) | (None, Some(only)) => only,
            (None, None) => unreachable!("events are pending, so one is in the wheel or the heap"),
        };
        self.current_bucket = bucket;
        // What the wheel now reaches comes out of the heap; the current bucket's events with it.
        while let Some(&Reverse((time, sequence, index))) = self.far.peek() {
            let far = time >> BUCKET_SHIFT;
            if far >= bucket + BUCKETS as u64 {
                break;
            }
            self.far.pop();
            if far == bucket {
                self.current.push((time, sequence, index));
            } else {
                self.link(far, index);
            }
        }
        let slot = bucket as usize % BUCKETS;
        let mut index = std::mem::replace(&mut self.buckets[slot], NONE);
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.summary[slot / 4096] &= !(1 << (slot / 64 % 64));
        }
        while index != NONE {
            let node = &self.nodes[index as usize];
            self.current.push((node.time, node.sequence, index));
            index = node.next;
        }
        self.current.sort_unstable_by(|a, b| b.cmp(a));
        true
    }

    /// The next bucket after the current one that the wheel holds an event in.
    fn next_occupied(&self) -> Option<u64> {
        let start = (self.current_bucket + 1) as usize % BUCKETS;
        let distance = self
            .scan(start, BUCKETS)
            .or_else(|| self.scan(0, start).map(|distance| distance + BUCKETS - start))?;
        Some(self.current_bucket + 1 + distance as u64)
    }

    /// How far from `start` the first occupied bucket in `start..end` is.
    fn scan(&self, start: usize, end: usize) -> Option<usize> {
        let mut word = start / 64;
        let masked = self.occupied.get(word)? & (u64::MAX << (start % 64));
        let mut bits = masked;
        if bits == 0 {
            word += 1;
            loop {
                let group = self.summary.get(word / 64)? & (u64::MAX << (word % 64));
                if group != 0 {
                    word = word / 64 * 64 + group.trailing_zeros() as usize;
                    break;
                }
                word = (word / 64 + 1) * 64;
            }
            bits = self.occupied[word];
        }
        let slot = word * 64 + bits.trailing_zeros() as usize;
        (slot < end).then(|| slot - start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_times_keep_the_order_of_insertion() {
        let mut queue = EventQueue::new();
        for event in 0..5 {
            queue.push(Ps(640), event);
        }
        let order: Vec<i32> = std::iter::from_fn(|| queue.pop()).map(|(_, e)| e).collect();
        assert_eq!(order, [0, 1, 2, 3, 4]);
        assert_eq!(queue.peek_time(), None);
    }

    proptest! {
        /// Against a sorted list: pushes at random distances, near, far and now, between pops.
        #[test]
        fn events_leave_by_time_and_insertion(
            steps in prop::collection::vec(
                prop_oneof![
                    3 => (0..200u64).prop_map(Some),
                    2 => (0..2_000_000u64).prop_map(Some),
                    1 => (0..3_000_000_000u64).prop_map(Some),
                    5 => Just(None),
                ], 0..400)
        ) {
            let mut queue = EventQueue::new();
            let mut model = std::collections::BTreeSet::new();
            let mut now = 0;
            for (number, step) in steps.into_iter().enumerate() {
                match step {
                    Some(delay) => {
                        queue.push(Ps(now + delay), number);
                        model.insert((now + delay, number));
                    }
                    None => {
                        prop_assert_eq!(queue.peek_time().map(|t| t.0), model.first().map(|e| e.0));
                        let popped = queue.pop().map(|(time, event)| (time.0, event));
                        prop_assert_eq!(popped, model.pop_first());
                        now = popped.map_or(now, |(time, _)| time);
                    }
                }
            }
            let rest: Vec<_> = std::iter::from_fn(|| queue.pop()).map(|(t, e)| (t.0, e)).collect();
            prop_assert_eq!(rest, model.into_iter().collect::<Vec<_>>());
        }
    }
}
