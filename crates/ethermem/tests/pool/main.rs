//! The pool, on every kind of it.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod access;
mod errors;
mod litmus;
mod offload;
mod time;
mod urls;

use ethermem::Pool;
use ethermem_sim::fabrics::FABRIC_NAMES;

/// A pool of every kind, small: three compute nodes and three memory nodes on each fabric.
fn every_pool() -> Vec<Pool> {
    let fabrics = FABRIC_NAMES.iter().map(|fabric| format!("sim:{fabric}?nodes=6"));
    let urls = std::iter::once("local:".to_owned()).chain(fabrics);
    urls.map(|url| Pool::open(&url).unwrap_or_else(|error| panic!("{url}: {error}"))).collect()
}
