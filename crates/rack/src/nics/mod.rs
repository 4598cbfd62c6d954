//! Flows between racks over all NICs of a rack: DFabric's dispatcher and its subflows, for real.
//!
//! A process of each rack has TCP subflows to the processes of other racks, one for each NIC. The
//! preloaded library connects a program that calls another rack to the process of its own rack. See
//! `docs/internals/rack-nics.md`.
//!
//! `frame`, `order`, `stripe` and `session` are pure: no clock, no socket.

mod door;
pub mod frame;
mod greet;
pub mod handshake;
mod link;
pub mod order;
mod peers;
mod process;
pub mod session;
pub mod stripe;
#[cfg(test)]
mod tests;
mod wire;

pub use process::serve;

use std::fmt;
use std::net::Ipv4Addr;

/// What people should know of a process of NICs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// A subflow is used, or was left.
    Subflow {
        /// The other rack.
        rack: String,
        /// The subflow's number.
        subflow: usize,
        /// It is used from now on.
        is_up: bool,
    },
    /// A session has ended.
    Ended {
        /// The other rack.
        rack: String,
        /// Connections of programs that were reset.
        connections: usize,
        /// The reason.
        why: String,
    },
    /// A connection comes from no NIC of another rack.
    Stranger {
        /// Its address.
        from: Ipv4Addr,
    },
    /// A handshake has failed.
    Refused {
        /// The other address.
        from: Ipv4Addr,
        /// The reason.
        why: &'static str,
    },
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Subflow { rack, subflow, is_up: true } => {
                write!(f, "rack {rack}: NIC {subflow} is used")
            }
            Notice::Subflow { rack, subflow, .. } => {
                write!(f, "rack {rack}: NIC {subflow} is left")
            }
            Notice::Ended { rack, connections, why } => {
                write!(f, "rack {rack}: {why}; {connections} connections were reset")
            }
            Notice::Stranger { from } => write!(f, "{from}: is no NIC of a rack of this file"),
            Notice::Refused { from, why } => write!(f, "{from}: refused: {why}"),
        }
    }
}
