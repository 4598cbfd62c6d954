//! Host and switch on links of 66-bit blocks. They combine the state machines that decide, the
//! formats of `ethermem-wire` and the edges of [`crate::phy`].
//!
//! [`HostPort`] is a node with its memory, [`BlockSwitch`] a switch. Both are called once per slot
//! and link, and know no other time than the call's. The caller models pipeline latencies: blocks
//! leave here in the earliest possible slot.

mod convert;
mod egress;
mod host;
mod responses;
mod switch;

pub use convert::{PEER_DOWN_OPCODE, chunk_bytes_min};
pub use egress::{EGRESS_BLOCKS_MAX, EGRESS_CHUNKS_MAX};
pub use host::{Buffers, HostPort, HostPortConfig, PortSlot};
pub use switch::{BlockSwitch, SwitchCounters};
