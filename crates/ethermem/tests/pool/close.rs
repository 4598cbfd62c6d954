//! Closing a pool while its operations are in flight.

use std::time::{Duration, Instant};

use ethermem::{Error, Pool, Ps, Region, Wait};

use super::network::Served;
use super::ring::RW;
use super::{every_pool, remote_urls};

/// Longer than any close takes on a busy machine.
const HANG: Duration = Duration::from_secs(60);

/// The word of a lock that a thread of the pool holds.
fn held(pool: &Pool) -> Region {
    let thread = pool.thread().unwrap();
    let region = thread.alloc(64, RW).wait().unwrap();
    thread.lock(region.address()).wait().unwrap();
    region
}

fn still_waiting(operations: usize, wait: Wait) -> Error {
    Error::StillWaiting { operations, wait, waited_ms: 2000 }
}

#[test]
fn a_lock_that_stays_taken_is_named_by_the_close() {
    let closed = |pool: Pool| {
        let (url, region) = (pool.url().to_owned(), held(&pool));
        let kept = region.thread().fork().lock(region.address());
        let other = region.thread().fork();
        other.lock(region.address()).detach();
        // The write is behind the lock in its thread's order.
        other.write(region.address(), &[1; 8]).detach();
        let began = Instant::now();
        let ended = pool.close();
        assert!(began.elapsed() < HANG, "{url}");
        assert_eq!(ended, Err(still_waiting(2, Wait::Lock(region.address()))), "{url}");
        drop(kept);
    };
    // Each close waits for two seconds.
    std::thread::scope(|scope| {
        for pool in every_pool() {
            scope.spawn(move || closed(pool));
        }
    });
}

/// Every pool in real time.
fn pools_on_the_clock() -> Vec<Pool> {
    let pools = remote_urls().iter().map(String::as_str).chain(["local:"]);
    pools.map(|url| Pool::open(url).unwrap()).collect()
}

#[test]
fn a_sleep_does_not_hold_up_a_close() {
    for pool in pools_on_the_clock() {
        let url = pool.url().to_owned();
        let thread = pool.thread().unwrap();
        thread.sleep(Ps::from_ns(3_600_000_000_000)).detach();
        assert_eq!(pool.close(), Err(still_waiting(1, Wait::Sleep)), "{url}");
    }
}

/// A close by one machine thread lets others drive the pool, which complete what the close waits
/// for.
#[test]
fn a_lock_that_another_machine_thread_gives_back_is_waited_for() {
    for pool in pools_on_the_clock() {
        let (url, region) = (pool.url().to_owned(), held(&pool));
        region.thread().fork().lock(region.address()).detach();
        let closes = std::thread::spawn(move || pool.close());
        std::thread::sleep(Duration::from_millis(100));
        region.thread().unlock_wait(region.address()).unwrap();
        assert_eq!(closes.join().unwrap(), Ok(()), "{url}");
    }
}

#[test]
fn a_dead_node_does_not_hold_up_a_close() {
    let node = Served::new(None);
    let pool = Pool::open(&format!("{}?timeout_ms=300", node.url())).unwrap();
    let region = held(&pool);
    region.thread().fork().lock(region.address()).detach();
    region.thread().fork().write(region.address(), &[1; 8]).detach();
    drop(node);
    let began = Instant::now();
    assert!(matches!(pool.close(), Err(Error::NoAnswer { .. })));
    assert!(began.elapsed() < HANG);
}
