//! The C library: `ethermem`'s pool, and the key-value store on it, behind a C interface with the
//! names of Clio's paper.
//!
//! The library decides nothing. It checks arguments as far as possible, passes the call on, and
//! returns the result as a status. Handles are numbers in a table, so a handle that is null, closed
//! or of another kind is detected; panics end here. `include/ethermem.h` is generated from this
//! crate, and a test compares the two.

#![allow(clippy::missing_safety_doc, reason = "each says in `ethermem.h` what it takes")]

pub mod atomic;
mod border;
mod handles;
pub mod memory;
pub mod offload;
pub mod operation;
pub mod pool;
pub mod status;
pub mod store;

pub use handles::{ClientHandle, PendingHandle, PoolHandle, StoreHandle, ThreadHandle};
