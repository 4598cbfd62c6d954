//! The hardware itself, compiled and run.

mod flow;
pub(crate) mod stages;
pub mod ycsb;

pub use stages::Measurement;
