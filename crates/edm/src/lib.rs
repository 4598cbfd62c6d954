//! EDM as pure state machines: host, switch and grant scheduler, given the time, doing no I/O.

mod config;

pub use config::{Arbitration, EdmConfig, Order, Policy};
