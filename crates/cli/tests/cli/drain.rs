//! A node that is told to end does so in time, whatever is in flight, with exit code 0. The code
//! 130 would mean that it did not end by itself.

use std::fs;
use std::io::Write as _;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use ethermem::{Address, Error, Permissions, Pool, Thread};

use crate::node::Running;

const RW: Permissions = Permissions::READ_WRITE;
/// 2^17 pages, so that each request takes many slices.
const LARGE: u64 = 512 << 20;

const FILE: &str = "memory = \"2GiB\"\npage = \"4KiB\"\nlisten = \"127.0.0.1:0\"\n\
    metrics_listen = \"127.0.0.1:0\"\ninsecure = true\ncontrol = \"control\"\n\
    drain_ms_max = 1500\n[offload.endless]\nfile = \"endless.wasm\"\nfuel_max = 100000000\n";

/// An action that a client repeats until the node is gone.
type Act = fn(&Pool, &Thread) -> Result<(), Error>;

fn allocates(_: &Pool, thread: &Thread) -> Result<(), Error> {
    thread.alloc(LARGE, RW).wait()?.free().wait()
}

fn shares(pool: &Pool, thread: &Thread) -> Result<(), Error> {
    let region = thread.alloc(LARGE, RW).wait()?;
    let friend = pool.thread()?;
    region.share(friend.process(), RW).wait()?;
    region.free().wait()
}

/// The thread's pool is its own, and its processes end with the pool.
fn ends(_: &Pool, thread: &Thread) -> Result<(), Error> {
    thread.alloc(4096, RW).wait()?.free().wait()
}

fn computes(_: &Pool, thread: &Thread) -> Result<(), Error> {
    match thread.offload("endless", Address(4096), &[], &[]).wait() {
        Err(Error::OffloadStopped { .. }) => Ok(()),
        other => other.map(drop),
    }
}

fn start(folder: &Path) -> Running {
    let endless = wat::parse_str(
        "(module (memory (export \"memory\") 1)
           (func (export \"run\") (result i32) (loop $e (br $e)) (i32.const 0)))",
    );
    fs::write(folder.join("endless.wasm"), endless.unwrap()).unwrap();
    let file = folder.join("node.toml");
    fs::write(&file, FILE).unwrap();
    Running::start_with(&["--config", file.to_str().unwrap()])
}

/// Clients act while the node is told to end; returns the node's last output.
fn ended_while(acts: &[Act], new_pools: bool) -> String {
    let folder = tempfile::tempdir().unwrap();
    let node = start(folder.path());
    let url = format!("udp://{}?timeout_ms=500", node.address());
    let begun = AtomicU32::new(0);
    // Peers on every socket that send nothing, or half of a request.
    let silent = Pool::open(&url).unwrap();
    let _silent = silent.thread().unwrap();
    let _peer = UnixStream::connect(folder.path().join("control")).unwrap();
    let mut half = UnixStream::connect(folder.path().join("control")).unwrap();
    half.write_all(b"{\"processes\":").unwrap();
    let mut metrics = TcpStream::connect(node.metrics().unwrap()).unwrap();
    metrics.write_all(b"GET /status HT").unwrap();
    std::thread::scope(|scope| {
        for act in acts {
            let (url, begun) = (&url, &begun);
            scope.spawn(move || {
                let mut pool = Pool::open(url).unwrap();
                let mut thread = pool.thread().unwrap();
                loop {
                    begun.fetch_add(1, Ordering::Relaxed);
                    if act(&pool, &thread).is_err() {
                        return;
                    }
                    if new_pools {
                        // This region ends with its process.
                        let _region = thread.alloc(LARGE, RW).wait();
                        drop((thread, pool));
                        let Ok(next) = Pool::open(url) else { return };
                        let Ok(made) = next.thread() else { return };
                        (pool, thread) = (next, made);
                    }
                }
            });
        }
        // Each client has completed an action, and is in the next.
        while begun.load(Ordering::Relaxed) < 2 * acts.len() as u32 {
            std::thread::yield_now();
        }
        node.terminate();
        let (code, words) = node.ended();
        assert_eq!(code, Some(0), "{words}");
        assert!(words.contains(" ended "), "{words}");
        words
    })
}

#[test]
fn a_silent_client_keeps_no_node() {
    let words = ended_while(&[], false);
    assert!(words.contains(" processes_left=1 "), "{words}");
}

#[test]
fn allocations_and_shares_that_are_half_done_keep_no_node() {
    ended_while(&[allocates, allocates], false);
    ended_while(&[shares], false);
}

#[test]
fn processes_that_are_ending_keep_no_node() {
    ended_while(&[ends, ends], true);
}

#[test]
fn operations_that_never_end_keep_no_node() {
    ended_while(&[computes, computes], false);
}

#[test]
fn all_of_them_together_keep_no_node() {
    ended_while(&[allocates, shares, computes], false);
}
