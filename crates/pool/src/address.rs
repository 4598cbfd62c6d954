//! Addresses in a pool, and permissions.

pub use ethermem_offload::{Address, OFFSET_MAX};
pub use ethermem_wire::{Permissions, ProcessId};
