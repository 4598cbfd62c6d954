//! A check whether calls on one word are linearizable (Wing and Gong 1993, with the memory of Lowe
//! 2017).

use std::collections::HashSet;

use ethermem_wire::RmwOperation;

/// A call on a word, with the times of its start and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) called: u64,
    pub(crate) returned: u64,
    /// The operation; `None` is a read.
    pub(crate) operation: Option<RmwOperation>,
    /// The word before, if the call returned it.
    pub(crate) saw: Option<u64>,
}

/// True if the calls have an order in which each sees what the earlier ones left. A call must not
/// come before one that had ended when it was made.
pub(crate) fn is_linearizable(calls: &[Call], first: u64) -> bool {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.called);
    // A state: the word, and the calls that are done: all before `at`, and a set of later ones.
    let mut tried = HashSet::new();
    let mut open = vec![(first, 0, Vec::<usize>::new())];
    while let Some((word, at, done)) = open.pop() {
        if at == calls.len() {
            return true;
        }
        // A call that ended before another began comes before it.
        let rest = (at..calls.len()).filter(|index| !done.contains(index));
        let bound = rest.clone().map(|index| calls[index].returned).min().expect("one is left");
        for index in rest.take_while(|&index| calls[index].called <= bound) {
            let call = calls[index];
            if call.saw.is_some_and(|saw| saw != word) {
                continue;
            }
            let after = call.operation.map_or(word, |operation| operation.apply(word));
            let mut done = done.clone();
            done.push(index);
            done.sort_unstable();
            let mut at = at;
            while done.first() == Some(&at) {
                done.remove(0);
                at += 1;
            }
            let state = (after, at, done);
            if tried.insert(state.clone()) {
                open.push(state);
            }
        }
    }
    calls.is_empty()
}

#[test]
fn the_search_finds_what_cannot_have_been() {
    let add = |called, returned, saw| Call {
        called,
        returned,
        operation: Some(RmwOperation::FetchAndAdd(1)),
        saw: Some(saw),
    };
    let read = |called, returned, saw| Call { operation: None, ..add(called, returned, saw) };
    assert!(is_linearizable(&[], 0));
    assert!(is_linearizable(&[add(0, 5, 1), add(1, 6, 0), read(2, 9, 1)], 0));
    assert!(!is_linearizable(&[add(0, 5, 0), add(1, 6, 0)], 0), "an increment was lost");
    assert!(!is_linearizable(&[add(0, 5, 1), add(6, 7, 0)], 0), "they did not overlap");
    assert!(!is_linearizable(&[add(0, 1, 0), read(2, 3, 0)], 0), "a read of the past");
    let swap = |called, returned, new| Call {
        operation: Some(RmwOperation::Swap(new)),
        saw: None,
        ..add(called, returned, 0)
    };
    // A write that was replaced must not come back.
    let back = [swap(0, 9, 1), read(1, 2, 1), swap(3, 4, 2), read(5, 6, 2), read(7, 8, 1)];
    assert!(!is_linearizable(&back, 0));
}
