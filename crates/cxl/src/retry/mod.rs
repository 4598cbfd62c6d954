//! Retransmission between one compute node and one memory node (section III.D).
//!
//! The compute node's [`Requester`] has the retry buffer of requests and the reorder buffer of
//! responses; the memory node's [`Responder`] has the reorder buffer of requests and the retry
//! buffer of responses. All four are indexed by the sequence number modulo their size.

mod requester;
mod responder;

pub use requester::{Delivery, Requester, RequesterConfig, RequesterCounters, ResponseFault};
pub use responder::{Arrival, Responder, ResponderCounters};

/// What is sent again once packets were lost. Both ends must be set alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retransmission {
    /// Only what is missing: SACK marks and reorder buffers, as published.
    #[default]
    Selective,
    /// All from the first that is missing; what comes out of order is dropped. For comparison.
    GoBackN,
}

/// Most requests between the oldest without its response and the newest: 256 reads and 256 writes
/// (section IV).
pub const WINDOW: u32 = 512;
