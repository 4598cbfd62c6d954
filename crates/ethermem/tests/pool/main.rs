//! Tests of the pool, on every kind of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod bad_input;
mod cached;
mod close;
mod count;
mod errors;
mod litmus;
mod lost;
mod lost_answers;
mod namespace;
mod network;
mod offload;
mod path;
mod quicker;
mod restarts;
mod ring;
mod ring_faults;
mod ring_interfaces;
mod tasks;
mod threads;
mod time;
mod urls;
mod via;

use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem::Pool;
use ethermem_clio::memory::PageSize;
use ethermem_node::{NodeOptions, StartError};
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_udp::{BindError, RingError};
use ethermem_units::Bytes;

/// URLs of a memory node that serves all tests of this program, from one of its threads. It is
/// reached over UDP, with and without a cache, and over raw Ethernet on the loopback if this
/// process may use it.
fn remote_urls() -> &'static [String] {
    static URLS: OnceLock<Vec<String>> = OnceLock::new();
    URLS.get_or_init(|| {
        let in_clear = NodeOptions::in_clear(Bytes(64 << 20));
        let mut options = NodeOptions { page: PageSize::Kib4, ..in_clear };
        // Other test programs run beside this one, on the same loopback.
        let port = 10_000 + std::process::id() % 50_000;
        options.listen.ring = Some(format!("lo:{port}").parse().unwrap());
        let mut urls = vec![format!("ring://lo:{port}")];
        let mut started = ethermem_node::start(&options);
        if let Err(error @ StartError::Bind(BindError::Ring(_, RingError::Ring(_)))) = &started {
            let line = format!("SKIPPED: pools over raw Ethernet: {error}\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            urls.clear();
            options.listen.ring = None;
            started = ethermem_node::start(&options);
        }
        let mut server = started.unwrap().server;
        let udp = format!("udp://{}", server.address().unwrap());
        // A cache so small that its lines are evicted all the time.
        urls.push(format!("{udp}?cache_bytes=4KiB&line_bytes=256"));
        urls.push(udp);
        let serve = move || server.run(Duration::from_millis(1), &AtomicBool::new(false));
        std::thread::spawn(serve);
        urls
    })
}

/// A URL with one more parameter.
fn with(url: &str, parameter: &str) -> String {
    let joint = if url.contains('?') { '&' } else { '?' };
    format!("{url}{joint}{parameter}")
}

/// True if a pool's memory is whole pages of a node, so that a region ends where its last page
/// ends.
fn has_pages(pool: &Pool) -> bool {
    ["udp:", "ring:"].iter().any(|scheme| pool.url().starts_with(scheme))
}

/// The pools whose memory nodes are in this process.
fn every_pool_here() -> Vec<Pool> {
    every_pool().into_iter().filter(|pool| !has_pages(pool)).collect()
}

/// A pool that a property test has drawn: of this process's memory, of one of `simulated`, or of a
/// real memory node.
fn drawn_pool(simulated: &[&str], drawn: usize) -> Pool {
    let real = remote_urls().iter().map(String::as_str);
    let urls: Vec<&str> =
        std::iter::once("local:").chain(simulated.iter().copied()).chain(real).collect();
    Pool::open(urls[drawn % urls.len()]).unwrap()
}

/// Caches of CXL over Ethernet: none, one of a set, whose lines must go all the time, and one over
/// a network that loses frames. The published one is among the fabrics.
const CXL_CACHES: [&str; 3] =
    ["cache_bytes=0", "cache_bytes=256", "cache_bytes=1024&loss_ppm=20000"];

/// A small pool of every kind: three compute nodes and three memory nodes on each fabric.
fn every_pool() -> Vec<Pool> {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    let caches = CXL_CACHES.iter().map(|cache| format!("sim:cxl-ethernet?nodes=6&{cache}"));
    let fabrics = fabrics.chain(caches);
    let real = remote_urls().iter().cloned().chain(["local:".to_owned()]);
    let urls = real.chain(fabrics);
    urls.map(|url| Pool::open(&url).unwrap_or_else(|error| panic!("{url}: {error}"))).collect()
}
