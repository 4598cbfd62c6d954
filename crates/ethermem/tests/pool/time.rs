//! Virtual time of a fabric.

use std::cell::RefCell;
use std::rc::Rc;

use ethermem::{Permissions, Pool, Ps};
use ethermem_sim::Kind;
use ethermem_sim::registry::FABRICS;
use ethermem_sim::scenario::{Changes, Scenario};
use ethermem_units::Bytes;

const RW: Permissions = Permissions::READ_WRITE;

/// An operation takes exactly the time that the simulator gives for its message alone. A message
/// has no address, so nothing is cached.
#[test]
fn an_operation_takes_as_long_as_its_message() {
    for fabric in FABRICS {
        let cache = if fabric.name == "cxl-ethernet" { "&cache_bytes=0" } else { "" };
        let url = format!("sim:{}?nodes=2&link_gbps=25&memory_access_ns=50{cache}", fabric.name);
        let pool = Pool::open(&url).unwrap();
        let settings = ["fabric.nodes=2", "fabric.link_gbps=25", "fabric.memory_access_ns=50"];
        let kind = format!("fabric.kind={}", fabric.name);
        let settings = settings.into_iter().chain([kind.as_str()]);
        let settings = settings.map(|setting| setting.parse().unwrap()).collect();
        let changes = Changes { settings, trace: None };
        let config = Scenario::default_with(&changes, &[fabric.name]).unwrap().fabric;
        let thread = pool.thread().unwrap();
        let region = thread.alloc(100_000, RW).wait().unwrap();
        for bytes in [1, 64, 3000] {
            // Effects of the previous message have passed.
            thread.sleep(Ps::from_ns(100_000)).wait().unwrap();
            let before = pool.now();
            let _read = region.read(0, bytes).wait().unwrap();
            let alone = (fabric.alone)(&config, Kind::Read, Bytes(bytes));
            assert_eq!(pool.now() - before, alone, "read {bytes} {url}");
            thread.sleep(Ps::from_ns(100_000)).wait().unwrap();
            let before = pool.now();
            region.write(0, &vec![1; bytes as usize]).wait().unwrap();
            let alone = (fabric.alone)(&config, Kind::Write, Bytes(bytes));
            assert_eq!(pool.now() - before, alone, "write {bytes} {url}");
        }
    }
}

/// The actions of eight clients on eight nodes beside other traffic: times and results of all.
fn story(url: &str) -> Vec<(u64, u64, Ps)> {
    let pool = Pool::open(url).unwrap();
    let owner = pool.thread().unwrap();
    let region = owner.alloc(4096, RW).wait().unwrap();
    let told = Rc::new(RefCell::new(Vec::new()));
    let tasks = pool.tasks();
    for client in 0..8 {
        let thread = owner.fork_on(client).unwrap();
        let (region, told) = (region.by(&thread), told.clone());
        tasks.spawn(async move {
            for round in 0..10 {
                let word = region.at(u64::from(client % 3) * 8);
                let before = thread.fetch_add(word, round).await.unwrap();
                region.write(100 * u64::from(client), &[round as u8; 100]).await.unwrap();
                told.borrow_mut().push((u64::from(client), before, thread.now()));
            }
        });
    }
    tasks.run();
    let told = told.take();
    pool.close().unwrap();
    told
}

#[test]
fn a_run_repeats_byte_for_byte() {
    for fabric in FABRICS {
        let url =
            |seed| format!("sim:{}?nodes=16&load=0.02&message_bytes=64&seed={seed}", fabric.name);
        let first = story(&url(1));
        assert_eq!(first.len(), 80, "{}", fabric.name);
        assert_eq!(first, story(&url(1)), "{}", fabric.name);
        if fabric.name != "ideal" {
            assert_ne!(first, story(&url(2)), "{}: the background has its seed", fabric.name);
        }
    }
}

#[test]
fn other_traffic_slows_a_client() {
    let last = |url| story(url).last().unwrap().2;
    let alone = last("sim:edm?nodes=16");
    let busy = last("sim:edm?nodes=16&load=0.8&message_bytes=4096");
    assert!(busy > alone + Ps::from_ns(500), "{busy} against {alone}");
}

#[test]
fn time_stands_still_between_operations_and_sleeps_pass() {
    let pool = Pool::open("sim:edm?nodes=2").unwrap();
    let thread = pool.thread().unwrap();
    assert_eq!(pool.now(), Ps::ZERO);
    thread.sleep(Ps::from_ns(82)).wait().unwrap();
    assert_eq!(pool.now(), Ps::from_ns(82));
    let local = Pool::open("local:").unwrap();
    let thread = local.thread().unwrap();
    let before = local.now();
    thread.sleep(Ps::from_ns(2_000_000)).wait().unwrap();
    assert!(local.now() - before >= Ps::from_ns(2_000_000));
}

#[test]
fn operations_of_a_thread_overlap() {
    let pool = Pool::open("sim:edm?nodes=2").unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(1 << 20, RW).wait().unwrap();
    let one = {
        let before = pool.now();
        let _read = region.read(0, 64).wait().unwrap();
        pool.now() - before
    };
    let before = pool.now();
    let reads: Vec<_> = (0..32).map(|at| region.read(at * 4096, 64)).collect();
    for read in reads {
        let _read = read.wait().unwrap();
    }
    let all = pool.now() - before;
    assert!(all.0 < 16 * one.0, "32 reads at once took {all}, one {one}");
}

#[test]
#[should_panic(expected = "not of this pool")]
fn waiting_for_something_else_is_said() {
    let pool = Pool::open("sim:edm?nodes=2").unwrap();
    pool.run(std::future::pending::<()>());
}

/// One machine thread may complete what another waits for, between two polls of the other.
#[test]
fn machine_threads_that_wait_at_once_lose_nothing() {
    let pool = Pool::open("local:").unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let thread = pool.thread().unwrap();
            scope.spawn(move || {
                for _ in 0..4_000 {
                    assert_eq!(thread.sleep(Ps::from_ns(5_000)).wait(), Ok(()));
                }
            });
        }
    });
}

/// A program that polls and never waits makes progress by steps, and learns when nothing is in
/// flight.
#[test]
fn steps_let_a_question_be_answered() {
    for url in ["local:", "sim:edm?nodes=2"] {
        let pool = Pool::open(url).unwrap();
        let thread = pool.thread().unwrap();
        let mut sleep = thread.sleep(Ps::from_ns(1000));
        let before = pool.now();
        while sleep.poll_result().is_none() {
            assert!(pool.step(), "{url}: it is under way");
        }
        assert!(pool.now() > before);
        assert!(!pool.step(), "{url}: nothing is");
    }
}
