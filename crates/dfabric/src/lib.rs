//! DFabric: a rack whose memory and NICs are pools, as pure state machines.
//!
//! [`pool`] is the memory pool: Sections, Buffers, references, and the table that checks each
//! access.
pub mod address;
pub mod mapping;
pub mod pool;

pub use address::{Node, RegionId, SectionId};
pub use pool::{MemoryPool, PoolConfig, PoolError};
