//! Restarted nodes: requests for the old life do nothing in the next.

use std::net::SocketAddr;
use std::time::Duration;

use ethermem::{Error, Permissions, Pool, ProcessId, Region, Thread};

use ethermem_node::NodeOptions;
use ethermem_units::Bytes;
use ethermem_wire::clio::Request;

use crate::network::{Mortal, Served};

const RW: Permissions = Permissions::READ_WRITE;
const LEASE: Option<Duration> = Some(Duration::from_secs(1));
/// Within this time a pool has sent keep-alives, and so learned of a restart.
const BEAT: Duration = Duration::from_millis(800);

fn any() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

fn page(thread: &Thread) -> Region {
    thread.alloc(4096, RW).wait().unwrap()
}

/// Restarts the node, and opens another pool whose process and page have the numbers that `thread`
/// and `region` had before.
fn next_life(address: SocketAddr, thread: &Thread, region: &Region) -> (Served, Pool, Region) {
    let node = Served::start(address, LEASE);
    let pool = Pool::open(&node.url()).unwrap();
    loop {
        let other = pool.thread().unwrap();
        if other.process() == thread.process() {
            let data = page(&other);
            assert_eq!(data.address(), region.address());
            return (node, pool, data);
        }
    }
}

#[test]
fn a_lock_that_waits_is_not_tried_in_another_life_of_the_node() {
    let node = Served::start(any(), LEASE);
    let address = node.address;
    let pool = Pool::open(&node.url()).unwrap();
    let (one, two) = (pool.thread().unwrap(), pool.thread().unwrap());
    let region = page(&one);
    region.share(two.process(), RW).wait().unwrap();
    one.lock(region.address()).wait().unwrap();
    let waits = two.lock(region.address());
    // The lock was found taken at least once; then the program pauses.
    for _ in 0..50 {
        pool.step();
    }
    std::thread::sleep(Duration::from_millis(100));
    drop(node);
    let (_node, _other, data) = next_life(address, &two, &region);
    std::thread::sleep(BEAT);
    let taken = waits.wait();
    assert_eq!(data.read(0, 8).wait().unwrap(), [0; 8], "another's memory");
    assert_eq!(taken, Err(Error::Restarted { node: address.to_string() }));
}

#[test]
fn what_is_begun_before_anybody_asks_how_the_last_life_ended_goes_to_no_other() {
    let node = Served::start(any(), LEASE);
    let address = node.address;
    let pool = Pool::open(&node.url()).unwrap();
    let thread = pool.thread().unwrap();
    let region = page(&thread);
    drop(node);
    let (_node, _other, data) = next_life(address, &thread, &region);
    std::thread::sleep(BEAT);
    let written = region.write_from(0, b"nobody's");
    assert_eq!(data.read(0, 8).wait().unwrap(), [0; 8], "another's memory");
    assert_eq!(written, Err(Error::Restarted { node: address.to_string() }));
}

#[test]
fn a_pool_keeps_its_processes_alive_by_the_lease_of_the_new_life() {
    let node = Served::start(any(), None);
    let address = node.address;
    let pool = Pool::open(&node.url()).unwrap();
    let _old = pool.thread().unwrap();
    drop(node);
    let _again = Served::start(address, LEASE);
    let thread = pool.thread().unwrap();
    let region = page(&thread);
    region.write(0, b"still here").wait().unwrap();
    std::thread::sleep(Duration::from_millis(2200));
    assert_eq!(region.read(0, 10).wait().unwrap(), b"still here");
}

/// The pool waits for room for a process, until another client's dead processes expire.
#[test]
fn a_pool_keeps_its_processes_alive_while_it_asks_for_another() {
    let lease = Some(Duration::from_secs(2));
    let node = Served::serve(&NodeOptions { lease, ..NodeOptions::in_clear(Bytes(1 << 20)) });
    let pool = Pool::open(&format!("{}?timeout_ms=4500", node.url())).unwrap();
    let thread = pool.thread().unwrap();
    let region = page(&thread);
    region.write(0, b"still here").wait().unwrap();
    // Another client takes all other processes, and dies.
    let mut other = Mortal::giving_up(node.address, Duration::from_millis(100));
    while other.try_ask(ProcessId(0), Request::CreateProcess).is_ok() {}
    drop(other);
    pool.thread().unwrap();
    assert_eq!(region.read(0, 10).wait().unwrap(), b"still here");
}
