//! Where things are, and what may be done there.

pub use ethermem_offload::{Address, OFFSET_MAX};
pub use ethermem_wire::{Permissions, ProcessId};
