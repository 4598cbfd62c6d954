//! Machine threads that are parked: what completes for them, and who interrupts them.

use super::{Stepped, pool, sleep};
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

/// The driver keeps the seat meanwhile, so that it calls nobody: it tells the parked thread.
#[test]
fn a_direct_access_that_another_thread_completes_is_told_to_its_own() {
    let (pool, stepped) = pool();
    stepped.state().direct = Some(Vec::new());
    let thread = pool.thread().expect("a thread");
    let at = Address::new(0, 4096);
    std::thread::scope(|scope| {
        let parks = scope.spawn(|| {
            while stepped.rests() == 0 {
                std::thread::yield_now();
            }
            let ended = thread.fork().write_from(at, &[1; 8]);
            stepped.state().has_second_returned = true;
            ended
        });
        assert_eq!(thread.read_into(at, &mut [0; 8]), Ok(()));
        assert_eq!(parks.join().expect("it returns"), Ok(()));
    });
}
