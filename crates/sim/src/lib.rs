//! The simulator: one engine, one topology, one workload, one normaliser, and fabrics plugged in.

pub mod budget;
pub mod compare;
pub mod config;
pub mod engine;
pub mod fabrics;
pub mod keys;
mod message;
pub mod metrics;
pub mod output;
pub mod packet;
#[cfg(test)]
#[path = "../tests/support/property.rs"]
mod property;
pub mod registry;
pub mod report;
pub mod run;
pub mod scenario;
pub mod sweep;
pub mod topology;
pub mod workload;

pub use config::{Background, FabricConfig, pcs_clock};
pub use fabrics::edm::scheduler_clock;
pub use message::{Kind, Message, MessageSource, NodeIndex, SourceError};
