//! Parameters of an EDM network, shared by hosts and switch.

use ethermem_units::{Bytes, Ps};

/// The parameters of an EDM network. The defaults are the paper's (section 4.3).
#[derive(Clone, Debug, PartialEq)]
pub struct EdmConfig {
    /// Maximum data bytes per grant: a multiple of 64, 64 to 1024. Default 256.
    pub chunk: Bytes,
    /// Active notifications a host may have for one destination (X): 1 to 8. Default 3.
    pub notifications_max: u8,
    /// The priority of the scheduler. Default [`Policy::Srpt`].
    pub policy: Policy,
    /// The order that the network keeps between messages of a pair. Default [`Order::Pair`].
    pub order: Order,
    /// How memory and Ethernet blocks share a transmitter. Default [`Arbitration::Fair`].
    pub arbitration: Arbitration,
    /// If true, small writes of one pair that wait for a notification share one. Default true.
    pub batching: bool,
    /// A read without a response for this long completes with a NULL response. Default 10 ms.
    pub read_timeout: Ps,
    /// Period of the scheduler's clock; `None` means the PCS clock.
    pub scheduler_clock: Option<Ps>,
    /// Number of iterations before its release at which a port is matched again: 1 to 8. Default 2.
    pub lookahead_iterations: u8,
    /// A destination may be granted again while at most this many blocks are still to arrive for
    /// it: 0 to 256. The egress buffer holds what meets there. Default 16.
    pub ahead_blocks: u32,
    /// Maximum blocks that are granted towards a port and have not left it, and as many that a port
    /// was granted and has not sent. It is at least the longest chunk's blocks. `None`: no limit.
    pub egress_window_blocks: Option<u32>,
}

/// Priority of the grant scheduler (section 3.1.1, property 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served: the earliest notification.
    Fcfs,
    /// Fewest remaining bytes times size, with a hold for a message much shorter than its rival.
    Srpt,
    /// Fewest remaining bytes exactly as published: greedy, without a hold.
    SrptPublished,
    /// FCFS or SRPT, chosen by the tail of the message sizes seen so far.
    Auto,
    /// [`Policy::Srpt`] by size classes alone, as hardware of many ports can do; equal classes take
    /// turns.
    SrptClasses,
}

/// The order that messages between a compute node and a memory node keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Reads arrive as submitted, and writes arrive as submitted. No write arrives before an
    /// earlier read, and no read before an earlier write that shares bytes with it. A read may pass
    /// an earlier write to other bytes: the order that x86 gives a core (TSO).
    Pair,
    /// All messages arrive as submitted: a read waits for every earlier write.
    Strict,
    /// Independent messages may overtake each other; a fence orders what follows it.
    Relaxed,
}

/// How a transmitter shares its slots between memory and Ethernet (section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Slots alternate while both wait, in units that never cut a memory chunk.
    Fair,
    /// Memory blocks always go first.
    Strict,
}

impl Default for EdmConfig {
    fn default() -> EdmConfig {
        EdmConfig {
            chunk: Bytes(256),
            notifications_max: 3,
            policy: Policy::Srpt,
            order: Order::Pair,
            arbitration: Arbitration::Fair,
            batching: true,
            read_timeout: Ps::from_ns(10_000_000),
            scheduler_clock: None,
            lookahead_iterations: 2,
            ahead_blocks: 16,
            egress_window_blocks: None,
        }
    }
}
