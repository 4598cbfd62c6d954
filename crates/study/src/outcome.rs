//! A fabric's result for a replay.

use ethermem_sim::metrics::MessageWay;
use ethermem_sim::metrics::{KindStats, RunResult};
use ethermem_sim::output::{OutputError, TableStyle, TextTable};
use ethermem_trace::{Completion, CompletionWriter, FlowKind};
use ethermem_units::Ps;
use serde::Serialize;

use crate::{Attribution, Embedding, Flows, Offered, Plan};

/// Fractions of the distribution that are reported.
const SHARES: [f64; 12] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 1.0];

/// A fabric's result. All but `run.wall_s` depends only on traces, plan and version.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Outcome {
    /// Name of the fabric, as in scenarios.
    pub fabric: String,
    /// `leaf-spine` or `single-switch`.
    pub topology: &'static str,
    /// Location of a cluster's nodes.
    pub scope: &'static str,
    /// Rate of every node's link in Gb/s.
    pub link_gbps: u64,
    /// Number of blades of a cluster.
    pub cluster: u16,
    /// Number of nodes of the network.
    pub nodes: u16,
    /// Number of clusters.
    pub clusters: u16,
    /// How accesses of the traces became arrivals.
    pub arrivals: &'static str,
    /// Load offered to the links.
    pub offered: Offered,
    /// True if a link is offered more than its capacity.
    pub overload: bool,
    /// Time in ns from the last arrival to the end of the last message.
    pub drain_ns: f64,
    /// Mean ratio of completion time to the unloaded completion time, all accesses weighted
    /// equally.
    pub slowdown_mean: Option<f64>,
    /// Distributions of completion times.
    pub completion: Times,
    /// Number of accesses that no thread waits for.
    pub prefetched_accesses: u64,
    /// What became of traces of disks and the network, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attribution: Option<Attribution>,
    /// The flow of each message.
    #[serde(skip)]
    pub flows: Flows,
    /// Complete result of the run.
    pub run: RunResult,
}

/// Distributions of completion times; empty if there is no such access.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Times {
    /// Distribution of reads that a thread waits for.
    pub read: Vec<Quantile>,
    /// Distribution of prefetched reads, for which no thread waits.
    pub prefetch: Vec<Quantile>,
    /// Distribution of write-backs.
    pub write_back: Vec<Quantile>,
    /// Distribution of reads of disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_read: Vec<Quantile>,
    /// Distribution of writes to disks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disk_write: Vec<Quantile>,
    /// Distribution of flows between compute blades.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub network: Vec<Quantile>,
    /// Distribution of all accesses.
    pub all: Vec<Quantile>,
}

/// A point of a distribution, by nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// Fraction of the accesses that take at most `ns`.
    pub share: f64,
    /// Completion time in ns.
    pub ns: f64,
}

impl Outcome {
    /// The outcome of a replay's run; `run` has the path of every message.
    #[must_use]
    pub fn of(
        plan: &Plan,
        embedding: &Embedding,
        (offered, flows): (Offered, Flows),
        topology: &'static str,
        run: RunResult,
    ) -> Outcome {
        let of = |row: Row| quantiles(&run.ways, |way| row.holds(&flows, way));
        let last = run.ways.iter().map(|way| way.message.arrival).max().unwrap_or(Ps::ZERO);
        Outcome {
            fabric: run.fabric.clone(),
            topology,
            scope: plan.scope.name(),
            link_gbps: plan.link_gbps,
            cluster: plan.blades.count(),
            nodes: plan.nodes,
            clusters: embedding.clusters(),
            arrivals: plan.arrivals.name(),
            offered,
            overload: offered.is_overload(),
            drain_ns: (run.simulated_ns - last.as_ns_f64()).max(0.0),
            slowdown_mean: run.kinds.all.slowdown_mean,
            completion: Times {
                read: of(Row::Read),
                prefetch: of(Row::Prefetch),
                write_back: of(Row::Flow(FlowKind::WriteBack)),
                disk_read: of(Row::Flow(FlowKind::DiskRead)),
                disk_write: of(Row::Flow(FlowKind::DiskWrite)),
                network: of(Row::Flow(FlowKind::Network)),
                all: quantiles(&run.ways, |_| true),
            },
            prefetched_accesses: flows.prefetched(),
            attribution: None,
            flows,
            run,
        }
    }

    /// Adds what became of traces of disks and the network, if there are any.
    pub fn attribute(&mut self, attribution: Option<Attribution>) {
        self.run.notices.extend(attribution.iter().flat_map(Attribution::notices));
        self.attribution = attribution;
    }

    /// Outcomes as a table: a row for reads, one for prefetched reads, one for write-backs,
    /// one each for reads of disks, writes to disks and the network, one for all.
    #[must_use]
    pub fn table(outcomes: &[Outcome], style: TableStyle) -> String {
        let rows = outcomes.iter().flat_map(Outcome::rows).collect();
        let table = TextTable {
            header: &COLUMNS,
            text_columns: &[0, 1, 2, 3],
            optional_columns: &[5, 12],
            rows,
        };
        let mut text = table.render(style);
        for outcome in outcomes {
            let run = &outcome.run;
            if run.messages_lost > 0 {
                let (name, lost) = (&outcome.fabric, run.messages_lost);
                text.push_str(&format!("{name}: {lost} accesses were lost\n"));
            }
            for notice in &run.notices {
                text.push_str(&format!("{}: {notice}\n", outcome.fabric));
            }
        }
        text
    }

    /// The table's rows, separated by commas, with a header that names units.
    #[must_use]
    pub fn csv(outcomes: &[Outcome]) -> String {
        let mut text = CSV_COLUMNS.join(",") + "\n";
        for row in outcomes.iter().flat_map(Outcome::rows) {
            text.push_str(&(row.join(",") + "\n"));
        }
        text
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let times = &self.completion;
        // The run does not distinguish the kinds of reads, nor those of writes.
        let stats = |row: Row| {
            KindStats::over(self.run.ways.iter().filter(|way| row.holds(&self.flows, way)))
        };
        let rows = [
            ("read", Row::Read, &times.read),
            ("prefetch", Row::Prefetch, &times.prefetch),
            (FlowKind::WriteBack.name(), Row::Flow(FlowKind::WriteBack), &times.write_back),
            (FlowKind::DiskRead.name(), Row::Flow(FlowKind::DiskRead), &times.disk_read),
            (FlowKind::DiskWrite.name(), Row::Flow(FlowKind::DiskWrite), &times.disk_write),
            (FlowKind::Network.name(), Row::Flow(FlowKind::Network), &times.network),
        ];
        let mut shown = Vec::new();
        for (kind, row, times) in rows {
            let stats = stats(row);
            if stats.messages > 0 {
                shown.push(self.row(kind, &stats, times));
            }
        }
        let all = &self.run.kinds.all;
        if all.messages > 0 {
            shown.push(self.row("all", all, &times.all));
        }
        shown
    }

    fn row(&self, kind: &str, stats: &KindStats, times: &[Quantile]) -> Vec<String> {
        let number = |value: Option<f64>, digits: usize| {
            value.map_or_else(String::new, |value| format!("{value:.digits$}"))
        };
        let at = |share: f64| {
            let found = times.iter().find(|quantile| quantile.share == share);
            number(found.map(|quantile| quantile.ns), 1)
        };
        vec![
            self.fabric.clone(),
            self.topology.to_owned(),
            self.scope.to_owned(),
            kind.to_owned(),
            format!("{:.3}", self.offered.busiest_load),
            stats.messages.to_string(),
            number(stats.slowdown_mean, 3),
            number(stats.slowdown_p99, 3),
            number(stats.latency_ns_mean, 1),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            at(1.0),
        ]
    }
}

/// A row of the table, before that of all accesses.
#[derive(Clone, Copy)]
enum Row {
    /// Reads of pages that a thread waits for.
    Read,
    /// Reads of pages that no thread waits for.
    Prefetch,
    /// Flows of any other kind.
    Flow(FlowKind),
}

impl Row {
    fn holds(self, flows: &Flows, way: &MessageWay) -> bool {
        let index = way.message.index;
        let is_read = flows.kind(index) == FlowKind::Read;
        match self {
            Row::Read => is_read && !flows.is_prefetched(index),
            Row::Prefetch => is_read && flows.is_prefetched(index),
            Row::Flow(kind) => flows.kind(index) == kind,
        }
    }
}

const COLUMNS: [&str; 14] = [
    "fabric",
    "topology",
    "scope",
    "kind",
    "load",
    "accesses",
    "slowdown",
    "p99",
    "completion ns",
    "p50 ns",
    "p90 ns",
    "p99 ns",
    "p99.9 ns",
    "max ns",
];
const CSV_COLUMNS: [&str; 14] = [
    "fabric",
    "topology",
    "scope",
    "kind",
    "busiest_load",
    "accesses",
    "slowdown_mean",
    "slowdown_p99",
    "completion_ns_mean",
    "completion_ns_p50",
    "completion_ns_p90",
    "completion_ns_p99",
    "completion_ns_p999",
    "completion_ns_max",
];

/// Writes the completion time of every access of all outcomes as Parquet.
///
/// # Errors
/// [`OutputError`] when the file cannot be written; then it does not exist.
pub fn write_completions(
    mut writer: CompletionWriter,
    outcomes: &[Outcome],
    embedding: &Embedding,
    command: &str,
) -> Result<(), OutputError> {
    for outcome in outcomes {
        writer.fabric(&outcome.fabric)?;
        for way in &outcome.run.ways {
            let message = &way.message;
            let cluster = embedding.cluster_of(message.compute);
            writer.push(Completion {
                time: message.arrival,
                cluster: cluster.expect("messages are of clusters"),
                compute: message.compute,
                memory: message.memory,
                kind: outcome.flows.kind(message.index),
                bytes: message.bytes,
                completion: way.finished - message.arrival,
                alone: way.alone,
                prefetched: outcome.flows.is_prefetched(message.index),
            })?;
        }
    }
    writer.finish(&[("command", command.to_owned())])
}

fn quantiles(ways: &[MessageWay], is_asked: impl Fn(&MessageWay) -> bool) -> Vec<Quantile> {
    let asked = ways.iter().filter(|way| is_asked(way));
    let mut times: Vec<Ps> = asked.map(|way| way.finished - way.message.arrival).collect();
    times.sort_unstable();
    let Some(last) = times.len().checked_sub(1) else { return Vec::new() };
    let at = |share: f64| {
        let rank = (share * times.len() as f64).ceil() as usize;
        times[rank.saturating_sub(1).min(last)]
    };
    SHARES.map(|share| Quantile { share, ns: at(share).as_ns_f64() }).to_vec()
}
