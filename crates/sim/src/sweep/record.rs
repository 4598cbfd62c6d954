//! The record of a finished point.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::metrics::RunResult;

/// A number of a run's result that a sweep keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// The name of its column.
    pub name: &'static str,
    /// The place in the result's JSON.
    pointer: &'static str,
}

const fn metric(name: &'static str, pointer: &'static str) -> Metric {
    Metric { name, pointer }
}

/// All metrics, in the order of the columns.
pub const METRICS: &[Metric] = &[
    metric("slowdown_mean", "/kinds/all/slowdown_mean"),
    metric("slowdown_p50", "/kinds/all/slowdown_p50"),
    metric("slowdown_p99", "/kinds/all/slowdown_p99"),
    metric("slowdown_p999", "/kinds/all/slowdown_p999"),
    metric("slowdown_max", "/kinds/all/slowdown_max"),
    metric("latency_ns_mean", "/kinds/all/latency_ns_mean"),
    metric("latency_ns_p50", "/kinds/all/latency_ns_p50"),
    metric("latency_ns_p99", "/kinds/all/latency_ns_p99"),
    metric("latency_ns_p999", "/kinds/all/latency_ns_p999"),
    metric("latency_ns_max", "/kinds/all/latency_ns_max"),
    metric("read_slowdown_mean", "/kinds/read/slowdown_mean"),
    metric("read_slowdown_p99", "/kinds/read/slowdown_p99"),
    metric("read_latency_ns_mean", "/kinds/read/latency_ns_mean"),
    metric("read_latency_ns_p99", "/kinds/read/latency_ns_p99"),
    metric("write_slowdown_mean", "/kinds/write/slowdown_mean"),
    metric("write_slowdown_p99", "/kinds/write/slowdown_p99"),
    metric("write_latency_ns_mean", "/kinds/write/latency_ns_mean"),
    metric("write_latency_ns_p99", "/kinds/write/latency_ns_p99"),
    metric("load_measured", "/load_measured"),
    metric("payload_goodput_gbps", "/payload_goodput_gbps"),
    metric("control_overhead", "/control_overhead"),
    metric("queue_egress_blocks_max", "/queue/egress_blocks_max"),
    metric("messages_started", "/messages_started"),
    metric("messages_lost", "/messages_lost"),
    metric("messages_measured", "/messages_measured"),
    metric("simulated_ns", "/simulated_ns"),
    metric("events", "/events"),
    metric(SUSTAINED, ""),
];

/// 1 for a run whose load the fabric sustains, or that has none, and 0 for another one.
pub(super) const SUSTAINED: &str = "sustained";

/// A finished point: a line of the journal, a row of the results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The point's identity.
    pub point: String,
    /// The numbers of [`METRICS`]; `None` if the run lacks the number.
    pub values: Vec<Option<f64>>,
    /// Fallbacks, and other facts that a reader of the numbers must know.
    pub notices: Vec<String>,
}

impl Record {
    /// The record of `result`, the run of the point `point`.
    ///
    /// # Panics
    /// Never: a result serialises.
    #[must_use]
    pub fn new(point: super::Identity, result: &RunResult) -> Record {
        let json = serde_json::to_value(result).expect("keys are strings");
        let value = |metric: &Metric| match metric.name {
            SUSTAINED => Some(f64::from(u8::from(result.is_sustained()))),
            _ => json.pointer(metric.pointer).and_then(Value::as_f64),
        };
        Record {
            point: point.to_string(),
            values: METRICS.iter().map(value).collect(),
            notices: result.notices.clone(),
        }
    }

    /// The value of a metric of [`METRICS`].
    pub(super) fn value(&self, at: usize) -> Option<f64> {
        self.values[at]
    }
}
