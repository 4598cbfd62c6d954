//! Pools of `ethermem node`, with both ends in processes that are killed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ethermem::{Address, Error, Permissions, Pool, ProcessId};

use crate::node::Running;

const RW: Permissions = Permissions::READ_WRITE;
const WORDS: u64 = 512;
/// Set if this program is to be a client that holds a lock; it contains the URL.
const CLIENT: &str = "ETHERMEM_TEST_CLIENT";
/// Variable with the number of kills of each end.
const KILLS: &str = "ETHERMEM_KILLS";

pub(crate) fn kills() -> u64 {
    std::env::var(KILLS).map_or(3, |count| count.parse().expect("a count"))
}

fn pattern(round: u64) -> Vec<u8> {
    (0..WORDS).flat_map(|at| (round << 32 | (at + 1)).to_le_bytes()).collect()
}

/// A read returns what was written, or an error, whenever the node dies.
#[test]
fn a_node_that_is_killed_is_an_error_and_never_zeros() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let arguments = ["--listen", &listen, "--insecure", "--memory", "1MiB", "--page", "4KiB"];
    let mut node = Running::start_with(&arguments);
    let pool = Pool::open(&format!("udp://{listen}?timeout_ms=300")).unwrap();
    for round in 0..kills() {
        let thread = pool.thread().unwrap();
        let region = thread.alloc(WORDS * 8, RW).wait().unwrap();
        let expected = pattern(round);
        region.write(0, &expected).wait().unwrap();
        // The node dies at a different moment each time.
        let until = Instant::now() + Duration::from_micros(300 + round * 170 % 5_000);
        let killer = std::thread::spawn(move || {
            std::thread::sleep(until.saturating_duration_since(Instant::now()));
            node.kill();
        });
        let error = loop {
            match region.read(0, WORDS * 8).wait() {
                Ok(found) => assert!(found == expected, "round {round}: other bytes"),
                Err(error) => break error,
            }
        };
        assert!(error.is_uncertain(), "round {round}: {error}");
        killer.join().unwrap();
        node = Running::start_with(&arguments);
        let restarted = Error::Restarted { node: listen.clone() };
        assert_eq!(region.read(0, 8).wait(), Err(restarted.clone()), "round {round}");
        assert_eq!(region.write(0, &[1; 8]).wait(), Err(restarted), "round {round}");
    }
}

/// After the lease, its lock passes to the next waiter, who is told; its memory is free.
#[test]
fn a_client_that_is_killed_gives_back_what_it_had() {
    let node = Running::start(&["--memory", "1MiB", "--page", "4KiB", "--lease-s", "1"]);
    let url = format!("udp://{}", node.address());
    let pool = Pool::open(&url).unwrap();
    let thread = pool.thread().unwrap();
    let lock = thread.alloc(8, RW).wait().unwrap();
    for round in 0..kills().min(20) {
        let mut client = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "udp::holds_a_lock_until_it_is_killed", "--nocapture"])
            .env(CLIENT, &url)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(client.stdout.take().unwrap()).lines();
        let mut said = |what: &str| {
            let said = lines
                .by_ref()
                .map(Result::unwrap)
                .find_map(|line| Some(line.split_once(what)?.1.trim().to_owned()));
            said.unwrap_or_else(|| panic!("the client said no {what}"))
        };
        let process: u32 = said("process ").parse().unwrap();
        lock.share(ProcessId(process), RW).wait().unwrap();
        writeln!(client.stdin.take().unwrap(), "{}", lock.address().0).unwrap();
        assert_eq!(said("lock "), "held");
        client.kill().unwrap();
        client.wait().unwrap();
        let address = lock.address();
        let died = Error::OwnerDied { address };
        assert_eq!(thread.lock(address).wait(), Err(died), "round {round}");
        thread.unlock_wait(address).unwrap();
    }
    // Nothing of the clients is left: an idle node looks for expired leases at leisure.
    let free = (1 << 20) - 4096;
    let all = Instant::now();
    while let Err(error) = thread.alloc(free, RW).wait() {
        assert!(matches!(error, Error::Full { .. }), "{error}");
        assert!(all.elapsed() < Duration::from_secs(180), "{error}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// A caller that asks for a process is refused and can go elsewhere; existing processes go on.
#[test]
fn a_node_that_is_told_to_end_takes_no_new_process_and_serves_those_it_has() {
    let node = Running::start(&["--memory", "1MiB", "--page", "4KiB"]);
    let pool = Pool::open(&format!("udp://{}", node.address())).unwrap();
    let thread = pool.thread().unwrap();
    let region = thread.alloc(4096, RW).wait().unwrap();
    let expected = pattern(1);
    region.write(0, &expected).wait().unwrap();
    node.terminate();
    // It notices the stop between two polls of the socket; until then it accepts processes.
    let refused = (0..5_000).find_map(|_| pool.thread().err()).expect("it says that it ends");
    assert_eq!(refused, Error::Ending { node: node.address().to_owned() });
    assert!(!refused.is_retryable(), "this node will never take it");
    assert!(region.read(0, WORDS * 8).wait().unwrap() == expected, "who is there goes on");
    assert_eq!(thread.fetch_add(region.address(), 1).wait(), Ok(1 << 32 | 1));
    pool.close().unwrap();
    let (code, words) = node.ended();
    assert_eq!(code, Some(0), "{words}");
    assert!(words.contains(" ended processes_left=0 "), "{words}");
}

#[test]
#[ignore = "it is the client of the test above, in a process of its own"]
fn holds_a_lock_until_it_is_killed() {
    let url = std::env::var(CLIENT).unwrap();
    let pool = Pool::open(&url).unwrap();
    let thread = pool.thread().unwrap();
    let _own = thread.alloc(100_000, RW).wait().unwrap();
    println!("\nprocess {}", thread.process().0);
    let mut line = String::new();
    let mut stdin = std::io::stdin();
    let mut octet = [0];
    while stdin.read(&mut octet).unwrap() == 1 && octet[0] != b'\n' {
        line.push(char::from(octet[0]));
    }
    thread.lock(Address(line.parse().unwrap())).wait().unwrap();
    println!("lock held");
    std::thread::sleep(Duration::from_secs(600));
}
