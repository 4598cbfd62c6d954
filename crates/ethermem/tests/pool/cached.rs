//! A pool with a cache on a real memory node: clients that are killed, nodes that restart or fall
//! silent, and machine threads.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ethermem::{Address, Error, Permissions, Pool, ProcessId, Region};
use ethermem_clio::transport::Completed;
use ethermem_wire::clio::Request;

use crate::network::{Mortal, Served};

const RW: Permissions = Permissions::READ_WRITE;
const LEASE: Option<Duration> = Some(Duration::from_secs(1));
/// Set in the process that is killed: the URL of its pool.
const CLIENT: &str = "ETHERMEM_TEST_CACHED_CLIENT";
/// What the client has fenced, and what it has only written.
const FENCED: u64 = 8192;
const WRITTEN: u64 = 512;

/// Bytes at the node, asked for by their process's number, past every cache.
fn at_node(address: SocketAddr, process: ProcessId, from: Address, bytes: u64) -> Vec<u8> {
    let mut client = Mortal::new(address);
    let read = Request::Read { address: from.0, bytes: bytes as u32 };
    let Ok(Completed::Bytes(bytes)) = client.try_ask(process, read) else {
        panic!("the process is there")
    };
    bytes.to_vec()
}

fn pattern(round: u8, bytes: u64) -> Vec<u8> {
    (0..bytes).map(|at| (at % 251) as u8 ^ round).collect()
}

/// The client: writes and fences, writes more, says so, and waits to be killed.
#[test]
#[ignore = "the client of the next test"]
fn writes_until_it_is_killed() {
    let Ok(url) = std::env::var(CLIENT) else { return };
    let pool = Pool::open(&url).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(2 * FENCED, RW).wait().unwrap();
    for round in 1..=3 {
        region.write(0, &pattern(round, FENCED / 2)).wait().unwrap();
        region.write(FENCED / 2, &pattern(round, FENCED / 2)).wait().unwrap();
        thread.fence().wait().unwrap();
    }
    region.write_from(FENCED, &pattern(9, WRITTEN)).unwrap();
    let mut read = vec![0; WRITTEN as usize];
    region.read_into(FENCED, &mut read).unwrap();
    assert_eq!(read, pattern(9, WRITTEN));
    println!("written {} {}", thread.process().0, region.address().0);
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn a_client_that_is_killed_loses_only_what_it_wrote_after_its_fence() {
    let node = Served::new(None);
    for form in ["cache_bytes=64KiB", "cache_bytes=4KiB&line_bytes=1KiB"] {
        let mut client = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "cached::writes_until_it_is_killed", "--nocapture"])
            .env(CLIENT, format!("{}?{form}", node.url()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let said = lines.find_map(|line| Some(line.unwrap().split_once("written ")?.1.to_owned()));
        let said = said.expect("the client wrote");
        let (process, address) = said.split_once(' ').unwrap();
        let process = ProcessId(process.parse().unwrap());
        let address = Address(address.parse().unwrap());
        client.kill().unwrap();
        client.wait().unwrap();
        let found = at_node(node.address, process, address, 2 * FENCED);
        let halves = [pattern(3, FENCED / 2), pattern(3, FENCED / 2)].concat();
        assert!(found[..FENCED as usize] == halves, "{form}: what was fenced is there");
        let later = &found[FENCED as usize..][..WRITTEN as usize];
        assert!(later.iter().all(|byte| *byte == 0), "{form}: its last write never left it");
    }
}

/// Waits until an access of bytes that are in the cache fails.
fn until_refused(region: &Region, expected: &[u8]) -> Error {
    let began = Instant::now();
    loop {
        let mut read = vec![0; expected.len()];
        match region.read_into(0, &mut read) {
            Ok(()) => assert_eq!(read, expected, "a hit is what was written"),
            Err(error) => return error,
        }
        assert!(began.elapsed() < Duration::from_secs(30), "a hit for ever");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_node_that_is_killed_ends_the_hits_and_one_that_restarts_gives_nothing_stale() {
    let node = Served::start("127.0.0.1:0".parse().unwrap(), LEASE);
    let (address, url) = (node.address, node.url());
    let pool = Pool::open(&format!("{url}?cache_bytes=64KiB&timeout_ms=300")).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    region.write(0, b"before").wait().unwrap();
    thread.fence().wait().unwrap();
    assert_eq!(at_node(address, thread.process(), region.address(), 6), b"before");
    region.write(100, b"never fenced").wait().unwrap();
    drop(node);
    let silent = until_refused(&region, b"before");
    assert!(matches!(silent, Error::NoAnswer { .. }), "{silent}");
    assert!(matches!(thread.release().wait(), Err(Error::NoAnswer { .. })));
    let _again = Served::start(address, LEASE);
    let restarted = Error::Restarted { node: address.to_string() };
    assert_eq!(region.read_into(0, &mut [0; 6]), Err(restarted.clone()));
    assert_eq!(region.read(0, 6).wait(), Err(restarted.clone()));
    assert_eq!(region.write_from(0, b"x"), Err(restarted.clone()));
    assert_eq!(thread.release().wait(), Err(restarted.clone()), "what was written is lost");
    assert_eq!(thread.fence().wait(), Err(restarted));
    // The pool goes on with the new life.
    let fresh = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    fresh.write(0, b"after").wait().unwrap();
    assert_eq!(fresh.read(0, 6).wait().unwrap(), b"after\0");
}

/// No thread waits and nothing misses: the pool's own keep-alives must notice.
#[test]
fn a_restart_that_no_access_finds_ends_the_hits() {
    let node = Served::start("127.0.0.1:0".parse().unwrap(), LEASE);
    let address = node.address;
    let pool = Pool::open(&format!("{}?cache_bytes=64KiB", node.url())).unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    region.write_from(0, b"old").unwrap();
    drop(node);
    let _again = Served::start(address, LEASE);
    let error = until_refused(&region, b"old");
    assert_eq!(error, Error::Restarted { node: address.to_string() });
}

/// Each of three machine threads owns every third word, so that all share all lines.
#[test]
fn machine_threads_share_the_lines_of_a_small_cache() {
    const WORDS: u64 = 4096;
    const ROUNDS: u64 = 4000;
    let node = Served::new(None);
    let pool = Pool::open(&format!("{}?cache_bytes=8KiB&line_bytes=128", node.url())).unwrap();
    let region = pool.thread().unwrap().alloc(WORDS * 8, RW).wait().unwrap();
    std::thread::scope(|scope| {
        for machine in 0..3_u64 {
            let mine = region.by(&region.thread().fork());
            scope.spawn(move || {
                let mut known = vec![0_u64; WORDS as usize];
                let mut seed = machine + 1;
                for round in 0..ROUNDS {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(machine | 1);
                    let word = (seed >> 33) % (WORDS / 3) * 3 + machine;
                    let (at, known) = (word * 8, &mut known[word as usize]);
                    let mut found = [0; 8];
                    mine.read_into(at, &mut found).unwrap();
                    assert_eq!(u64::from_le_bytes(found), *known, "round {round} of {machine}");
                    if round % 7 == 0 {
                        let before = mine.thread().fetch_add(mine.at(at), 1).wait().unwrap();
                        assert_eq!(before, *known, "round {round} of {machine}");
                        *known += 1;
                    } else {
                        *known = seed;
                        mine.write_from(at, &seed.to_le_bytes()).unwrap();
                    }
                    if round % 500 == 0 {
                        mine.thread().release().wait().unwrap();
                        let (process, from) = (mine.thread().process(), mine.at(at));
                        let durable = at_node(node.address, process, from, 8);
                        assert_eq!(durable, known.to_le_bytes(), "round {round} of {machine}");
                    }
                }
            });
        }
    });
    region.thread().fence().wait().unwrap();
    let at = |from| at_node(node.address, region.thread().process(), region.at(from), 4096);
    for from in (0..WORDS * 8).step_by(4096) {
        assert_eq!(region.read(from, 4096).wait().unwrap(), at(from));
    }
}

/// A part of a region is neither shared nor freed, and nothing that was written is lost by trying.
#[test]
fn a_part_that_is_not_shared_or_freed_keeps_what_was_written_beside_it() {
    let node = Served::new(None);
    let pool = Pool::open(&format!("{}?cache_bytes=4KiB", node.url())).unwrap();
    let (thread, other) = (pool.thread().unwrap(), pool.thread().unwrap());
    for frees in [false, true] {
        let region = thread.alloc(4096, RW).wait().unwrap();
        region.write(0, &pattern(1, 512)).wait().unwrap();
        let part = thread.region(region.at(64), 64);
        let refused =
            if frees { part.free().wait() } else { part.share(other.process(), RW).wait() };
        assert!(refused.is_err(), "{refused:?}");
        assert_eq!(region.read(0, 512).wait().unwrap(), pattern(1, 512), "frees: {frees}");
    }
}

#[test]
fn a_pool_with_a_cache_closes_with_everything_written() {
    let node = Served::new(None);
    let pool = Pool::open(&format!("{}?cache_bytes=1MiB&line_bytes=4KiB", node.url())).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(256 << 10, RW).wait().unwrap();
    for at in (0..256_u64 << 10).step_by(4096) {
        region.write(at, &pattern(at as u8, 4096)).wait().unwrap();
    }
    let before = node.published.lock().unwrap().node.requests;
    pool.close().unwrap();
    std::thread::sleep(Duration::from_millis(250));
    let after = node.published.lock().unwrap().node.requests;
    assert!(after >= before + 64, "64 writes of 4 KiB, and the end: {before}, {after}");
}

/// Bytes of this process that are in memory.
fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

#[test]
fn the_largest_cache_takes_memory_only_as_lines_come() {
    let node = Served::new(None);
    let before = resident_bytes();
    let pool = Pool::open(&format!("{}?cache_bytes=1GiB", node.url())).unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    region.write_from(1, b"one line").unwrap();
    assert_eq!(region.read(1, 8).wait().unwrap(), b"one line");
    // Its arrays have 1.4 GiB. Other tests of this program run meanwhile, and need less.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 512 << 20, "{grown} B");
}
