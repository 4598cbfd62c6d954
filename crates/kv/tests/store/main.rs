//! Tests of the store, on every kind of pool.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod deaths;
mod growth;
mod history;
mod linear;
mod memory;
mod torn;

use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_node::NodeOptions;
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_units::Bytes;

const BOTH: [Index; 2] = [Index::Client, Index::Node];

/// URLs of a small pool of every kind.
fn every_url() -> Vec<String> {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    ["local:", udp_url()].map(str::to_owned).into_iter().chain(fabrics).collect()
}

/// URL of a memory node that has the index, and serves all tests of this program.
fn udp_url() -> &'static str {
    static URL: OnceLock<String> = OnceLock::new();
    URL.get_or_init(|| {
        let options = NodeOptions::in_clear(Bytes(256 << 20));
        let mut server = ethermem_node::start(&options).unwrap().server;
        let (name, index) = ethermem_kv::at_node();
        server.node_mut().register(name, index);
        let url = format!("udp://{}", server.address().unwrap());
        let serve = move || server.run(Duration::from_millis(1), &AtomicBool::new(false));
        std::thread::spawn(serve);
        url
    })
}

fn open(url: &str) -> Pool {
    Pool::open(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// A store with so few buckets that chains are long and tables grow.
async fn crowded(pool: &Pool) -> Store {
    Store::create(pool, Config { buckets: 2, ..Config::default() }).await.unwrap()
}
