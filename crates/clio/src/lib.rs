//! Clio's memory node and its client (ASPLOS 2022) as pure state machines: the node's virtual
//! memory, its handling of each packet, and the client's transport. They are given the time and all
//! randomness, and do no I/O.

pub mod memory;
pub mod node;
pub mod offload;
pub mod transport;

pub use ethermem_offload::{Address, OFFSET_MAX};
