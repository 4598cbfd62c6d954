//! The counters that only the fabric can keep; it returns them once, at its end.

use serde::Serialize;

use super::{FrameStats, MemoryTraffic};

/// The counters of a fabric. A field is `None` where a fabric lacks the thing counted: the ideal
/// has no queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FabricStats {
    /// Share of block slots that messages and their control blocks took: the mean over the links of
    /// the busier direction, over the whole run.
    pub load_measured: Option<f64>,
    /// Share of the slots of memory traffic that carried control or framing, and no data.
    pub control_overhead: Option<f64>,
    /// Utilisation of the links, by direction.
    pub utilisation: Option<Utilisation>,
    /// Memory traffic queued at switch egress.
    pub queue: Option<Queue>,
    /// Counters of the grant scheduler.
    pub matching: Option<Matching>,
    /// Ethernet frames on the same links.
    pub frames: Option<FrameStats>,
    /// Counters of packets.
    pub packets: Option<PacketCounts>,
    /// Traffic of memories over time, where the scenario requests it.
    pub memories: Option<MemoryTraffic>,
    /// Fallbacks, and other facts that a reader of the numbers must know.
    pub notices: Vec<String>,
}

/// Shares of block slots in use, over the simulated time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Utilisation {
    /// Mean of all uplinks (node to switch).
    pub uplink_mean: f64,
    /// The busiest uplink.
    pub uplink_max: f64,
    /// Mean of all downlinks (switch to node).
    pub downlink_mean: f64,
    /// The busiest downlink.
    pub downlink_max: f64,
}

/// Memory blocks that wait at switch egress, over all ports.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Queue {
    /// The maximum that one port ever held.
    pub egress_blocks_max: u64,
    /// The mean over time and ports.
    pub egress_blocks_mean: f64,
    /// The fabric's bound on `egress_blocks_max`; `None` if it has no bound.
    pub egress_blocks_bound: Option<u64>,
}

/// Counters of the grant scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Matching {
    /// Matchings with at least one grant: runs of iterations until one has no loser.
    pub rounds: u64,
    /// Number of grants.
    pub grants: u64,
    /// Mean iterations of a matching until it is maximal.
    pub iterations_mean: f64,
    /// Iterations of the longest matching.
    pub iterations_max: u64,
    /// Mean pairs that an iteration joined.
    pub size_mean: f64,
    /// Maximum pairs that an iteration joined: at most the number of ports.
    pub size_max: u64,
}

/// Counters of packets that were handed to a port of a host or of a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct PacketCounts {
    /// Packets sent by hosts, retransmissions included.
    pub sent: u64,
    /// Packets that arrived at their destination.
    pub delivered: u64,
    /// Packets dropped by a queue.
    pub dropped: u64,
    /// Packets delivered with the mark "congestion experienced".
    pub marked: u64,
    /// Packets retransmitted.
    pub retransmitted: u64,
    /// Timeouts that expired.
    pub timeouts: u64,
    /// Number of times that a switch paused a link; absent where links are never paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
    /// Number of times that a queue trimmed a packet's data; absent where queues do not trim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<u64>,
    /// Number of times that a queue sent a packet back to its source; absent where queues do not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
}
