//! A node's counters in the format of Prometheus (OpenMetrics).

use std::fmt;

use ethermem_udp::{Latencies, Published, Snapshot};
use ethermem_wire::clio::OPCODES;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::status::{dropped, name_of, refused, stopped};

/// The newest snapshot of a node, as the source of its metrics.
pub(crate) struct Metrics {
    pub(crate) published: Published,
    pub(crate) names: Vec<(u16, String)>,
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// The snapshot at this moment.
    pub(crate) fn snapshot(&self) -> Snapshot {
        // A reader that panicked has changed nothing.
        self.published.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

/// All metrics as text.
pub(crate) fn text(registry: &Registry) -> String {
    let mut text = String::new();
    let encoded = prometheus_client::encoding::text::encode(&mut text, registry);
    encoded.expect("text takes any text");
    text
}

/// The metrics of a node, under the project's prefix.
pub(crate) fn registry(metrics: Metrics) -> Registry {
    let mut registry = Registry::with_prefix("ethermem_node");
    registry.register_collector(Box::new(metrics));
    registry
}

type Encoder<'a> = DescriptorEncoder<'a>;

fn counter(encoder: &mut Encoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    metric.encode_counter::<NoLabelSet, _, u64>(&value, None)
}

fn gauge(
    encoder: &mut Encoder<'_>,
    (name, unit): (&str, Option<&Unit>),
    help: &str,
    value: f64,
) -> fmt::Result {
    let mut metric = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    metric.encode_gauge(&value)
}

/// Encodes a counter for each value of a label.
fn by<'v>(
    encoder: &mut Encoder<'_>,
    (name, label): (&str, &'static str),
    help: &str,
    values: impl IntoIterator<Item = (&'v str, u64)>,
) -> fmt::Result {
    let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
    for (value, count) in values {
        let labels = [(label, value)];
        let mut metric = family.encode_family(&labels)?;
        metric.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
    }
    Ok(())
}

impl Collector for Metrics {
    fn encode(&self, mut encoder: Encoder<'_>) -> fmt::Result {
        let snapshot = self.snapshot();
        self.encode_node(&mut encoder, &snapshot)?;
        self.encode_tenants(&mut encoder, &snapshot)?;
        encode_serving(&mut encoder, &snapshot.serving)
    }
}

impl Metrics {
    fn encode_node(&self, encoder: &mut Encoder<'_>, snapshot: &Snapshot) -> fmt::Result {
        let (node, map, server) = (&snapshot.node, &snapshot.map, &snapshot.server);
        for (name, help, value) in [
            ("datagrams", "Datagrams that came", node.datagrams),
            ("received_bytes", "Octets of datagrams that came", server.received_bytes),
            ("sent_bytes", "Octets of answers", server.sent_bytes),
            ("requests", "Requests that came, good or not", node.requests),
            ("executed", "Requests that were executed", node.executed),
            ("repeated", "Requests tried again after they were executed", node.repeated),
            ("page_faults", "Pages touched for the first time", map.faults),
            ("page_faults_dry", "Page faults that found no page ready", map.dry_faults),
            ("tlb_hits", "Translations that the TLB had", map.tlb_hits),
            ("tlb_misses", "Translations that took the page table", map.table_accesses),
            ("allocation_retries", "Ranges tried that overflow a bucket", map.allocation_retries),
            ("leases_lapsed", "Processes whose lease ended", node.lapsed),
            ("offload_slices", "Slices of operations at the node", node.offload_slices),
            ("rings_renewed", "Times that the ring was made anew", server.rings_renewed),
            ("sleeps", "Times that the server went to sleep", server.sleeps),
            ("gave_way", "Times that polling was given up for other programs", server.gave_way),
        ] {
            counter(encoder, name, help, value)?;
        }
        by(encoder, ("dropped", "reason"), "Datagrams dropped, and answers", dropped(snapshot))?;
        let help = "Operations at the node that were stopped";
        by(encoder, ("offloads_stopped", "reason"), help, stopped(snapshot))?;
        by(encoder, ("refused", "reason"), "Requests refused unexecuted", refused(snapshot))?;
        let bytes = Some(&Unit::Bytes);
        let uptime = snapshot.uptime.0 as f64 / 1e9;
        for (name, help, value) in [
            (("uptime", Some(&Unit::Seconds)), "Since the start", uptime),
            (("memory", bytes), "Memory that is served", snapshot.memory.0 as f64),
            (("free", bytes), "Memory that is not allocated", snapshot.free.0 as f64),
            (("processes", None), "Processes of all tenants", snapshot.processes as f64),
            (("ending", None), "1 once no new process is taken", u8::from(snapshot.ending).into()),
        ] {
            gauge(encoder, name, help, value)?;
        }
        Ok(())
    }

    fn encode_tenants(&self, encoder: &mut Encoder<'_>, snapshot: &Snapshot) -> fmt::Result {
        let name = |id: u16| name_of(&self.names, id);
        let help = "Requests that were executed";
        let counters = MetricType::Counter;
        let mut family = encoder.encode_descriptor("operations", help, None, counters)?;
        for (id, used) in &snapshot.tenants {
            let name = name(id.0);
            for (row, count) in OPCODES.iter().zip(used.operations) {
                let labels = [("tenant", name.as_str()), ("operation", row.name)];
                let mut metric = family.encode_family(&labels)?;
                metric.encode_counter::<NoLabelSet, _, u64>(&count, None)?;
            }
        }
        let names: Vec<String> = snapshot.tenants.iter().map(|(id, _)| name(id.0)).collect();
        let uses = || names.iter().map(String::as_str).zip(snapshot.tenants.iter().map(|t| &t.1));
        let read = uses().map(|(name, used)| (name, used.read_bytes));
        by(encoder, ("tenant_read_bytes", "tenant"), "Bytes read", read)?;
        let written = uses().map(|(name, used)| (name, used.written_bytes));
        by(encoder, ("tenant_written_bytes", "tenant"), "Bytes written", written)?;
        let over = uses().map(|(name, used)| (name, used.over_rate));
        by(encoder, ("tenant_over_rate", "tenant"), "Requests over the rate", over)?;
        let over = uses().map(|(name, used)| (name, used.over_quota));
        by(encoder, ("tenant_over_quota", "tenant"), "Requests over the quota", over)?;
        let fuel = uses().map(|(name, used)| (name, used.offload_fuel));
        by(encoder, ("tenant_offload_fuel", "tenant"), "Fuel of operations", fuel)?;
        let (bytes, gauges) = (Some(&Unit::Bytes), MetricType::Gauge);
        let mut family =
            encoder.encode_descriptor("tenant_memory", "Memory allocated", bytes, gauges)?;
        for (name, used) in uses() {
            family.encode_family(&[("tenant", name)])?.encode_gauge(&(used.memory_bytes as f64))?;
        }
        let mut family =
            encoder.encode_descriptor("tenant_processes", "Processes", None, gauges)?;
        for (name, used) in uses() {
            family.encode_family(&[("tenant", name)])?.encode_gauge(&i64::from(used.processes))?;
        }
        Ok(())
    }
}

fn encode_serving(encoder: &mut Encoder<'_>, serving: &Latencies) -> fmt::Result {
    let help = "From the socket to the socket, of one in sixteen datagrams answered";
    let seconds = Some(&Unit::Seconds);
    let mut metric = encoder.encode_descriptor("serving", help, seconds, MetricType::Histogram)?;
    let bucket = |(at, &count): (usize, &u64)| {
        (Latencies::bound(at).map_or(f64::INFINITY, |bound| bound.0 as f64 / 1e9), count)
    };
    let buckets: Vec<(f64, u64)> = serving.counts.iter().enumerate().map(bucket).collect();
    let count = serving.counts.iter().sum();
    metric.encode_histogram::<NoLabelSet>(serving.sum.0 as f64 / 1e9, count, &buckets, None)
}
