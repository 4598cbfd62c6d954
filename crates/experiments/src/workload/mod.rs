//! Messages of workloads, before any network carries them.

pub mod generate;
mod list;
pub mod show;

pub use list::{Entry, list, table};
