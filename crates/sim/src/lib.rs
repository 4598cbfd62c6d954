//! The simulator: one engine, one topology, one workload, one normaliser, and fabrics plugged in.

mod config;
mod message;
pub mod metrics;
pub mod output;
pub mod report;

pub use config::{Background, FabricConfig};
pub use message::{Kind, Message, MessageSource, NodeIndex, SourceError};
