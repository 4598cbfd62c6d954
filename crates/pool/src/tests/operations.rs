//! The results of operations: each is there once, in order, and leaves nothing behind.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use ethermem_units::Ps;

use super::{NOW, Quiet, pool, pool_with, sleep};
use crate::{Address, Error, Facts, LockWords, Op, Permissions, ProcessId, Segment};

/// Longer than a busy machine lets any thread wait.
const HANG: Duration = Duration::from_secs(60);

#[derive(Default)]
struct Bell(AtomicU32);

impl Wake for Bell {
    fn wake(self: Arc<Bell>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn address(page: u64) -> Address {
    Address::new(0, page * 4096)
}

/// A program that drops handles for days must not grow.
#[test]
fn a_dropped_handle_gives_its_place_back() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    for round in 0..8 {
        let mut handle = sleep(&thread);
        match round % 3 {
            // Dropped while it is open, when it has completed, and when its result was taken.
            0 => drop(handle),
            1 => {
                stepped.end(round);
                assert!(pool.step());
                drop(handle);
                continue;
            }
            _ => {
                stepped.end(round);
                assert!(pool.step());
                assert_eq!(handle.poll_result(), Some(Ok(())));
                continue;
            }
        }
        stepped.end(round);
        assert!(pool.step());
    }
    assert_eq!(stepped.places(), [0; 8]);
    assert!(!pool.step(), "nothing is in flight");
}

#[test]
fn a_completion_wakes_the_waker_of_the_last_poll_once() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let mut handle = sleep(&thread);
    let bells = [Arc::new(Bell::default()), Arc::new(Bell::default())];
    for bell in &bells {
        let waker = Waker::from(bell.clone());
        let polled = Pin::new(&mut handle).poll(&mut Context::from_waker(&waker));
        assert!(polled.is_pending());
    }
    assert_eq!(format!("{handle:?}"), "Pending(under way)");
    // A look at the result does not replace the waker.
    assert_eq!(handle.poll_result(), None);
    stepped.end(0);
    assert!(pool.step());
    assert_eq!(bells.map(|bell| bell.0.load(Ordering::Relaxed)), [0, 1]);
    assert_eq!(handle.poll_result(), Some(Ok(())));
    assert_eq!(format!("{handle:?}"), "Pending(ended)");
}

/// Code that has waited for something meanwhile is polled again before it is told of a stall.
#[test]
fn a_completion_between_two_looks_is_no_stall() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let mut polls = 0;
    let waits_within = poll_fn(|_| {
        polls += 1;
        if polls == 2 {
            let handle = sleep(&thread);
            stepped.end(0);
            handle.wait().expect("it completes");
        }
        if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
    });
    assert_eq!(pool.try_run(waits_within), Ok(()));
}

#[test]
fn what_a_completion_lets_go_begins_at_once_and_in_order() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let mut first = thread.write(address(1), &[1; 8]);
    let mut second = thread.write(address(1), &[2; 8]);
    let mut fence = thread.fence();
    let mut third = thread.read(address(1), 8);
    let mut release = thread.release();
    // The fence completes at once when it begins, and so lets the release go.
    assert_eq!(stepped.places().len(), 1, "all others are held");
    stepped.end(0);
    assert!(pool.step());
    assert_eq!(first.poll_result(), Some(Ok(())));
    assert_eq!((second.poll_result(), fence.poll_result()), (None, None));
    assert_eq!(stepped.places().len(), 2);
    stepped.end(1);
    assert!(pool.step());
    assert_eq!((second.poll_result(), fence.poll_result()), (Some(Ok(())), Some(Ok(()))));
    assert_eq!((third.poll_result(), release.poll_result()), (None, None));
    stepped.end(2);
    assert!(pool.step());
    assert_eq!(third.poll_result(), Some(Ok(vec![2; 8])));
    assert_eq!(release.poll_result(), Some(Ok(())));
    assert!(matches!(stepped.state().begun[2].1, Op::Read(_)));
    assert!(!pool.step());
}

#[test]
fn an_operation_that_completes_at_once_beside_others_holds_nothing_up() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let mut write = thread.write(address(1), &[1; 8]);
    let mut region = thread.alloc_on(1, 64, Permissions::READ_WRITE);
    let found = region.poll_result().expect("it completed").expect("memory");
    assert_eq!(found.address().memory(), 1);
    // Its place is free again.
    let mut sleeps = sleep(&thread);
    assert_eq!(stepped.places(), [0, 1]);
    let mut release = thread.release();
    stepped.end(0);
    stepped.end(1);
    assert!(pool.step());
    assert_eq!((write.poll_result(), sleeps.poll_result()), (Some(Ok(())), Some(Ok(()))));
    assert_eq!(release.poll_result(), Some(Ok(())), "no barrier waits for what has completed");
}

#[test]
fn each_thread_locks_by_a_word_of_its_own() {
    let words = |lock_words| {
        let (pool, stepped) = pool_with(Facts { lock_words, ..Facts::new(3, 2) });
        let first = pool.thread().expect("a thread");
        let threads = [first.clone(), first.fork(), pool.thread().expect("a thread")];
        for thread in &threads {
            thread.lock(address(1)).detach();
        }
        let holder = |op: &Op| if let Op::Lock { holder, .. } = op { *holder } else { 0 };
        let holders: Vec<u64> = stepped.state().begun.iter().map(|(_, op)| holder(op)).collect();
        holders
    };
    assert_eq!(words(LockWords::Thread), [1, 2, 3]);
    let both = [1 << 32 | 1, 1 << 32 | 2, 2 << 32 | 3];
    assert_eq!(words(LockWords::ProcessAndThread), both);
}

#[test]
fn nodes_are_taken_in_turn_and_none_is_beyond_the_last() {
    let (pool, _) = pool();
    let threads: Vec<_> = (0..4).map(|_| pool.thread().expect("a thread")).collect();
    let taken = threads.iter().map(|thread| (thread.process(), thread.compute()));
    let expected =
        [(1, 0), (2, 1), (3, 2), (4, 0)].map(|(process, node)| (ProcessId(process), node));
    assert!(taken.eq(expected));
    let refused = |allowed: &str, node| Error::NoSuchNode { node, allowed: allowed.to_owned() };
    assert_eq!(pool.thread_on(2).map(|thread| thread.compute()), Ok(2));
    let beyond = pool.thread_on(3).map(drop);
    assert_eq!(beyond, Err(refused("compute nodes 0 to 2", 3)));
    let memory = |node| {
        let region = threads[0].alloc_on(node, 8, Permissions::READ_WRITE);
        region.wait().map(|region| region.address().memory())
    };
    assert_eq!([memory(1), memory(2)], [Ok(1), Err(refused("memory nodes 0 to 1", 2))]);
    let turn = || threads[1].alloc(8, Permissions::READ_WRITE).wait().expect("memory");
    assert_eq!([turn(), turn(), turn()].map(|region| region.address().memory()), [0, 1, 0]);
}

#[test]
fn an_offload_is_refused_by_name_only_where_its_nodes_are_in_this_program() {
    let named = |runs_offloads, name: &str, at| {
        let (pool, stepped) = pool_with(Facts { runs_offloads, ..Facts::new(3, 2) });
        let thread = pool.thread().expect("a thread");
        let mut handle = thread.offload(name, at, &[], &[Segment { address: at, bytes: 8 }]);
        let refused = handle.poll_result().map(|result| result.map(drop));
        (refused, stepped.state().begun.len())
    };
    let known = ethermem_offload::built_in()[0].0;
    let unmapped = |address| Some(Err(Error::Unmapped { address, bytes: 0 }));
    let last = Address::new(1, 4096);
    let beyond = Address::new(2, 4096);
    assert_eq!(named(true, known, last), (None, 1));
    assert_eq!(named(false, known, last), (None, 1));
    assert_eq!(named(false, "nothing", last), (None, 1), "the node knows it, or refuses it");
    assert_eq!(named(true, known, beyond), (unmapped(beyond), 0));
    assert_eq!(named(true, known, Address::NULL), (unmapped(Address::NULL), 0));
    let (refused, begun) = named(true, "nothing", last);
    assert!(matches!(refused, Some(Err(Error::NoSuchOffload { name, .. })) if name == "nothing"));
    assert_eq!(begun, 0);
}

/// A node ends the processes of a silent client; a program that computes must not lose its memory.
#[test]
fn a_network_is_tended_while_no_thread_waits() {
    let network = Some(Arc::new(Quiet) as _);
    let (pool, stepped) = pool_with(Facts { network, ..Facts::new(1, 1) });
    let (tended, is_tended) = mpsc::channel();
    stepped.state().tended = Some(tended);
    for _ in 0..2 {
        is_tended.recv_timeout(HANG).expect("it is tended again and again");
    }
    drop(pool);
}

#[test]
fn what_the_backend_finds_wrong_at_its_end_is_said_by_the_close() {
    let (pool, stepped) = pool();
    let wrong = Error::Violated { what: "bytes".to_owned() };
    stepped.state().end = Some(wrong.clone());
    assert_eq!(pool.close(), Err(wrong));
}

#[test]
fn an_access_that_takes_no_time_overtakes_nothing() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let (at, mut read) = (Address::new(1, 4096), [0; 8]);
    assert_eq!(thread.read_now(at, &mut read), Some(Ok(())));
    assert_eq!((read, thread.fetch_add(at, 1).poll_result()), ([9; 8], Some(Ok(7))));
    let mut write = thread.write(at, &[1; 8]);
    assert_eq!(thread.read_now(at, &mut read), None);
    let mut add = thread.fetch_add(at, 1);
    assert_eq!((add.poll_result(), stepped.places().len()), (None, 1));
    for index in [0, 1] {
        stepped.end(index);
        assert!(pool.step());
    }
    assert_eq!((write.poll_result(), add.poll_result()), (Some(Ok(())), Some(Ok(1))));
    assert_eq!(thread.read_now(at, &mut read), Some(Ok(())));
}

#[test]
fn a_sleep_is_counted_from_now() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    sleep(&thread).detach();
    assert_eq!((pool.now(), thread.now()), (NOW, NOW));
    assert!(matches!(stepped.state().begun[0].1, Op::Sleep(until) if until == NOW + Ps(1)));
}

#[test]
fn an_offload_is_the_one_that_was_registered_under_its_name() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let built_in = ethermem_offload::built_in();
    let [first, second] = [0, 1].map(|at| built_in[at].1.clone());
    pool.register_once("mine", first.clone());
    pool.register_once("mine", second.clone());
    let ask = || thread.offload("mine", address(1), &[], &[]).detach();
    ask();
    pool.register("mine", second.clone());
    ask();
    for (at, expected) in [first, second].iter().enumerate() {
        let Op::Offload { offload: Some(found), .. } = &stepped.state().begun[at].1 else {
            unreachable!("it was asked for")
        };
        assert!(Arc::ptr_eq(found, expected), "{at}");
    }
}
