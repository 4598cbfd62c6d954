//! Checks whether a history of operations is linearizable.

use std::collections::{BTreeMap, BTreeSet};

/// A value, written only once.
pub(crate) type Stamp = u64;

/// An operation on a key, and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Read(Option<Stamp>),
    Put(Stamp),
    Create(Stamp, bool),
    Update(Stamp, bool),
    Delete(bool),
}

impl Seen {
    /// The value after the operation, if its result is possible with the value `before`.
    fn after(self, before: Option<Stamp>) -> Option<Option<Stamp>> {
        let fits = match self {
            Seen::Read(seen) => seen == before,
            Seen::Put(_) => true,
            Seen::Create(_, done) => done == before.is_none(),
            Seen::Update(_, done) | Seen::Delete(done) => done == before.is_some(),
        };
        let after = match self {
            Seen::Put(stamp) | Seen::Create(stamp, true) | Seen::Update(stamp, true) => Some(stamp),
            Seen::Delete(true) => None,
            _ => before,
        };
        fits.then_some(after)
    }
}

/// An operation, with the ranks of its begin and end among all such moments.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Event {
    pub(crate) key: usize,
    pub(crate) begun: u64,
    pub(crate) ended: u64,
    pub(crate) seen: Seen,
}

/// The first key without an order of its operations that respects real time.
pub(crate) fn not_linear(events: &[Event]) -> Option<Vec<Event>> {
    let mut by_key: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
    events.iter().for_each(|event| by_key.entry(event.key).or_default().push(*event));
    by_key.into_values().find(|events| !is_linear(events))
}

fn is_linear(events: &[Event]) -> bool {
    assert!(events.len() <= 128, "{} operations on one key", events.len());
    let all = u128::MAX >> (128 - events.len());
    let mut met = BTreeSet::new();
    let mut open = vec![(0_u128, None)];
    while let Some((done, value)) = open.pop() {
        if done == all {
            return true;
        }
        if !met.insert((done, value)) {
            continue;
        }
        let left = |at: &usize| done & (1 << at) == 0;
        let first_end = (0..events.len()).filter(left).map(|at| events[at].ended).min();
        for at in (0..events.len()).filter(left) {
            if Some(events[at].begun) > first_end {
                continue;
            }
            if let Some(after) = events[at].seen.after(value) {
                open.push((done | 1 << at, after));
            }
        }
    }
    false
}

#[test]
fn what_could_not_have_been_is_found() {
    let event = |begun, ended, seen| Event { key: 0, begun, ended, seen };
    let put = event(0, 1, Seen::Put(7));
    assert!(is_linear(&[put, event(2, 3, Seen::Read(Some(7)))]));
    assert!(!is_linear(&[put, event(2, 3, Seen::Read(None))]));
    // Concurrent operations fit in either order.
    assert!(is_linear(&[event(0, 3, Seen::Put(7)), event(1, 2, Seen::Read(None))]));
    // The value returns to an older one.
    let reads = [event(4, 5, Seen::Read(Some(8))), event(6, 7, Seen::Read(Some(7)))];
    assert!(!is_linear(&[put, event(2, 9, Seen::Put(8)), reads[0], reads[1]]));
    // Both operations created the key.
    let creates = [event(0, 9, Seen::Create(1, true)), event(0, 9, Seen::Create(2, true))];
    assert!(!is_linear(&creates));
}
