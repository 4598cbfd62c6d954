//! Pools of remote memory: operations, their order and results, tasks, and the trait of a backend.
//!
//! The crate names no protocol and no URL. A [`Backend`] carries out operations. [`Pool`] keeps
//! their order, returns their results, and decides which machine thread drives the backend. The
//! facade `ethermem`, which applications import, opens backends by URL.

mod address;
mod attempts;
mod backend;
mod core;
mod error;
mod notify;
mod operation;
mod order;
mod pending;
mod pool;
mod shared;
mod sync;
mod tasks;
#[cfg(test)]
mod tests;
mod thread;
mod wait;

pub use address::{Address, OFFSET_MAX, Permissions, ProcessId};
pub use backend::{
    Access, Backend, Direct, End, Ended, Facts, Lent, LockWords, Network, Opened, Progress, Waited,
    WaitedId,
};
pub use error::{Error, Wait};
pub use operation::{
    ACCESS_BYTES_MAX, Asker, Op, OpId, Outcome, PAGE_BYTES, Reply, Segment, Segments,
};
pub use pending::Pending;
pub use pool::{Pool, Turn};
pub use tasks::{Spawner, Tasks};
pub use thread::{Region, Thread};
pub use wait::Unfinished;
