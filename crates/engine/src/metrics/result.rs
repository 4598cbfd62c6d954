use ethermem_units::Ps;
use serde::Serialize;

use super::{
    CdfPoint, FrameStats, Matching, MemoryTraffic, MessageWay, PacketCounts, ProgramStats, Queue,
    Steady, SteadyState, Utilisation,
};

/// The engine's facts about a run, without its messages.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFacts {
    /// Name of the fabric, as in scenarios.
    pub fabric: String,
    /// Label that tells this run from others of its fabric in a table or legend.
    pub label: String,
    /// The scenario or trace file, as it was given.
    pub scenario: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// Commit of the program, if it is known.
    pub commit: Option<String>,
    /// Number of nodes.
    pub nodes: u16,
    /// Load that the scenario requests; `None` for a trace or a program, which has its own load.
    pub load_requested: Option<f64>,
    /// Number of messages submitted to the fabric.
    pub messages_started: u64,
    /// The time of the last event.
    pub simulated: Ps,
    /// Number of events that the engine handled.
    pub events: u64,
    /// Real time of the run in seconds.
    pub wall_s: f64,
    /// Fallbacks, and other facts that a reader of the numbers must know.
    pub notices: Vec<String>,
}

/// The result of one run of one fabric. It serialises in the order of its fields;
/// `docs/reference/output.md` gives the meaning of each. Everything but `wall_s` is equal for equal
/// scenario, seed and commit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct RunResult {
    /// Name of the fabric, as in scenarios.
    pub fabric: String,
    /// Label that tells this run from others of its fabric in a table or legend.
    pub label: String,
    /// The scenario or trace file, as it was given.
    pub scenario: String,
    /// Seed of every random draw.
    pub seed: u64,
    /// Commit of the program, if it is known.
    pub commit: Option<String>,
    /// Number of messages submitted to the fabric: finished and lost ones.
    pub messages_started: u64,
    /// Number of messages that finished.
    pub messages_finished: u64,
    /// Number of messages that never ended.
    pub messages_lost: u64,
    /// Number of finished messages that the statistics in `kinds` cover.
    pub messages_measured: u64,
    /// Duration of arrivals before the first measured message.
    pub warmup_ns: f64,
    /// Duration of arrivals after the last measured message.
    pub cooldown_ns: f64,
    /// Time from the start to the last event.
    pub simulated_ns: f64,
    /// Load that the scenario requests; `None` for a trace or a program.
    pub load_requested: Option<f64>,
    /// Share of block slots that messages and their control blocks took: the mean over the links of
    /// the busier direction, over the whole run.
    pub load_measured: Option<f64>,
    /// Data bits of all finished messages over the simulated time, for the whole fabric.
    pub payload_goodput_gbps: f64,
    /// `payload_goodput_gbps` per node, to compare with the link rate.
    pub payload_goodput_gbps_per_node: f64,
    /// Share of the memory traffic's slots that carried control or framing.
    pub control_overhead: Option<f64>,
    /// The verdict on whether the run has settled; `None` for a trace or a program, which has one
    /// length.
    pub steady: Option<Steady>,
    /// The outcome of a program; absent from JSON for other workloads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<ProgramStats>,
    /// Slowdown and latency of measured messages.
    pub kinds: Kinds,
    /// Utilisation of the links.
    pub utilisation: Option<Utilisation>,
    /// Memory traffic queued at switch egress.
    pub queue: Option<Queue>,
    /// Counters of the grant scheduler.
    pub matching: Option<Matching>,
    /// Ethernet frames on the same links, where the scenario has them.
    pub frames: Option<FrameStats>,
    /// Counters of packets.
    pub packets: Option<PacketCounts>,
    /// Traffic of memories over time; absent from JSON unless the scenario requests it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memories: Option<MemoryTraffic>,
    /// Fallbacks, and other facts that a reader of the numbers must know.
    pub notices: Vec<String>,
    /// Number of events that the engine handled.
    pub events: u64,
    /// Real time of the run in seconds: the only field in which two runs of a seed may differ.
    pub wall_s: f64,
    /// The way of every finished message, if it was requested: for comparisons, not in JSON.
    #[serde(skip)]
    pub ways: Vec<MessageWay>,
}

impl RunResult {
    /// True unless the backlog grew to the end of the arrivals. The latencies of a load that is not
    /// sustained depend on the length of the run, so tables and figures leave them out.
    #[must_use]
    pub fn is_sustained(&self) -> bool {
        self.steady.as_ref().is_none_or(|steady| steady.state != SteadyState::NotSustained)
    }

    /// The statistics of all messages, as tables and figures show them. See [`RunResult::shown`].
    #[must_use]
    pub fn shown_all(&self) -> KindStats {
        self.shown(&self.kinds.all)
    }

    /// The statistics of a kind, as tables and figures show them: without latencies and slowdowns
    /// if the load was not sustained.
    #[must_use]
    pub fn shown(&self, stats: &KindStats) -> KindStats {
        if self.is_sustained() {
            return stats.clone();
        }
        KindStats { messages: stats.messages, bytes: stats.bytes, ..KindStats::default() }
    }
}

/// Statistics by kind of message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct Kinds {
    /// Reads.
    pub read: KindStats,
    /// Writes.
    pub write: KindStats,
    /// Atomics; absent from JSON when the run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rmw: Option<KindStats>,
    /// All kinds together, each message with equal weight.
    pub all: KindStats,
}

/// Slowdown (time over the time alone in the fabric) and latency (arrival to end) of measured
/// messages. `None` without messages. Means, minima and maxima are exact. Percentiles are of
/// nearest rank: never below the exact one, and at most 0.01 % (slowdown: and 0.0001) above it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(deny_unknown_fields))]
pub struct KindStats {
    /// Number of messages measured.
    pub messages: u64,
    /// Mean slowdown.
    pub slowdown_mean: Option<f64>,
    /// Median slowdown.
    pub slowdown_p50: Option<f64>,
    /// 99 % of messages have at most this slowdown.
    pub slowdown_p99: Option<f64>,
    /// 99.9 % of messages have at most this slowdown.
    pub slowdown_p999: Option<f64>,
    /// Least slowdown. It is below 1 only where company helps a message, as in a shared
    /// notification.
    pub slowdown_min: Option<f64>,
    /// Largest slowdown.
    pub slowdown_max: Option<f64>,
    /// Mean latency.
    pub latency_ns_mean: Option<f64>,
    /// Median latency.
    pub latency_ns_p50: Option<f64>,
    /// 99 % of messages take at most this long.
    pub latency_ns_p99: Option<f64>,
    /// 99.9 % of messages take at most this long.
    pub latency_ns_p999: Option<f64>,
    /// Longest latency.
    pub latency_ns_max: Option<f64>,
    /// Data bytes of these messages.
    pub bytes: u64,
    /// Points of the latency's distribution, in rising order, some 400: for figures, not in JSON.
    #[serde(skip)]
    pub latency_cdf: Vec<CdfPoint>,
}
