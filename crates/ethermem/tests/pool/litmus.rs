//! What two threads may see of each other's writes (section 3.1 of Clio's paper), on every pool.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Barrier, Mutex};

use ethermem::{Permissions, Pool, Ps, Region};

use crate::{every_pool, remote_urls};

const RW: Permissions = Permissions::READ_WRITE;

fn word(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Two words, on different memory nodes if there are several.
fn words(pool: &Pool) -> [Region; 2] {
    let thread = pool.thread().unwrap();
    [(); 2].map(|()| thread.alloc(8, RW).wait().unwrap())
}

/// A length at which the last bytes arrive well after a word that is sent behind them.
const LONG: u64 = 64 << 10;

/// The end of long data, as a reader finds it once it sees the flag behind the data.
fn seen_with_the_flag(pool: &Pool, is_released: bool) -> u64 {
    let thread = pool.thread().unwrap();
    let data = thread.alloc(LONG, RW).wait().unwrap();
    let flag = data.thread().alloc(8, RW).wait().unwrap();
    let (writer, reader) = (thread.fork_on(0).unwrap(), thread.fork());
    let (to_data, to_flag) = (data.by(&writer), flag.by(&writer));
    let (of_data, of_flag) = (data.by(&reader), flag.by(&reader));
    let seen = Rc::new(Cell::new(0));
    let tasks = pool.tasks();
    tasks.spawn(async move {
        to_data.write(0, &[1; LONG as usize]).detach();
        if is_released {
            writer.release().await.unwrap();
        }
        to_flag.write(0, &1_u64.to_le_bytes()).await.unwrap();
    });
    let found = seen.clone();
    tasks.spawn(async move {
        while word(&of_flag.read(0, 8).await.unwrap()) == 0 {
            reader.sleep(Ps::from_ns(50)).await.unwrap();
        }
        found.set(word(&of_data.read(LONG - 8, 8).await.unwrap()));
    });
    tasks.run();
    seen.get()
}

const ONES: u64 = u64::from_le_bytes([1; 8]);

/// Message passing: a reader that sees the flag sees the data, if the writer releases before the
/// flag.
#[test]
fn a_flag_behind_a_release_is_seen_after_the_data() {
    for pool in every_pool() {
        assert_eq!(seen_with_the_flag(&pool, true), ONES, "{pool:?}");
    }
}

/// Message passing without the release, where the fabric takes time: the flag arrives before the
/// data.
#[test]
fn a_flag_alone_may_be_seen_before_the_data() {
    let pool = Pool::open("sim:edm?nodes=6").unwrap();
    assert_eq!(seen_with_the_flag(&pool, false), 0);
}

/// Store buffering: with a fence between its write and its read, at most one thread misses the
/// other's.
#[test]
fn with_fences_not_both_miss_the_others_write() {
    for pool in every_pool() {
        for skew in 0..8 {
            let [x, y] = words(&pool);
            let seen = Rc::new(RefCell::new(Vec::new()));
            let tasks = pool.tasks();
            for (mine, others, delay) in [(&x, &y, 0), (&y, &x, skew * 40)] {
                let thread = x.thread().fork();
                let (mine, others) = (mine.by(&thread), others.by(&thread));
                let seen = seen.clone();
                tasks.spawn(async move {
                    thread.sleep(Ps::from_ns(delay)).await.unwrap();
                    mine.write(0, &1_u64.to_le_bytes()).detach();
                    thread.fence().await.unwrap();
                    let found = word(&others.read(0, 8).await.unwrap());
                    seen.borrow_mut().push(found);
                });
            }
            tasks.run();
            assert_ne!(*seen.borrow(), [0, 0], "{pool:?} {skew}");
        }
    }
}

/// Store buffering without a fence, where the fabric takes time: both may miss, and some do. So the
/// fence above prevents it.
#[test]
fn without_fences_both_may_miss() {
    let pool = Pool::open("sim:edm?nodes=6").unwrap();
    let [x, y] = words(&pool);
    let seen = Rc::new(RefCell::new(Vec::new()));
    let tasks = pool.tasks();
    for (mine, others) in [(&x, &y), (&y, &x)] {
        let thread = x.thread().fork();
        let (mine, others, seen) = (mine.by(&thread), others.by(&thread), seen.clone());
        tasks.spawn(async move {
            mine.write(0, &1_u64.to_le_bytes()).detach();
            let found = word(&others.read(0, 8).await.unwrap());
            seen.borrow_mut().push(found);
        });
    }
    tasks.run();
    assert_eq!(*seen.borrow(), [0, 0]);
}

/// A counter that each task reads and writes back, under a lock.
#[test]
fn a_counter_under_a_lock_loses_nothing() {
    const ROUNDS: u64 = 20;
    for pool in every_pool() {
        let [lock, counter] = words(&pool);
        let tasks = pool.tasks();
        let (computes, _) = pool.nodes();
        let clients = 4;
        for client in 0..clients {
            let thread = lock.thread().fork_on(client % computes).unwrap();
            let (lock, counter) = (lock.address(), counter.by(&thread));
            tasks.spawn(async move {
                for _ in 0..ROUNDS {
                    thread.lock(lock).await.unwrap();
                    let count = word(&counter.read(0, 8).await.unwrap());
                    counter.write(0, &(count + 1).to_le_bytes()).detach();
                    thread.unlock(lock).await.unwrap();
                }
            });
        }
        tasks.run();
        let count = word(&counter.read(0, 8).wait().unwrap());
        assert_eq!(count, u64::from(clients) * ROUNDS, "{pool:?}");
    }
}

/// The counter under a lock with machine threads, as in Clio's Figure 2.
#[test]
fn a_counter_under_a_lock_loses_nothing_between_machine_threads() {
    let real = remote_urls().iter().map(|url| (url.as_str(), 500));
    for (url, rounds) in [("local:", 2_000), ("sim:edm?nodes=2", 100)].into_iter().chain(real) {
        let pool = Pool::open(url).unwrap();
        let [lock, counter] = words(&pool);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                let thread = lock.thread().fork();
                let (lock, counter) = (lock.address(), counter.by(&thread));
                scope.spawn(move || {
                    for _ in 0..rounds {
                        thread.lock(lock).wait().unwrap();
                        let count = word(&counter.read(0, 8).wait().unwrap());
                        counter.write(0, &(count + 1).to_le_bytes()).wait().unwrap();
                        thread.unlock_wait(lock).unwrap();
                    }
                });
            }
        });
        assert_eq!(word(&counter.read(0, 8).wait().unwrap()), 3 * rounds, "{url}");
    }
}

/// Pools without virtual time, on which machine threads interleave freely.
fn pools_of_the_machine() -> impl Iterator<Item = (&'static str, u64)> {
    std::iter::once(("local:", 2_000)).chain(remote_urls().iter().map(|url| (url.as_str(), 200)))
}

/// Message passing between machine threads: data, a release, a flag; round after round.
#[test]
fn machine_threads_see_the_data_once_they_see_the_flag() {
    for (url, rounds) in pools_of_the_machine() {
        let pool = Pool::open(url).unwrap();
        let thread = pool.thread().unwrap();
        let data = thread.alloc(4096, RW).wait().unwrap();
        let [flag, taken] = [(); 2].map(|()| thread.alloc(8, RW).wait().unwrap());
        let early = AtomicU64::new(0);
        let until = |region: &Region, round: u64| {
            while word(&region.read(0, 8).wait().unwrap()) < round {
                std::thread::yield_now();
            }
        };
        std::thread::scope(|scope| {
            let writer = thread.fork();
            let (to_data, to_flag, is_taken) =
                (data.by(&writer), flag.by(&writer), taken.by(&writer));
            scope.spawn(move || {
                for round in 1..=rounds {
                    to_data.write(0, &round.to_le_bytes().repeat(512)).detach();
                    writer.release().wait().unwrap();
                    to_flag.write(0, &round.to_le_bytes()).wait().unwrap();
                    until(&is_taken, round);
                }
            });
            let reader = thread.fork();
            let early = &early;
            let (of_data, of_flag, take) = (data.by(&reader), flag.by(&reader), taken.by(&reader));
            scope.spawn(move || {
                for round in 1..=rounds {
                    until(&of_flag, round);
                    let found = of_data.read(0, 4096).wait().unwrap();
                    let whole = found == round.to_le_bytes().repeat(512);
                    early.fetch_add(u64::from(!whole), Ordering::Relaxed);
                    take.write(0, &round.to_le_bytes()).wait().unwrap();
                }
            });
        });
        assert_eq!(early.into_inner(), 0, "{url}: of {rounds} rounds");
    }
}

/// Store buffering between machine threads, which begin each round together.
#[test]
fn with_fences_not_both_machine_threads_miss_the_others_write() {
    for (url, rounds) in pools_of_the_machine() {
        let pool = Pool::open(url).unwrap();
        let words = words(&pool);
        let (together, missed) = (Barrier::new(2), AtomicU64::new(0));
        let seen = [(); 2].map(|()| Mutex::new(0));
        std::thread::scope(|scope| {
            for me in 0..2 {
                let thread = words[0].thread().fork();
                let (mine, others) = (words[me].by(&thread), words[1 - me].by(&thread));
                let (together, seen, missed) = (&together, &seen, &missed);
                scope.spawn(move || {
                    for round in 1..=rounds {
                        together.wait();
                        mine.write(0, &round.to_le_bytes()).detach();
                        thread.fence().wait().unwrap();
                        *seen[me].lock().unwrap() = word(&others.read(0, 8).wait().unwrap());
                        together.wait();
                        if me == 0 {
                            let found = [0, 1].map(|one| *seen[one].lock().unwrap());
                            missed.fetch_add(u64::from(!found.contains(&round)), Ordering::Relaxed);
                        }
                    }
                });
            }
        });
        assert_eq!(missed.into_inner(), 0, "{url}: of {rounds} rounds");
    }
}

/// Atomics of many nodes on one word: each gets a distinct number.
#[test]
fn every_ticket_is_given_once() {
    for pool in every_pool() {
        let [tickets, _] = words(&pool);
        let (computes, _) = pool.nodes();
        let taken = Rc::new(RefCell::new(BTreeSet::new()));
        let tasks = pool.tasks();
        for client in 0..6 {
            let thread = tickets.thread().fork_on(client % computes).unwrap();
            let (word, taken) = (tickets.address(), taken.clone());
            tasks.spawn(async move {
                for _ in 0..10 {
                    let ticket = thread.fetch_add(word, 1).await.unwrap();
                    assert!(taken.borrow_mut().insert(ticket), "{ticket} twice");
                }
            });
        }
        tasks.run();
        assert_eq!(taken.borrow().len(), 60, "{pool:?}");
    }
}
