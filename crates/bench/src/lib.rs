//! Measurements of pools: YCSB, single operations, and the figures of papers that used them.
//!
//! The same code runs on every pool. On `sim:`, time is virtual, and one seed gives equal bytes; on
//! other pools, time is real.

mod clients;
mod draw;
mod error;
mod latency;
pub mod micro;
pub mod plan;
pub mod ycsb;

pub use draw::Draws;
pub use error::BenchError;
pub use latency::{LatencyBucket, LatencyStats};
