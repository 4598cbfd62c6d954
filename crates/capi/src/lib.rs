//! The C library: `ethermem`'s pool, and the key-value store on it, behind a C interface, by
//! the names of Clio's paper.
//!
//! Nothing is decided here. Arguments are checked as far as they can be, the call is passed on, and
//! its result comes back as a status. Handles are numbers that are looked up, so one that is null,
//! closed or of another kind is told apart from a good one; panics end here.
//! `include/ethermem.h` is generated from this crate, and a test holds the two together.

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
