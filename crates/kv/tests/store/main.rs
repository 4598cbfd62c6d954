//! The store, on every kind of pool.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod basics;
mod deaths;
mod growth;
mod history;
mod linear;
mod memory;
mod torn;

use ethermem::Pool;
use ethermem_kv::{Config, Index, Store};
use ethermem_sim::fabrics::FABRIC_NAMES;

const BOTH: [Index; 2] = [Index::Client, Index::Node];

/// A pool of every kind, small.
fn every_url() -> Vec<String> {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    std::iter::once("local:".to_owned()).chain(fabrics).collect()
}

fn open(url: &str) -> Pool {
    Pool::open(url).unwrap_or_else(|error| panic!("{url}: {error}"))
}

/// A store with so few buckets that chains are long and tables grow.
async fn crowded(pool: &Pool) -> Store {
    Store::create(pool, Config { buckets: 2, ..Config::default() }).await.unwrap()
}
