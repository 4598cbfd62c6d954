//! The client's side (sections 4.4 and 4.5 of Clio's paper): all state of the transport is here.
//!
//! A [`Client`] speaks to one node. It is given operations, datagrams and the time, and gives
//! datagrams, results and the time at which it wants to be called again. What of a thread's
//! operations must wait for others of its own is decided before they come here.
//! `docs/internals/clio-transport.md` has the rules.

mod client;
mod config;
mod flights;
mod node_clock;
mod operation;
mod operations;
mod path;
mod round_trips;
mod window;

pub use client::{Client, ClientCounters, Event};
pub use config::{ClientConfig, ClientConfigError};
pub use operation::{Completed, OperationError, OperationId};
pub use round_trips::RoundTrips;
pub use window::{CongestionWindow, IncastWindow};
