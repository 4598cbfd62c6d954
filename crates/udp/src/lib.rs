//! The memory node's protocol over UDP sockets of this machine: what drives the state machines of
//! `clio` in real time. It decides nothing of the protocol.

pub mod seal;
mod server;
mod socket;

pub use server::{Protect, Server, ServerCounters};
