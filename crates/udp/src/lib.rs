//! The memory node's protocol over UDP sockets of this machine: what drives the state machines of
//! `clio` in real time. It decides nothing of the protocol.

mod carrier;
mod client;
pub mod seal;
mod server;
mod snapshot;

pub use carrier::socket::{DATAGRAM_BYTES_MAX, SOCKET_BUFFER_BYTES};
pub use carrier::train::Trains;
pub use client::{ClientOptions, ConnectError, Driver, Sleeper};
pub use server::{Protect, Server};
pub use snapshot::{Latencies, Published, ServerCounters, Snapshot};
