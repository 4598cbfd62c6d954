//! Remote memory behind one interface, on any fabric: what applications import.
//!
//! A [`Pool`] is opened by URL: `local:` is this process's memory, `sim:edm?nodes=144` a rack on a
//! simulated fabric, in whose own time the application's code runs. A [`Thread`] submits
//! operations and keeps their order, a [`Region`] is memory that was allocated, and a [`Pending`]
//! is an operation under way: await it, wait for it, or poll it.

mod address;
mod attempts;
mod core;
mod error;
mod node;
mod order;
mod pending;
mod pool;
mod region;
mod sync;
mod tasks;
mod thread;
mod url;
mod wait;
mod world;

pub use address::{Address, Permissions, ProcessId};
pub use error::{Error, OpenError, Wait};
pub use ethermem_clio::offload::NAME_BYTES_MAX as OFFLOAD_NAME_BYTES_MAX;
pub use ethermem_clio::offload::{
    Chase, Chased, Comparison, Filter, NodeMemory, Offload, OffloadError, OffloadLimits, Sliced,
    Stop,
};
pub use ethermem_edm::RmwOperation;
pub use ethermem_sim::Kind;
pub use ethermem_sim::workload::LinkBlocks;
pub use ethermem_units::Ps;
pub use node::ACCESS_BYTES_MAX;
pub use pending::Pending;
pub use pool::Pool;
pub use region::Region;
pub use tasks::{Spawner, Tasks};
pub use thread::Thread;
pub use wait::Unfinished;
pub use world::{OFFLOAD_BYTES_MAX, Segment};

/// The guide, whose code runs as a test.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/how-to/use-a-pool.md")]
struct Guide;
