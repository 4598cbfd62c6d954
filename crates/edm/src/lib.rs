//! EDM as pure state machines: host, switch and grant scheduler. They are given the time and do no
//! I/O.

pub mod budget;
mod config;
mod host;
mod memory;
mod message;
pub mod phy;
pub mod port;
mod redundancy;
pub mod sched;
mod switch;

pub use config::{Arbitration, EdmConfig, Order, Policy};
pub use host::{Counters, Host, HostConfig};
pub use memory::{Memory, MemoryError, Modified};
pub use message::{
    Action, Address, Chunk, ChunkKind, Event, FailReason, Grant, MESSAGE_BYTES_MAX, MemoryRequest,
    MessageId, Modify, NodeId, Notification, Op, OpcodeBits, Outbound, RMW_BYTES, Request, RmwKind,
    RmwOperation, Status, StatusCode, SubmitError, Token, WriteKind,
};
pub use redundancy::{
    Interface, MirroredConfig, MirroredHost, RedundancyCounters, Streams, Transmit,
};
pub use switch::{Emission, Notice, Switch};
