//! Programs whose pages are at a memory node behind a network: faults of several threads overlap,
//! and no byte changes where datagrams come late, out of order or not at all.

#[path = "support/relay.rs"]
mod relay;
mod support;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ethermem_node::NodeOptions;
use ethermem_units::Bytes;

use relay::Path;
use support::{built, can_page, example, rounds, under};

/// Longer than any run that does not hang: a read and a write are each tried for two seconds.
const HANG: Duration = Duration::from_secs(60);

/// A memory node on the loopback, served by a thread until this program ends.
fn node() -> SocketAddr {
    let mut server = ethermem_node::start(&NodeOptions::in_clear(Bytes(128 << 20)))
        .expect("a node on the loopback")
        .server;
    let address = server.address().expect("it is bound");
    std::thread::spawn(move || server.run(Duration::from_millis(1), &AtomicBool::new(false)));
    address
}

const DIRECT: Path = Path {
    delay: Duration::ZERO,
    jitter: Duration::ZERO,
    lost_one_in: None,
    ends_after: None,
    seed: 1,
};

fn torture(pool: SocketAddr, accesses: &str, seed: u64) {
    let (program, seed) = (example("torture"), seed.to_string());
    let program = program.to_str().expect("a path of text");
    let url = format!("udp://{pool}?timeout_ms=4500");
    let words = ["--pool", &url, program, "--accesses", accesses, "--seed", &seed];
    let output = under("2", &words);
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let is_clean = output.status.success() && said.starts_with("clean");
    assert!(is_clean, "{url}, seed {seed}: {:?}\n{said}{told}", output.status);
}

#[test]
fn no_byte_changes_at_a_memory_node() {
    if can_page() {
        let node = node();
        for seed in 1..=rounds() {
            torture(node, "20000", seed);
        }
    }
}

/// Pages are on their way while their memory is moved, discarded, forked and evicted again.
#[test]
fn no_byte_changes_on_a_path_that_delays_reorders_and_loses() {
    if !can_page() {
        return;
    }
    let node = node();
    for seed in 1..=rounds() {
        let (delay, jitter) = (Duration::from_micros(50), Duration::from_micros(400));
        let path = Path { delay, jitter, lost_one_in: Some(200), ends_after: None, seed };
        torture(relay::open(node, path), "4000", seed);
    }
}

/// The number of reads that were under way at once, as the run reports it.
fn overlap_most(told: &str) -> u64 {
    let (_, rest) = told.split_once("overlap_most: ").expect("the run's counters");
    rest.split(',').next().and_then(|text| text.parse().ok()).expect("a number")
}

#[test]
fn faults_of_several_threads_overlap() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("touches");
    if !can_page() || !built(&["cc", "-O1", "-pthread"], "touches.c", &program) {
        return;
    }
    let ms = Duration::from_millis(1);
    let path = Path { delay: ms, ..DIRECT };
    let url = format!("udp://{}", relay::open(node(), path));
    let program = program.to_str().expect("a path of text");
    for (threads, least) in [("1", 1), ("8", 6)] {
        let output = under("4", &["--pool", &url, program, threads, "4096", "200"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{told}");
        assert!(output.stdout.starts_with(b"clean"), "{told}");
        let most = overlap_most(&told);
        assert!(most >= least, "{threads} threads, {most} reads at once: {told}");
    }
}

/// The program is killed, as its pages are lost, and the pager ends without a wait for each of some
/// fifty regions of the node. (It took over a minute.)
#[test]
fn a_node_that_falls_silent_ends_the_run_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("touches");
    if !can_page() || !built(&["cc", "-O1", "-pthread"], "touches.c", &program) {
        return;
    }
    let url = format!("udp://{}", relay::open(node(), Path { ends_after: Some(40_000), ..DIRECT }));
    let program = program.to_str().expect("a path of text");
    let began = Instant::now();
    let output = under("4", &["--pool", &url, program, "4", "24576", "100000000"]);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && told.contains("did not answer"), "{told}");
    assert!(began.elapsed() < HANG, "{:?}", began.elapsed());
}
