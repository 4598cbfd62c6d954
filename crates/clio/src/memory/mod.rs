//! The node's virtual memory (sections 4.2 and 4.3 of Clio's paper). One flat page table serves all
//! processes. No bucket overflows, so an address is found in one access to memory. Page faults take
//! constant work; the slow path makes both possible.
//!
//! `docs/internals/clio-memory.md` has the invariants.

mod allocation;
mod allocator;
mod claim;
mod free_pages;
mod hash;
mod map;
mod page;
mod ranges;
mod release;
mod sharing;
mod store;
mod table;
mod task;
mod tlb;

pub use allocator::{AllocateError, Allocated, ReleaseError, ShareError};
pub use hash::HashKey;
pub use map::{AddressMap, Footprint, MapCounters, Missed};
pub use page::{MemoryConfig, MemoryConfigError, PageSize, SpaceId, VIRTUAL_BITS};
pub use store::{ACCESS_BYTES_MAX, AccessError, Extent, VirtualMemory};
pub use table::{BUCKET_BYTES, BUCKET_SLOTS};
pub use task::{BeginError, Ended, Failed, Steps, Task};
