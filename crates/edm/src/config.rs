//! Parameters of an EDM network, the same for hosts and switch.

use ethermem_units::{Bytes, Ps};

/// What an EDM network is built from. Defaults are those of the paper, section 4.3.
#[derive(Clone, Debug, PartialEq)]
pub struct EdmConfig {
    /// Most data bytes one grant allows: a multiple of 64, 64 to 1024. Default 256.
    pub chunk: Bytes,
    /// Active notifications a host may have for one destination (X): 1 to 8. Default 3.
    pub notifications_max: u8,
    /// Who goes first. Default [`Policy::Srpt`].
    pub policy: Policy,
    /// What order the network keeps. Default [`Order::Pair`].
    pub order: Order,
    /// How memory and Ethernet blocks share a transmitter. Default [`Arbitration::Fair`].
    pub arbitration: Arbitration,
    /// Small writes of one pair that wait for a notification share one. Default true.
    pub batching: bool,
    /// A read without its response for so long completes with a NULL response. Default 10 ms.
    pub read_timeout: Ps,
    /// Period of the scheduler's clock; `None`: the PCS clock.
    pub scheduler_clock: Option<Ps>,
    /// Iterations before its release at which a port is matched again: 1 to 8. Default 2.
    pub lookahead_iterations: u8,
    /// Blocks that a destination may still have to come when it is granted again, met in the
    /// egress buffer: 0 to 256. Default 16.
    pub ahead_blocks: u32,
    /// Blocks that may be granted towards a port and not have left it yet, and as many that a port
    /// may be granted and not have sent: at least the longest chunk's. `None`: no limit.
    pub egress_window_blocks: Option<u32>,
}

/// Priority of the grant scheduler (section 3.1.1, property 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// First come, first served: the earliest notification.
    Fcfs,
    /// Fewest remaining bytes times size, and a hold for what is much shorter than its rival.
    Srpt,
    /// Fewest remaining bytes exactly as published: greedy, no hold.
    SrptPublished,
    /// FCFS or SRPT by the tail of the sizes seen so far.
    Auto,
    /// [`Policy::Srpt`] by size classes alone, equal ones in turn, as hardware of many ports can.
    SrptClasses,
}

/// What order the messages between a compute node and a memory node keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Reads arrive as submitted, writes arrive as submitted, no write arrives before an earlier
    /// read, and no read before an earlier write that shares bytes with it. A read may pass an
    /// earlier write to other bytes: the order that x86 gives a core (TSO).
    Pair,
    /// All arrive as submitted: a read waits for every earlier write.
    Strict,
    /// Independent messages may overtake each other; a fence orders what follows it.
    Relaxed,
}

/// How a transmitter shares its slots between memory and Ethernet (section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// Slots alternate while both wait, in units no memory chunk is cut by.
    Fair,
    /// Memory first.
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
