//! The simulator: scenarios, runs, sweeps and comparisons of every fabric.
//!
//! It re-exports the crates below it: workloads, the engine, the packet substrate, the fabrics, and
//! reports.

pub mod compare;
#[cfg(test)]
#[path = "../../units/tests/support/property.rs"]
mod property;
pub mod registry;
pub mod run;
pub mod scenario;
#[cfg(feature = "schema")]
pub mod schema;
pub mod sweep;

pub use ethermem_engine::{
    Background, FabricConfig, config, engine, keys, metrics, output, pcs_clock, topology,
};
pub use ethermem_fabrics::edm::scheduler_clock;
pub use ethermem_fabrics::{self as fabrics, budget};
pub use ethermem_frames as packet;
pub use ethermem_report as report;
pub use ethermem_workload::{
    self as workload, Kind, Message, MessageSource, NodeIndex, SourceError,
};
