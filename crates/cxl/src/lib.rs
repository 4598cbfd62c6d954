//! CXL over Ethernet: loads and stores of 64-byte lines to memory nodes, as pure state machines.
//!
//! [`ComputeNode`] is told what the host's CXL.mem port asks and what frames come; it says which
//! frames go and what the host is answered. [`MemoryNode`] is told what frames come and what its
//! memory answers. Both are given the time, read no clock, and allocate nothing once built; moving
//! bytes and adding latency belong to the world around them. What each is made of can be used and
//! stepped alone: [`cache`], [`rate`], [`retry`], [`agent`], [`translate`], [`dram`]. The
//! [`GlobalMemoryManager`] says which memory is whose.
//!
//! The paper is "CXL over Ethernet: A Novel FPGA-based Memory Disaggregation Design in Data
//! Centers" (2023); `docs/internals/cxl-over-ethernet.md` says what it leaves open.

pub mod agent;
pub mod cache;
pub mod compute;
pub mod dram;
pub mod manager;
pub mod memory;
pub mod rate;
pub mod retry;
mod ring;
mod slots;
pub mod stages;
pub mod translate;

pub use compute::{ComputeConfig, ComputeNode};
pub use manager::GlobalMemoryManager;
pub use memory::{MemoryConfig, MemoryNode};
pub use slots::Storage;
