//! The pool, on every kind of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod errors;
mod litmus;
mod network;
mod offload;
mod tasks;
mod time;
mod urls;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem::Pool;
use ethermem_clio::memory::PageSize;
use ethermem_node::NodeOptions;
use ethermem_sim::fabrics::FABRIC_NAMES;
use ethermem_units::Bytes;

/// The URL of a memory node that serves all tests of this program, from one of its threads.
fn udp_url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let options =
            NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(64 << 20)) };
        let mut server = ethermem_node::start(&options).unwrap().server;
        let url = format!("udp://{}", server.address().unwrap());
        let serve = move || server.run(Duration::from_millis(1), &AtomicBool::new(false));
        std::thread::spawn(serve);
        url
    })
}

/// Whether a pool's memory is whole pages of a node, so that a region ends where its last page
/// does.
fn has_pages(pool: &Pool) -> bool {
    pool.url().starts_with("udp:")
}

/// Those of them whose memory nodes are in this program.
fn every_pool_here() -> Vec<Pool> {
    every_pool().into_iter().filter(|pool| !has_pages(pool)).collect()
}

/// A pool of every kind, small: three compute nodes and three memory nodes on each fabric.
fn every_pool() -> Vec<Pool> {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    let real = ["local:", udp_url()].map(str::to_owned);
    let urls = real.into_iter().chain(fabrics);
    urls.map(|url| Pool::open(&url).unwrap_or_else(|error| panic!("{url}: {error}"))).collect()
}
