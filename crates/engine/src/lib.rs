//! The environment of every fabric: virtual time, links and switches, configuration, metrics,
//! output.

pub mod config;
pub mod engine;
pub mod keys;
pub mod metrics;
pub mod output;
#[cfg(test)]
#[path = "../../units/tests/support/property.rs"]
mod property;
pub mod topology;

pub use config::{Background, FabricConfig, NODES_MAX, pcs_clock};
