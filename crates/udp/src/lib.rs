//! The memory node's protocol over UDP sockets and rings of raw Ethernet. The crate drives the
//! state machines of `clio` in real time, and decides nothing of the protocol.

mod carrier;
mod client;
mod operator;
mod patience;
pub mod seal;
mod server;
mod snapshot;

pub use carrier::paths::{BoundBy, INTERFACES_MAX, InterfaceError};
pub use carrier::pieces::{Added, Pieces};
pub use carrier::place::{NoRingPlace, RING_PORT, RingError, RingPlace, interface_of, is_loopback};
pub use carrier::ring::nodes_at;
pub use carrier::socket::{DATAGRAM_BYTES_MAX, SOCKET_BUFFER_BYTES};
pub use carrier::train::Trains;
pub use client::{ClientOptions, ConnectError, Driver, Forked, NodePlace, Sleeper};
pub use ethermem_ring::Maker;
pub use operator::{NoAnswer, Operator};
pub use patience::Wait;
pub use server::{BindError, Listen, Protect, Server};
pub use snapshot::{Latencies, Published, ServerCounters, Snapshot};
