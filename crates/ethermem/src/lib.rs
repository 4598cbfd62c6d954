//! Remote memory behind one interface, on any fabric: the crate that applications import.
//!
//! A [`Pool`] is opened by URL: `local:` is this process's memory, `sim:edm?nodes=144` a rack on a
//! simulated fabric, in whose virtual time the application's code runs. A [`Thread`] submits
//! operations and keeps their order, a [`Region`] is allocated memory, and a [`Pending`] is an
//! operation in flight: await it, wait for it, or poll it.
//!
//! Features: `remote` builds `udp:`, `ring:` and `node:`, `sim` builds `sim:`; both are on by
//! default. A program that uses only `udp:` takes `remote` without `sim`, and builds no simulator.
//! `local:` is always built.

mod backends;
mod node;
mod open_error;
mod page;
mod pool;
mod scheme;
mod table;

pub use ethermem_offload::NAME_BYTES_MAX as OFFLOAD_NAME_BYTES_MAX;
pub use ethermem_offload::{
    Chase, Chased, Comparison, Filter, NodeMemory, Offload, OffloadError, OffloadLimits, Sliced,
    Stop,
};
/// The interface of a backend, for programs that bring one.
pub use ethermem_pool as backend;
pub use ethermem_pool::{
    ACCESS_BYTES_MAX, Address, Error, Pending, Permissions, ProcessId, Region, Segment, Spawner,
    Tasks, Thread, Turn, Unfinished, Wait,
};
#[cfg(feature = "sim")]
pub use ethermem_sim::Kind;
#[cfg(feature = "sim")]
pub use ethermem_sim::engine::LineCounters;
#[cfg(feature = "sim")]
pub use ethermem_sim::workload::LinkBlocks;
pub use ethermem_units::Ps;
pub use ethermem_wire::RmwOperation;
pub use open_error::OpenError;
pub use page::{schemes_markdown, schemes_text};
pub use pool::Pool;
pub use scheme::{Open, Parameter, Parameters, Scheme, Unless, Url, Values};
pub use table::SCHEMES;

/// Longest arguments in bytes of an offload at a remote memory node: what one datagram carries with
/// any protection.
pub const OFFLOAD_BYTES_MAX: u64 = 65_000;

/// The guide, whose code blocks run as tests.
#[cfg(all(doctest, feature = "remote", feature = "sim"))]
#[doc = include_str!("../../../docs/how-to/use-a-pool.md")]
struct Guide;
