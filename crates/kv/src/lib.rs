//! A key-value store in remote memory: create, read, update and delete on any pool.
//!
//! A [`Store`] is a chained hash table on the memory nodes of a [`ethermem::Pool`]; a [`Client`] is
//! one stream of operations on it. Each client chooses which side walks the index, [`Index`]: the
//! client itself, by reads and one compare-and-swap, or the memory node, in one round trip. Every
//! change swaps one word to a complete record. So there is no lock, and a client that dies leaves
//! no partial change.
//!
//! ```
//! use ethermem::Pool;
//! use ethermem_kv::{Config, Index, Store};
//!
//! # fn main() -> Result<(), ethermem_kv::Error> {
//! for url in ["local:", "sim:edm?nodes=4"] {
//!     let pool = Pool::open(url).expect("a pool that there is");
//!     pool.run(async {
//!         let store = Store::create(&pool, Config::default()).await?;
//!         let mut client = store.client(Index::Node);
//!         assert!(client.create(b"key", b"value").await?);
//!         assert!(client.update(b"key", b"other").await?);
//!         assert_eq!(client.read(b"key").await?.expect("it is there").bytes, b"other");
//!         assert!(client.delete(b"key").await?);
//!         Ok::<(), ethermem_kv::Error>(())
//!     })?;
//! }
//! # Ok(())
//! # }
//! ```

mod call;
mod client;
mod error;
mod layout;
mod link;
mod node;
mod record;
mod store;

pub use call::{Version, When};
pub use client::{Client, Entry, Operation, Outcome, Value, Written};
/// The operation of the index, with its name, for a memory node that serves other programs' pools.
#[must_use]
pub fn at_node() -> (&'static str, std::sync::Arc<dyn ethermem::Offload>) {
    (node::KeyValue::NAME, std::sync::Arc::new(node::KeyValue::default()))
}

pub use error::{Error, KEY_BYTES_MAX, VALUE_BYTES_MAX};
pub use store::{Config, Index, Key, Look, Scanned, Statistics, Store};
