//! Parameters of Clio's transport and memory node.

use ethermem_units::{Bytes, Ps};

/// What the paper's board and hosts take for a packet beside MAC, PCS, line and switch, each way at
/// each end: what is left of its 2.5 us median for 16 B on links of 10 Gb/s.
pub const CLIO_STACK: Ps = Ps::from_ns(207);

/// See the module above.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClioConfig {
    /// IP, UDP and Clio's header of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Requests that a client may have under way to a memory node before it has heard of it; `None`
    /// for a bandwidth-delay product.
    pub window_initial: Option<u32>,
    /// The same at most.
    pub window_max: u32,
    /// Round trips that are longer than the shortest by more make the window smaller.
    pub queueing_target: Ps,
    /// Bytes of answers that a client may have under way to it; `None` for what its link carries
    /// in two unloaded round trips and the queueing target.
    pub incast: Option<Bytes>,
    /// Shortest time after which a request is tried again.
    pub retry_min: Ps,
    /// The longest.
    pub retry_max: Ps,
    /// Clock of the memory node's fast path.
    pub clock: Ps,
    /// Bytes that it takes in a cycle.
    pub width: Bytes,
    /// Entries of its TLB.
    pub tlb_entries: u32,
    /// Processes whose memory is accessed, at every memory node.
    pub processes: u16,
    /// Pages of each that are.
    pub pages: u32,
    /// What the memory node takes longer, on average, for a packet; exponential.
    pub jitter: Ps,
}

impl Default for ClioConfig {
    fn default() -> ClioConfig {
        ClioConfig {
            header: Bytes(44),
            buffer: Bytes(225_000),
            window_initial: None,
            window_max: 256,
            queueing_target: Ps::from_ns(5_000),
            incast: None,
            retry_min: Ps::from_ns(50_000),
            retry_max: Ps::from_ns(10_000_000),
            clock: Ps::from_ns(4),
            width: Bytes(64),
            tlb_entries: 16,
            processes: 1,
            pages: 1,
            jitter: Ps::ZERO,
        }
    }
}
