//! DFabric: a rack whose memory and NICs are pools, as pure state machines.
//!
//! [`pool`] is the memory pool: Sections, Buffers, references, and the table that checks each
//! access. [`ring`] is a queue in shared memory, [`poller`] says whose tail is loaded next, and
//! [`switch_node`] splits what is found: into the rack, or to the NICs of [`nic`]. [`stream`] makes
//! one flow of many subflows, [`cache`] has the tags of the DRAM cache. [`small_queue`],
//! [`interrupt`], [`loads`] and [`accelerator`] are what the paper's measurements depend on.
//!
//! Events in, actions out: no part reads a clock, moves a byte, or allocates on the data path. The
//! paper is "DFabric: Scaling Out Data Parallel Applications with CXL-Ethernet Hybrid
//! Interconnects"; `docs/internals/dfabric.md` says what it leaves open.

pub mod accelerator;
pub mod address;
pub mod cache;
mod fifo;
pub mod interrupt;
pub mod loads;
pub mod mapping;
pub mod nic;
pub mod poller;
pub mod pool;
pub mod ring;
pub mod small_queue;
pub mod stream;
pub mod switch_node;
mod sync;

pub use address::{Node, RegionId, SectionId};
pub use pool::{MemoryPool, PoolConfig, PoolError};

// `ring` knows no format, so that the model check can run it alone.
const _: () = assert!(ring::PHASE_BIT == ethermem_wire::dfabric::PHASE_BIT);
const _: () = assert!(ring::ENTRY_WORDS == ethermem_wire::dfabric::DESCRIPTOR_WORDS);
