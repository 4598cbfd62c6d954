//! Ordering of a thread's operations (section 3.1 of Clio's paper): which must wait for which.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::operation::{Op, OpId, PAGE_BYTES, Segment};

/// Number of an operation within its thread; it increases with every submission.
pub(crate) type Sequence = u64;

/// Pages that an operation touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// First and last page of each part, sorted and disjoint.
    pages: SmallVec<[(u64, u64); 1]>,
    /// True if the operation changes them.
    writes: bool,
}

impl Touched {
    /// Pages by which an operation is ordered.
    pub(crate) fn by(op: &Op) -> Touched {
        let all = |segments: &[Segment], writes| match segments {
            [one] => Touched::bytes(one.address.0, one.bytes, writes),
            parts => Touched::parts(parts.iter().map(|s| (s.address.0, s.bytes)), writes),
        };
        match op {
            Op::Read(segments) => all(segments, false),
            Op::Write(segments, _) | Op::Offload { touches: segments, .. } => all(segments, true),
            Op::Modify(address, _) | Op::Lock { word: address, .. } => {
                Touched::bytes(address.0, 8, true)
            }
            Op::Free(address, bytes) => Touched::bytes(address.0, *bytes, true),
            Op::Share { region, .. } => all(&[*region], true),
            Op::Alloc { .. } | Op::Fence | Op::Flush | Op::Sleep(_) => Touched::default(),
        }
    }

    /// Pages of `bytes` bytes from `address` on.
    pub(crate) fn bytes(address: u64, bytes: u64, writes: bool) -> Touched {
        Touched { pages: smallvec![range(address, bytes)], writes }
    }

    /// Pages of all parts; each part is an address and a length in bytes.
    pub(crate) fn parts(parts: impl Iterator<Item = (u64, u64)>, writes: bool) -> Touched {
        Touched::ranges(parts.map(|(address, bytes)| range(address, bytes)).collect(), writes)
    }

    fn ranges(mut pages: SmallVec<[(u64, u64); 1]>, writes: bool) -> Touched {
        pages.sort_unstable();
        pages.dedup_by(|(first, last), (_, before)| {
            let meets = *first <= *before;
            if meets {
                *before = (*before).max(*last);
            }
            meets
        });
        Touched { pages, writes }
    }

    /// Every page, each once.
    fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.iter().flat_map(|&(first, last)| first..=last)
    }
}

/// First and last page of a range of bytes.
fn range(address: u64, bytes: u64) -> (u64, u64) {
    let last = address.saturating_add(bytes.max(1) - 1);
    (address / PAGE_BYTES, last / PAGE_BYTES)
}

/// The open operations of one thread, and which of them may proceed.
///
/// Operations queue at each page that they use. A read may proceed when no write is before it in
/// any of its queues; a write when nothing is before it. Most threads have one operation in flight,
/// or only reads. Those enter their queues only when an operation arrives that may have to wait.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    next: Sequence,
    open: usize,
    /// Operations in no queue: one that began when nothing was in flight and, if it is a read, all
    /// reads behind it. They are in order. A completed one has no id, and the first always has one.
    loose: VecDeque<(Sequence, Option<OpId>)>,
    /// True if the operation outside the queues writes.
    loose_writes: bool,
    queues: FxHashMap<u64, Queue>,
    /// For each blocked operation, the number of queues in which it waits.
    waiting: FxHashMap<Sequence, usize>,
    /// Operations that wait for all before them, in order.
    barriers: VecDeque<Barrier>,
    /// Number of open operations before the last barrier.
    before_barriers: usize,
}

/// The users of one page, and its waiters.
#[derive(Debug, Default)]
struct Queue {
    /// Number of operations that proceed: readers, or one writer.
    going: usize,
    writing: bool,
    /// Blocked operations: a writer, or readers behind one, and all later ones.
    waiting: VecDeque<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: Sequence,
    id: OpId,
    writes: bool,
}

#[derive(Clone, Copy, Debug)]
struct Barrier {
    sequence: Sequence,
    id: OpId,
    /// Open operations between the previous barrier and this one.
    open: usize,
}

impl Tracker {
    /// True if nothing is in flight.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.open == 0
    }

    /// Adds an operation, and says whether it may proceed at once. `known` gives the pages of
    /// another operation in flight.
    pub(crate) fn begin<'a>(
        &mut self,
        id: OpId,
        touched: &Touched,
        known: impl Fn(OpId) -> &'a Touched,
    ) -> (Sequence, bool) {
        let was_idle = self.is_idle();
        let sequence = self.next();
        let reads = !self.loose.is_empty() && !self.loose_writes && !touched.writes;
        if was_idle || reads {
            self.loose_writes = touched.writes;
            self.loose.push_back((sequence, Some(id)));
            return (sequence, true);
        }
        for (sequence, id) in std::mem::take(&mut self.loose) {
            if let Some(id) = id {
                self.enqueue(sequence, id, known(id));
            }
        }
        (sequence, self.enqueue(sequence, id, touched))
    }

    /// Puts an operation into its queues, and says whether it may proceed at once.
    fn enqueue(&mut self, sequence: Sequence, id: OpId, touched: &Touched) -> bool {
        let entry = Entry { sequence, id, writes: touched.writes };
        let blocked =
            touched.pages().filter(|&page| !self.queues.entry(page).or_default().push(entry));
        let blocked = blocked.count();
        if blocked > 0 {
            self.waiting.insert(sequence, blocked);
        }
        blocked == 0
    }

    /// Adds an operation that may proceed when all before it have completed, and says whether it
    /// may at once.
    pub(crate) fn barrier(&mut self, id: OpId) -> (Sequence, bool) {
        let goes = self.is_idle();
        let open = self.open - self.before_barriers;
        let sequence = self.next();
        if !goes {
            self.before_barriers += open;
            self.barriers.push_back(Barrier { sequence, id, open });
        }
        (sequence, goes)
    }

    /// Removes an operation that has completed. Operations that may proceed now are added to
    /// `ready`, in order.
    pub(crate) fn end(&mut self, sequence: Sequence, touched: &Touched, ready: &mut Vec<OpId>) {
        self.open -= 1;
        let mut go: SmallVec<[(Sequence, OpId); 4]> = SmallVec::new();
        if self.loose.is_empty() {
            self.leave(touched, &mut go);
        } else {
            self.leave_loose(sequence);
        }
        self.pass(sequence, &mut go);
        go.sort_unstable();
        ready.extend(go.into_iter().map(|(_, id)| id));
    }

    fn leave_loose(&mut self, sequence: Sequence) {
        // Most operations complete in order.
        let at = match self.loose.front() {
            Some(&(first, _)) if first == sequence => 0,
            _ => self.loose.partition_point(|&(other, _)| other < sequence),
        };
        // A barrier is in no queue.
        if let Some(loose) = self.loose.get_mut(at).filter(|loose| loose.0 == sequence) {
            loose.1 = None;
        }
        while let Some((_, None)) = self.loose.front() {
            self.loose.pop_front();
        }
    }

    /// Removes an operation from its queues. Operations that it was the last to block may proceed.
    fn leave(&mut self, touched: &Touched, go: &mut SmallVec<[(Sequence, OpId); 4]>) {
        for page in touched.pages() {
            let queue = self.queues.get_mut(&page).expect("a page in use has a queue");
            queue.going -= 1;
            if queue.going > 0 {
                continue;
            }
            while let Some(entry) = queue.pop() {
                let left = self.waiting.get_mut(&entry.sequence).expect("it did not go yet");
                *left -= 1;
                if *left == 0 {
                    self.waiting.remove(&entry.sequence);
                    go.push((entry.sequence, entry.id));
                }
            }
            if queue.going == 0 {
                self.queues.remove(&page);
            }
        }
    }

    /// Counts an operation out of the barriers behind it; the first barrier may proceed.
    fn pass(&mut self, sequence: Sequence, go: &mut SmallVec<[(Sequence, OpId); 4]>) {
        let behind = self.barriers.partition_point(|barrier| barrier.sequence <= sequence);
        if let Some(barrier) = self.barriers.get_mut(behind) {
            barrier.open -= 1;
            self.before_barriers -= 1;
        }
        if let Some(&Barrier { sequence, id, open: 0 }) = self.barriers.front() {
            self.barriers.pop_front();
            go.push((sequence, id));
        }
    }

    fn next(&mut self) -> Sequence {
        let sequence = self.next;
        self.next += 1;
        self.open += 1;
        sequence
    }
}

impl Queue {
    /// Appends an operation, and says whether it is unblocked.
    fn push(&mut self, entry: Entry) -> bool {
        let goes =
            if entry.writes { self.going == 0 } else { !self.writing && self.waiting.is_empty() };
        if goes {
            self.going += 1;
            self.writing = entry.writes;
        } else {
            self.waiting.push_back(entry);
        }
        goes
    }

    /// The next operation that has become unblocked.
    fn pop(&mut self) -> Option<Entry> {
        let entry = *self.waiting.front()?;
        if self.going > 0 && (self.writing || entry.writes) {
            return None;
        }
        self.waiting.pop_front();
        self.going += 1;
        self.writing = entry.writes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::address::{Address, Permissions, ProcessId};

    const fn op(place: usize) -> OpId {
        OpId::new(place)
    }

    fn touched(pages: &[(u64, u64)], writes: bool) -> Touched {
        Touched::ranges(SmallVec::from_slice(pages), writes)
    }

    #[test]
    fn readers_go_together_and_a_writer_alone() {
        let mut tracker = Tracker::default();
        let (read, write) = (touched(&[(3, 3)], false), touched(&[(3, 3)], true));
        let all = [&read, &read, &write, &read];
        let goes =
            |tracker: &mut Tracker, id, what| tracker.begin(id, what, |other| all[other.place()]);
        let (first, second) = (goes(&mut tracker, op(0), &read), goes(&mut tracker, op(1), &read));
        let third = goes(&mut tracker, op(2), &write);
        let fourth = goes(&mut tracker, op(3), &read);
        assert_eq!([first.1, second.1, third.1, fourth.1], [true, true, false, false]);
        let mut ready = Vec::new();
        tracker.end(second.0, &read, &mut ready);
        assert!(ready.is_empty());
        tracker.end(first.0, &read, &mut ready);
        assert_eq!(ready, [op(2)]);
        tracker.end(third.0, &write, &mut ready);
        assert_eq!(ready, [op(2), op(3)]);
        tracker.end(fourth.0, &read, &mut ready);
        assert!(tracker.is_idle() && tracker.queues.is_empty() && tracker.waiting.is_empty());
    }

    #[test]
    fn readers_are_in_no_queue_until_a_writer_comes() {
        let mut tracker = Tracker::default();
        let (read, write) = (touched(&[(3, 3)], false), touched(&[(3, 3)], true));
        let known = |id: OpId| if id == op(4) { &write } else { &read };
        let begun: Vec<_> = (0..2).map(|id| tracker.begin(op(id), &read, known)).collect();
        let barrier = tracker.barrier(op(2));
        let third = tracker.begin(op(3), &read, known);
        assert!(begun.iter().all(|one| one.1) && !barrier.1 && third.1);
        assert!(tracker.queues.is_empty());
        let mut ready = Vec::new();
        tracker.end(begun[1].0, &read, &mut ready);
        tracker.end(begun[0].0, &read, &mut ready);
        assert_eq!(ready, [op(2)], "all before the barrier have ended");
        tracker.end(barrier.0, &Touched::default(), &mut ready);
        let writer = tracker.begin(op(4), &write, known);
        assert_eq!((writer.1, tracker.queues.len()), (false, 1));
        tracker.end(third.0, &read, &mut ready);
        assert_eq!(ready, [op(2), op(4)]);
        tracker.end(writer.0, &write, &mut ready);
        assert!(tracker.is_idle() && tracker.queues.is_empty() && tracker.loose.is_empty());
    }

    #[test]
    fn a_page_that_is_named_twice_is_one() {
        let mut tracker = Tracker::default();
        let write = touched(&[(5, 9), (1, 6), (6, 6)], true);
        let read = touched(&[(20, 20)], false);
        let first = tracker.begin(op(0), &write, |_| unreachable!("there is no other"));
        assert!(first.1 && tracker.queues.is_empty(), "alone it needs no queue");
        let second = tracker.begin(op(1), &read, |_| &write);
        assert!(second.1);
        assert_eq!(tracker.queues.len(), 10);
        tracker.end(first.0, &write, &mut Vec::new());
        assert_eq!(tracker.queues.len(), 1);
        tracker.end(second.0, &read, &mut Vec::new());
        assert!(tracker.queues.is_empty());
    }

    #[test]
    fn an_operation_touches_the_pages_of_its_bytes_and_no_other() {
        let (first, second) = (PAGE_BYTES - 1, 2 * PAGE_BYTES);
        for (address, bytes, pages) in
            [(0, 1, (0, 0)), (first, 1, (0, 0)), (first, 2, (0, 1)), (second, PAGE_BYTES, (2, 2))]
        {
            assert_eq!(Touched::bytes(address, bytes, false), touched(&[pages], false));
        }
        assert_eq!(Touched::bytes(second, PAGE_BYTES + 1, true), touched(&[(2, 3)], true));
        assert_eq!(Touched::bytes(second, 0, true), touched(&[(2, 2)], true));
        let part = |address, bytes| Segment { address: Address(address), bytes };
        let parts = [part(second, 8), part(0, 8), part(first, 2)];
        let (reads, writes) = (touched(&[(0, 1), (2, 2)], false), touched(&[(0, 1), (2, 2)], true));
        assert_eq!(Touched::by(&Op::Read(parts.into_iter().collect())), reads);
        assert_eq!(Touched::by(&Op::Write(parts.into_iter().collect(), Vec::new())), writes);
        // An operation that takes memory or a lock away is ordered as a write of it.
        let (word, one) = (Address(second), touched(&[(2, 2)], true));
        assert_eq!(Touched::by(&Op::Lock { word, holder: 1 }), one);
        assert_eq!(Touched::by(&Op::Free(word, 8)), one);
        let (with, permissions) = (ProcessId(2), Permissions::READ);
        assert_eq!(Touched::by(&Op::Share { region: parts[0], with, permissions }), one);
        for op in [Op::Alloc { memory: 0, bytes: 8, permissions }, Op::Fence, Op::Flush] {
            assert_eq!(Touched::by(&op), Touched::default());
        }
    }

    #[test]
    fn the_last_page_of_all_is_a_page() {
        let last = Touched::bytes(u64::MAX, 1, true);
        assert_eq!(last.pages[0].0, u64::MAX / PAGE_BYTES);
        assert_eq!(touched(&[(u64::MAX, u64::MAX)], true).pages().count(), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(Touched),
        Barrier,
        /// An operation that proceeds completes.
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let range = (0..6_u64, 0..3_u64).prop_map(|(first, more)| (first, first + more));
        let ranges = proptest::collection::vec(range, 1..3);
        prop_oneof![
            3 => (ranges, any::<bool>()).prop_map(|(r, writes)| Step::Begin(touched(&r, writes))),
            1 => Just(Step::Barrier),
            3 => any::<usize>().prop_map(Step::End),
        ]
    }

    fn conflict(one: &Touched, other: &Touched) -> bool {
        let meet = |a: &(u64, u64), b: &(u64, u64)| a.0 <= b.1 && b.0 <= a.1;
        (one.writes || other.writes)
            && one.pages.iter().any(|a| other.pages.iter().any(|b| meet(a, b)))
    }

    proptest! {
        /// An operation proceeds exactly when all earlier operations that it conflicts with have
        /// completed; a barrier when all before it have.
        #[test]
        fn operations_go_when_those_before_allow(
            steps in proptest::collection::vec(step(), 1..80),
        ) {
            let mut tracker = Tracker::default();
            // Per operation: id, number, the pages it touches (none for a barrier), whether it
            // proceeds.
            let mut open: Vec<(OpId, Sequence, Option<Touched>, bool)> = Vec::new();
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Begin(touched) => {
                        let known = |other| {
                            let found = open.iter().find(|entry| entry.0 == other);
                            found.and_then(|entry| entry.2.as_ref()).unwrap()
                        };
                        let (sequence, goes) = tracker.begin(op(id), &touched, known);
                        open.push((op(id), sequence, Some(touched), goes));
                    }
                    Step::Barrier => {
                        let (sequence, goes) = tracker.barrier(op(id));
                        open.push((op(id), sequence, None, goes));
                    }
                    Step::End(which) => {
                        let going: Vec<usize> = (0..open.len()).filter(|&at| open[at].3).collect();
                        if going.is_empty() {
                            continue;
                        }
                        let ended = open.remove(going[which % going.len()]);
                        let mut ready = Vec::new();
                        tracker.end(ended.1, &ended.2.unwrap_or_default(), &mut ready);
                        for name in ready {
                            let entry = open.iter_mut().find(|entry| entry.0 == name).unwrap();
                            prop_assert!(!entry.3, "{:?} goes twice", name);
                            entry.3 = true;
                        }
                    }
                }
                for at in 0..open.len() {
                    let expected = match &open[at].2 {
                        None => at == 0,
                        Some(own) => open[..at].iter().all(|before| {
                            before.2.as_ref().is_none_or(|other| !conflict(own, other))
                        }),
                    };
                    prop_assert_eq!(open[at].3, expected, "{:?}", open[at]);
                }
            }
        }
    }
}
