//! Measurements of pools: YCSB, single operations, and the figures of papers that used them.
//!
//! The same code runs on every pool. On `sim:` time is the fabric's, and one seed gives the same
//! bytes; on `local:` it is the machine's.

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
