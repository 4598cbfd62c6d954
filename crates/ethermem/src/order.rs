//! What of a thread's operations must wait for which (section 3.1 of Clio's paper).

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasherDefault, DefaultHasher};

use smallvec::{SmallVec, smallvec};

use crate::node::PAGE_BYTES;
use crate::world::OpId;

/// A thread's number for an operation of its own: later ones are larger.
pub(crate) type Sequence = u64;

/// What an operation touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Touched {
    /// First and last page, of each part.
    pub(crate) pages: SmallVec<[(u64, u64); 1]>,
    /// Whether it changes them.
    pub(crate) writes: bool,
}

impl Touched {
    /// So many bytes from an address on.
    pub(crate) fn bytes(address: u64, bytes: u64, writes: bool) -> Touched {
        let last = address.saturating_add(bytes.max(1) - 1);
        Touched { pages: smallvec![(address / PAGE_BYTES, last / PAGE_BYTES)], writes }
    }
}

/// The operations of one thread that are not done, and which of them may go on.
///
/// On each page that is in use they form a queue. One may go when in each of its queues nothing
/// that writes is before it, and nothing at all if it writes itself.
#[derive(Debug, Default)]
pub(crate) struct Tracker {
    next: Sequence,
    open: BTreeSet<Sequence>,
    queues: HashMap<u64, VecDeque<Entry>, BuildHasherDefault<DefaultHasher>>,
    /// Of each operation that may not go: in how many queues it waits.
    waiting: HashMap<Sequence, usize, BuildHasherDefault<DefaultHasher>>,
    /// Those that wait for all before them.
    barriers: BTreeMap<Sequence, OpId>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    sequence: Sequence,
    id: OpId,
    writes: bool,
}

impl Tracker {
    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// A new operation, and whether it may go at once.
    pub(crate) fn begin(&mut self, id: OpId, touched: &Touched) -> (Sequence, bool) {
        let sequence = self.next();
        let writes = touched.writes;
        let mut blocked = 0;
        for page in pages(touched) {
            let queue = self.queues.entry(page).or_default();
            let goes = if writes { queue.is_empty() } else { queue.iter().all(|e| !e.writes) };
            blocked += usize::from(!goes);
            queue.push_back(Entry { sequence, id, writes });
        }
        if blocked > 0 {
            self.waiting.insert(sequence, blocked);
        }
        (sequence, blocked == 0)
    }

    /// A new operation that may go when all before it ended, and whether it may at once.
    pub(crate) fn barrier(&mut self, id: OpId) -> (Sequence, bool) {
        let goes = self.is_idle();
        let sequence = self.next();
        if !goes {
            self.barriers.insert(sequence, id);
        }
        (sequence, goes)
    }

    /// An operation that went has ended: those that may go now are added to `ready`, in their
    /// order.
    pub(crate) fn end(&mut self, sequence: Sequence, touched: &Touched, ready: &mut Vec<OpId>) {
        let open = self.open.remove(&sequence);
        debug_assert!(open, "operation {sequence} ended twice");
        let mut go: SmallVec<[(Sequence, OpId); 4]> = SmallVec::new();
        for page in pages(touched) {
            let queue = self.queues.get_mut(&page).expect("a page in use has a queue");
            let before = goes(queue);
            let place = queue.iter().position(|entry| entry.sequence == sequence);
            queue.remove(place.expect("an open operation is in its queues"));
            // It was among those that went, so one fewer of them is left.
            for entry in queue.range(before - 1..goes(queue)) {
                let left = self.waiting.get_mut(&entry.sequence).expect("it did not go yet");
                *left -= 1;
                if *left == 0 {
                    self.waiting.remove(&entry.sequence);
                    go.push((entry.sequence, entry.id));
                }
            }
            if queue.is_empty() {
                self.queues.remove(&page);
            }
        }
        if let Some(barrier) = self.barriers.first_entry()
            && self.open.first() == Some(barrier.key())
        {
            go.push(barrier.remove_entry());
        }
        go.sort_unstable();
        ready.extend(go.into_iter().map(|(_, id)| id));
    }

    fn next(&mut self) -> Sequence {
        let sequence = self.next;
        self.next += 1;
        self.open.insert(sequence);
        sequence
    }
}

/// How many of a queue may go, from its front.
fn goes(queue: &VecDeque<Entry>) -> usize {
    let readers = queue.iter().take_while(|entry| !entry.writes).count();
    if readers == 0 { queue.len().min(1) } else { readers }
}

/// Every page once.
fn pages(touched: &Touched) -> impl Iterator<Item = u64> {
    let mut ranges = touched.pages.clone();
    ranges.sort_unstable();
    let mut next = 0;
    ranges.into_iter().flat_map(move |(first, last)| {
        let from = first.max(next);
        next = next.max(last.saturating_add(1));
        from..=last
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn touched(pages: &[(u64, u64)], writes: bool) -> Touched {
        Touched { pages: SmallVec::from_slice(pages), writes }
    }

    #[test]
    fn readers_go_together_and_a_writer_alone() {
        let mut tracker = Tracker::default();
        let (read, write) = (touched(&[(3, 3)], false), touched(&[(3, 3)], true));
        let goes = |tracker: &mut Tracker, id, what| tracker.begin(id, what);
        let (first, second) = (goes(&mut tracker, 0, &read), goes(&mut tracker, 1, &read));
        let third = goes(&mut tracker, 2, &write);
        let fourth = goes(&mut tracker, 3, &read);
        assert_eq!([first.1, second.1, third.1, fourth.1], [true, true, false, false]);
        let mut ready = Vec::new();
        tracker.end(second.0, &read, &mut ready);
        assert!(ready.is_empty());
        tracker.end(first.0, &read, &mut ready);
        assert_eq!(ready, [2]);
        tracker.end(third.0, &write, &mut ready);
        assert_eq!(ready, [2, 3]);
        tracker.end(fourth.0, &read, &mut ready);
        assert!(tracker.is_idle() && tracker.queues.is_empty() && tracker.waiting.is_empty());
    }

    #[test]
    fn a_page_that_is_named_twice_is_one() {
        let mut tracker = Tracker::default();
        let write = touched(&[(5, 9), (1, 6), (6, 6)], true);
        let (sequence, goes) = tracker.begin(0, &write);
        assert!(goes);
        assert_eq!(tracker.queues.len(), 9);
        tracker.end(sequence, &write, &mut Vec::new());
        assert!(tracker.queues.is_empty());
    }

    #[test]
    fn the_last_page_of_all_is_a_page() {
        let last = Touched::bytes(u64::MAX, 1, true);
        assert_eq!(last.pages[0].0, u64::MAX / PAGE_BYTES);
        assert_eq!(pages(&touched(&[(u64::MAX, u64::MAX)], true)).count(), 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Begin(Touched),
        Barrier,
        /// One of those that go ends.
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
        /// An operation goes as soon as, and not before, all earlier ones that it conflicts with
        /// have ended; a barrier when all before it have.
        #[test]
        fn operations_go_when_those_before_allow(
            steps in proptest::collection::vec(step(), 1..80),
        ) {
            let mut tracker = Tracker::default();
            // By name: number, what it touches (none of a barrier), whether it goes.
            let mut open: Vec<(OpId, Sequence, Option<Touched>, bool)> = Vec::new();
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Begin(touched) => {
                        let (sequence, goes) = tracker.begin(id, &touched);
                        open.push((id, sequence, Some(touched), goes));
                    }
                    Step::Barrier => {
                        let (sequence, goes) = tracker.barrier(id);
                        open.push((id, sequence, None, goes));
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
                            prop_assert!(!entry.3, "{} goes twice", name);
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
