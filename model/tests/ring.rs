//! A queue of DFabric between two threads, in every order in which they may go on with at most
//! three preemptions: `crates/dfabric/src/ring.rs` as it is, on loom's atomics.
//!
//! A weaker order of an entry's first word fails here. A weaker order of the consumer's position
//! does not: loom has no loads that see later stores, from which that order protects the consumer.

mod sync {
    /// The tests at the foot of `ring.rs` run here, too.
    pub(crate) use loom::model as check;
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

#[path = "../../crates/dfabric/src/ring.rs"]
mod ring;

use std::sync::Arc;

use loom::sync::atomic::AtomicU64;
use loom::thread;
use ring::{Consumer, ENTRY_WORDS, Producer, PushError, RingMemory};

fn words(depth: usize) -> Arc<Vec<AtomicU64>> {
    Arc::new((0..depth * ENTRY_WORDS + 1).map(|_| AtomicU64::new(0)).collect())
}

/// The words of entry `number`: a mixture of two entries would show.
fn entry(number: u64) -> [u64; ENTRY_WORDS] {
    [number, number + 10, number + 20, number + 30]
}

/// Sends `count` entries through a queue, in every order with at most so many preemptions; `None`:
/// in every order.
fn run(depth: usize, count: u64, preemptions: Option<usize>) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = preemptions;
    model.check(move || {
        let words = words(depth);
        let of_producer = Arc::clone(&words);
        let producer = thread::spawn(move || {
            let memory = RingMemory::new(&of_producer).unwrap();
            let mut producer = Producer::default();
            let mut number = 0;
            while number < count {
                match producer.push(&memory, entry(number)) {
                    Ok(()) => number += 1,
                    Err(PushError::Full) => thread::yield_now(),
                    Err(PushError::Fault(fault)) => panic!("{fault:?}"),
                }
            }
        });
        let memory = RingMemory::new(&words).unwrap();
        let mut consumer = Consumer::default();
        let mut number = 0;
        while number < count {
            match consumer.pop(&memory) {
                Some(taken) => {
                    assert_eq!(taken, entry(number), "each entry comes once, whole, in order");
                    number += 1;
                }
                None => thread::yield_now(),
            }
        }
        producer.join().unwrap();
        assert_eq!(consumer.pop(&memory), None);
    });
}

#[test]
fn a_queue_of_one_entry_reuses_it() {
    run(1, 2, None);
    run(1, 4, Some(3));
}

#[test]
fn a_queue_of_two_entries_over_two_laps() {
    run(2, 5, Some(3));
}
