//! The result of a replay of lines.

use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_units::Ps;
use serde::Serialize;

use super::{LOCAL, LineSetup};

/// What happened in a replay, after its warm-up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Time of the program.
    pub duration: Ps,
    /// The part of it in which instructions ran.
    pub computing: Ps,
    /// Latency of each load.
    pub latencies: Vec<Ps>,
    /// Loads whose line was in the cache.
    pub load_hits: u64,
    /// Loads whose line was on its way: it was prefetched, or fetched for a store.
    pub load_late: u64,
    /// Fetches for stores.
    pub stores: u64,
    /// Fetches for stores whose line was in the cache.
    pub store_hits: u64,
    /// Write-backs by the processor.
    pub write_backs: u64,
    /// Write-backs whose line was in the cache.
    pub write_back_hits: u64,
    /// Lines that were prefetched.
    pub prefetches: u64,
    /// Prefetched lines that were used before they had to go.
    pub prefetched_used: u64,
    /// Lines that were read from the memory node.
    pub memory_reads: u64,
    /// Lines that were written to the memory node.
    pub memory_writes: u64,
}

impl Totals {
    pub(super) fn fetched(&mut self, is_load: bool, is_hit: bool, is_late: bool, latency: Ps) {
        if is_load {
            self.latencies.push(latency);
            self.load_hits += u64::from(is_hit);
            self.load_late += u64::from(is_late);
        } else {
            self.stores += 1;
            self.store_hits += u64::from(is_hit);
        }
    }

    pub(super) fn written(&mut self, is_hit: bool) {
        self.write_backs += 1;
        self.write_back_hits += u64::from(is_hit);
    }

    pub(super) fn memory_accesses(&mut self, is_read: bool) -> &mut u64 {
        if is_read { &mut self.memory_reads } else { &mut self.memory_writes }
    }
}

/// A fabric's result with one cache and one prefetcher.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LineOutcome {
    /// Name of the fabric, as in scenarios.
    pub fabric: String,
    /// Rate of both links in Gb/s.
    pub link_gbps: u64,
    /// Size of the cache at the compute node.
    pub cache_bytes: u64,
    /// Name of the prefetcher.
    pub prefetch: &'static str,
    /// Loads that the processor's caches did not have.
    pub loads: u64,
    /// Share of these whose line was in the cache at the compute node; `None` without loads.
    pub load_hit_rate: Option<f64>,
    /// Share of these whose line was on its way there.
    pub load_late_rate: Option<f64>,
    /// Mean latency of these loads in ns.
    pub load_latency_ns_mean: Option<f64>,
    /// Median of the latency in ns.
    pub load_latency_ns_p50: Option<f64>,
    /// 99th percentile of the latency in ns.
    pub load_latency_ns_p99: Option<f64>,
    /// Fetches for stores.
    pub stores: u64,
    /// Fetches for stores whose line was in the cache.
    pub store_hits: u64,
    /// Write-backs by the processor.
    pub write_backs: u64,
    /// Write-backs whose line was in the cache.
    pub write_back_hits: u64,
    /// Lines that were prefetched.
    pub prefetches: u64,
    /// Prefetched lines that were used before they had to go.
    pub prefetched_used: u64,
    /// Lines that were read from the memory node.
    pub memory_reads: u64,
    /// Lines that were written to the memory node.
    pub memory_writes: u64,
    /// Time of the program in ns.
    pub duration_ns: f64,
    /// That time if each of these loads takes [`LOCAL`], and nothing else holds it up.
    pub local_duration_ns: f64,
    /// Ratio of the two; `None` if no time passed.
    pub slowdown: Option<f64>,
}

const CSV_COLUMNS: [&str; 21] = [
    "fabric",
    "link_gbps",
    "cache_bytes",
    "prefetch",
    "loads",
    "load_hit_rate",
    "load_late_rate",
    "load_latency_ns_mean",
    "load_latency_ns_p50",
    "load_latency_ns_p99",
    "stores",
    "store_hits",
    "write_backs",
    "write_back_hits",
    "prefetches",
    "prefetched_used",
    "memory_reads",
    "memory_writes",
    "duration_ns",
    "local_duration_ns",
    "slowdown",
];
const HEAD: [&str; 10] = [
    "fabric",
    "cache",
    "prefetch",
    "hits %",
    "late %",
    "load ns",
    "p99 ns",
    "lines read",
    "lines written",
    "slowdown",
];
/// Columns to leave out on a narrow terminal.
const OPTIONAL_COLUMNS: [usize; 4] = [8, 7, 6, 4];

impl LineOutcome {
    pub(super) fn of(setup: &LineSetup, mut totals: Totals) -> LineOutcome {
        totals.latencies.sort_unstable();
        let latencies = &totals.latencies;
        let loads = latencies.len() as u64;
        let of_loads = |count: f64| (loads > 0).then(|| count / loads as f64);
        let quantile = |share: f64| {
            let last = latencies.len().checked_sub(1)?;
            Some(latencies[(last as f64 * share) as usize].as_ns_f64())
        };
        let sum: Ps = latencies.iter().copied().sum();
        let local = totals.computing + LOCAL * loads;
        let duration = totals.duration.as_ns_f64();
        LineOutcome {
            fabric: setup.fabric.name.to_owned(),
            link_gbps: setup.link_gbps,
            cache_bytes: setup.cache.0,
            prefetch: setup.prefetch.name(),
            loads,
            load_hit_rate: of_loads(totals.load_hits as f64),
            load_late_rate: of_loads(totals.load_late as f64),
            load_latency_ns_mean: of_loads(sum.as_ns_f64()),
            load_latency_ns_p50: quantile(0.5),
            load_latency_ns_p99: quantile(0.99),
            stores: totals.stores,
            store_hits: totals.store_hits,
            write_backs: totals.write_backs,
            write_back_hits: totals.write_back_hits,
            prefetches: totals.prefetches,
            prefetched_used: totals.prefetched_used,
            memory_reads: totals.memory_reads,
            memory_writes: totals.memory_writes,
            duration_ns: duration,
            local_duration_ns: local.as_ns_f64(),
            slowdown: (local > Ps::ZERO).then(|| duration / local.as_ns_f64()),
        }
    }

    /// The rows for people.
    #[must_use]
    pub fn table(outcomes: &[LineOutcome], style: TableStyle) -> String {
        let rows = outcomes.iter().map(LineOutcome::row).collect();
        let optional_columns = &OPTIONAL_COLUMNS;
        TextTable { header: &HEAD, text_columns: &[0, 1, 2], optional_columns, rows }.render(style)
    }

    /// The rows for spreadsheets.
    #[must_use]
    pub fn csv(outcomes: &[LineOutcome]) -> String {
        let mut text = CSV_COLUMNS.join(",") + "\n";
        for outcome in outcomes {
            text.push_str(&(outcome.fields().join(",") + "\n"));
        }
        text
    }

    fn row(&self) -> Vec<String> {
        let percent = |rate: Option<f64>| number(rate.map(|rate| 100.0 * rate), 1);
        vec![
            self.fabric.clone(),
            size(self.cache_bytes),
            self.prefetch.to_owned(),
            percent(self.load_hit_rate),
            percent(self.load_late_rate),
            number(self.load_latency_ns_mean, 1),
            number(self.load_latency_ns_p99, 1),
            self.memory_reads.to_string(),
            self.memory_writes.to_string(),
            number(self.slowdown, 3),
        ]
    }

    fn fields(&self) -> Vec<String> {
        vec![
            self.fabric.clone(),
            self.link_gbps.to_string(),
            self.cache_bytes.to_string(),
            self.prefetch.to_owned(),
            self.loads.to_string(),
            number(self.load_hit_rate, 6),
            number(self.load_late_rate, 6),
            number(self.load_latency_ns_mean, 3),
            number(self.load_latency_ns_p50, 3),
            number(self.load_latency_ns_p99, 3),
            self.stores.to_string(),
            self.store_hits.to_string(),
            self.write_backs.to_string(),
            self.write_back_hits.to_string(),
            self.prefetches.to_string(),
            self.prefetched_used.to_string(),
            self.memory_reads.to_string(),
            self.memory_writes.to_string(),
            number(Some(self.duration_ns), 3),
            number(Some(self.local_duration_ns), 3),
            number(self.slowdown, 6),
        ]
    }
}

fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(String::new, |value| format!("{value:.digits$}"))
}

/// The size of a cache for people.
fn size(bytes: u64) -> String {
    const UNITS: [(u64, &str); 2] = [(1 << 20, "MiB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit)) {
        _ if bytes == 0 => "none".to_owned(),
        Some((unit, name)) => format!("{} {name}", bytes / unit),
        None => format!("{bytes} B"),
    }
}
