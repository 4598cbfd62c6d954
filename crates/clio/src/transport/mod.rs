//! The client's side (sections 4.4 and 4.5 of Clio's paper), which holds all state of the
//! transport.
//!
//! A [`Client`] talks to one node. It is given operations, datagrams and the time; it returns
//! datagrams, results and the time at which it must be called again. The order between a thread's
//! own operations is decided before they come here. `docs/internals/clio-transport.md` has the
//! rules.

mod client;
mod config;
mod flights;
mod node_clock;
mod operation;
mod operations;
mod path;
mod paths;
mod queueing;
mod round_trips;
mod silence;
mod window;

pub use client::{Client, ClientCounters, Event, FRONT_BYTES, Landing, Loan, PathLengths};
pub use config::{ClientConfig, ClientConfigError};
pub use operation::{Completed, OperationError, OperationId};
pub use paths::{PATHS_MAX, PathId, PathReport};
pub use round_trips::RoundTrips;
pub use window::{CongestionWindow, IncastWindow};
