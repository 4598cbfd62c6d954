//! Machine threads that are parked: what completes for them, and who interrupts them.

use super::{REST, Stepped, pool, sleep};
use crate::{Address, Pool, Thread, Unfinished};

/// Has the caller of `wait` parked behind this thread, which drives the pool until the caller has
/// given up.
fn behind_a_driver(wait: impl FnOnce(&Pool, Thread) -> Result<(), Unfinished> + Send) {
    let (pool, stepped): (Pool, Stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let (other, drives) = (thread.fork(), sleep(&thread));
    std::thread::scope(|scope| {
        let parks = scope.spawn(|| {
            while stepped.rests() == 0 {
                std::thread::yield_now();
            }
            let ended = wait(&pool, other);
            stepped.end(0);
            ended
        });
        assert_eq!(drives.wait(), Ok(()));
        assert_eq!(parks.join().expect("it returns"), Err(Unfinished::Interrupted));
    });
    assert_eq!(stepped.state().drivers.len(), 1, "no two drive the pool");
}

/// Interrupts when it is asked for the third time.
fn third() -> impl FnMut() -> bool {
    let mut asked = 0;
    move || {
        asked += 1;
        asked == 3
    }
}

#[test]
fn code_behind_another_driver_is_interrupted() {
    behind_a_driver(|pool, thread| pool.run_attended(sleep(&thread), third()).map(drop));
}

#[test]
fn tasks_behind_another_driver_are_interrupted() {
    behind_a_driver(|pool, thread| {
        let tasks = pool.tasks();
        tasks.spawn(async move { sleep(&thread).await.expect("it completes") });
        tasks.run_attended(third())
    });
}

/// The driver keeps the seat meanwhile, so it wakes no other driver: it tells each parked thread.
/// Those have let the backend copy what they write, piece by piece.
#[test]
fn a_direct_access_that_another_thread_completes_is_told_to_its_own() {
    let (pool, stepped) = pool();
    stepped.state().direct = Some(Vec::new());
    let thread = pool.thread().expect("a thread");
    let at = Address::new(0, 4096);
    let data = vec![1; 600 << 10];
    let write = |number: usize| {
        // The first, which completes the others, must have the seat before they begin.
        let is_early = |looks: &Vec<u32>| looks.len() < number || looks[0] == 0;
        while stepped.state().direct.as_ref().is_some_and(is_early) {
            std::thread::yield_now();
        }
        let ended = thread.fork().write_from(at, &data);
        let mut state = stepped.state();
        assert!(state.direct_done >= number, "it has completed");
        state.direct_returned += 1;
        ended
    };
    std::thread::scope(|scope| {
        let parked = [1, 2].map(|number| {
            scope.spawn({
                let write = &write;
                move || write(number)
            })
        });
        assert_eq!(thread.read_into(at, &mut [0; 8]), Ok(()));
        for thread in parked {
            assert_eq!(thread.join().expect("it returns"), Ok(()));
        }
    });
    let state = stepped.state();
    for number in [1, 2] {
        let of = state.copies.iter().filter(|(id, _)| id.place() == number);
        let mut copies: Vec<usize> = of.map(|(_, to)| *to).collect();
        copies.dedup();
        // An access that completes meanwhile needs no more of them.
        let all = [256 << 10, 512 << 10, 600 << 10];
        assert!(!copies.is_empty() && all.starts_with(&copies), "{copies:?}");
    }
    assert!(state.copies.iter().all(|(id, _)| id.place() > 0), "the first is a read");
}

/// A thread that drives the pool lends what it writes, and nothing is copied.
#[test]
fn a_write_of_a_thread_that_does_not_park_is_not_copied() {
    let (pool, stepped) = pool();
    {
        let mut state = stepped.state();
        (state.direct, state.direct_returned) = (Some(Vec::new()), 2);
    }
    let thread = pool.thread().expect("a thread");
    assert_eq!(thread.write_from(Address::new(0, 4096), &vec![1; 600 << 10]), Ok(()));
    assert_eq!(stepped.state().copies, []);
}

#[test]
fn what_a_driver_completes_for_a_parked_thread_is_told_to_it() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let (other, drives) = (thread.fork(), sleep(&thread));
    std::thread::scope(|scope| {
        let parks = scope.spawn(|| {
            while stepped.rests() == 0 {
                std::thread::yield_now();
            }
            let handle = sleep(&other);
            let ends = scope.spawn(|| {
                std::thread::sleep(REST * 20);
                stepped.end(1);
            });
            let ended = handle.wait();
            ends.join().expect("it returns");
            stepped.end(0);
            ended
        });
        assert_eq!(drives.wait(), Ok(()));
        assert_eq!(parks.join().expect("it returns"), Ok(()));
    });
    assert_eq!(stepped.state().drivers.len(), 1, "no two drive the pool");
}

#[test]
fn a_wait_that_nobody_interrupts_goes_on_to_its_end() {
    let (pool, stepped) = pool();
    let thread = pool.thread().expect("a thread");
    let tasks = pool.tasks();
    let (other, ends) = (thread.fork(), stepped.clone());
    let code = async {
        let handle = sleep(&thread);
        stepped.end(0);
        handle.await
    };
    assert_eq!(pool.run_attended(code, || false), Ok(Ok(())));
    tasks.spawn(async move {
        let handle = sleep(&other);
        ends.end(1);
        handle.await.expect("it completes");
    });
    assert_eq!(tasks.run_attended(|| false), Ok(()));
}
