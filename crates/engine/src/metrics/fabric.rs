//! What only the fabric can count, handed over once at its end.

use serde::Serialize;

use super::FrameStats;

/// Numbers of a fabric. `None` where a fabric has no such thing: the ideal has no queue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FabricStats {
    /// Share of block slots that messages and their control blocks took, mean of the links of the
    /// busier direction over the whole run.
    pub load_measured: Option<f64>,
    /// Share of the slots taken for memory traffic that carried control or framing, no data.
    pub control_overhead: Option<f64>,
    /// How full the links were, by direction.
    pub utilisation: Option<Utilisation>,
    /// Memory traffic queued at switch egress.
    pub queue: Option<Queue>,
    /// What the grant scheduler did.
    pub matching: Option<Matching>,
    /// Ethernet frames on the same links.
    pub frames: Option<FrameStats>,
    /// What became of packets.
    pub packets: Option<PacketCounts>,
    /// Fallbacks, and anything else a reader of the numbers must know.
    pub notices: Vec<String>,
}

/// Shares of block slots taken, over the simulated time.
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

/// Memory blocks that wait at switch egress, all ports seen alike.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Queue {
    /// The most that any one port ever held.
    pub egress_blocks_max: u64,
    /// Mean over time and ports.
    pub egress_blocks_mean: f64,
    /// What the fabric promises `egress_blocks_max` never exceeds; `None` for no promise.
    pub egress_blocks_bound: Option<u64>,
}

/// What the grant scheduler did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Matching {
    /// Matchings that granted something: runs of iterations until none had a loser.
    pub rounds: u64,
    /// Grants given.
    pub grants: u64,
    /// Mean of the iterations that a matching took to become maximal.
    pub iterations_mean: f64,
    /// Iterations of the longest matching.
    pub iterations_max: u64,
    /// Mean of the pairs that an iteration joined.
    pub size_mean: f64,
    /// Most pairs that an iteration joined: at most the ports.
    pub size_max: u64,
}

/// What became of packets; those that a port of a host or of a switch was handed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct PacketCounts {
    /// Sent by hosts, once more or for the first time.
    pub sent: u64,
    /// Come to their destination.
    pub delivered: u64,
    /// Dropped by a queue.
    pub dropped: u64,
    /// Delivered with the mark that congestion was experienced.
    pub marked: u64,
    /// Sent once more.
    pub retransmitted: u64,
    /// Deadlines that ran out.
    pub timeouts: u64,
    /// Times that a switch paused a link; absent where links are never paused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<u64>,
    /// Times that a queue took a packet's data; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<u64>,
    /// Times that a queue sent a packet back to its source; absent where none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub returned: Option<u64>,
}
