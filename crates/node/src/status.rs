//! A node's state as data, which `ethermem node status` shows.

use std::collections::BTreeMap;

use ethermem_clio::offload::Stop;
use ethermem_udp::{Latencies, Snapshot};
use ethermem_wire::clio::OPCODES;
use serde::{Deserialize, Serialize};

/// State at one moment; counts are since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `serving`, or `ending` once it accepts no more processes.
    pub state: String,
    /// Number of the node's life, which changes with a restart.
    pub epoch: u32,
    /// Time since the start in seconds.
    pub uptime_s: f64,
    /// Memory that it serves, in bytes.
    pub memory_bytes: u64,
    /// Memory that is not allocated, in bytes.
    pub free_bytes: u64,
    /// Number of processes of all tenants.
    pub processes: u64,
    /// Number of datagrams received.
    pub datagrams: u64,
    /// Octets of datagrams received.
    pub received_bytes: u64,
    /// Octets of responses sent.
    pub sent_bytes: u64,
    /// Datagrams and responses that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Number of requests received.
    pub requests: u64,
    /// Number of requests executed.
    pub executed: u64,
    /// Duplicate requests, answered from stored results.
    pub repeated: u64,
    /// Requests that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Number of first touches of pages.
    pub page_faults: u64,
    /// Page faults that found no page ready.
    pub page_faults_dry: u64,
    /// Address translations that hit the TLB.
    pub tlb_hits: u64,
    /// Address translations that needed the page table.
    pub tlb_misses: u64,
    /// Ranges that were rejected because a bucket of the page table would have overflowed.
    pub allocation_retries: u64,
    /// Processes whose lease expired.
    pub leases_lapsed: u64,
    /// Slices of operations at the node that are executed in several slices.
    pub offload_slices: u64,
    /// Operations at the node that were stopped, by reason.
    pub offloads_stopped: BTreeMap<String, u64>,
    /// Number of times that the server went to sleep.
    pub sleeps: u64,
    /// Number of times that the server gave up polling for other programs on its processor.
    pub gave_way: u64,
    /// Upper bound in nanoseconds of the median serving time, from socket to socket.
    pub serving_ns_p50_max: Option<u64>,
    /// Upper bound in nanoseconds of the 99th percentile of the serving time.
    pub serving_ns_p99_max: Option<u64>,
    /// Status of each tenant.
    pub tenants: Vec<TenantStatus>,
}

/// Use by one tenant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// Name for people.
    pub name: String,
    /// Number of the tenant.
    pub tenant: u16,
    /// Memory allocated to its processes, in bytes.
    pub memory_bytes: u64,
    /// Number of its processes.
    pub processes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Requests refused for exceeding its rate.
    pub over_rate: u64,
    /// Requests refused for exceeding its quota.
    pub over_quota: u64,
    /// Fuel used by its operations at the node.
    pub offload_fuel: u64,
    /// Executed requests by kind; kinds with none are omitted.
    pub operations: BTreeMap<String, u64>,
}

/// Numbers of dropped datagrams and responses, by reason.
pub(crate) fn dropped(snapshot: &Snapshot) -> [(&'static str, u64); 8] {
    let node = &snapshot.node;
    [
        ("malformed", node.dropped_malformed),
        ("protection", node.dropped_protection),
        ("tenant", node.dropped_tenant),
        ("key", node.dropped_corrupt),
        ("replayed", node.dropped_replayed),
        ("frame", snapshot.server.frames_dropped),
        ("ring", snapshot.server.frames_overrun),
        ("answer", snapshot.server.answers_dropped),
    ]
}

/// Numbers of requests refused as a whole, by reason.
pub(crate) fn refused(snapshot: &Snapshot) -> [(&'static str, u64); 5] {
    let node = &snapshot.node;
    [
        ("busy", node.busy),
        ("expired", node.expired),
        ("epoch", node.wrong_epoch),
        ("rate", node.over_rate),
        ("no-room", node.unanswered),
    ]
}

/// Numbers of stopped operations at the node, by reason.
pub(crate) fn stopped(snapshot: &Snapshot) -> [(&'static str, u64); Stop::ALL.len()] {
    Stop::ALL.map(|why| {
        let name = match why {
            Stop::Trap => "trap",
            Stop::Fuel => "fuel",
            Stop::Memory => "memory",
        };
        (name, snapshot.node.offload_stopped[why as usize])
    })
}

fn named<const N: usize>(counts: [(&'static str, u64); N]) -> BTreeMap<String, u64> {
    counts.map(|(name, count)| (name.to_owned(), count)).into()
}

/// Upper bound of a quantile of serving times; `None` without samples, or above all bounds.
fn within(latencies: &Latencies, share: f64) -> Option<u64> {
    let all: u64 = latencies.counts.iter().sum();
    let wanted = ((all as f64 * share).ceil() as u64).max(1);
    let mut sum = 0;
    let at = latencies.counts.iter().position(|count| {
        sum += count;
        sum >= wanted
    });
    Latencies::bound(at?).map(|bound| bound.0)
}

impl Status {
    /// Status from a snapshot, with tenants' names.
    pub(crate) fn of(snapshot: &Snapshot, names: &[(u16, String)]) -> Status {
        let (node, map) = (&snapshot.node, &snapshot.map);
        let tenants = snapshot.tenants.iter().map(|(id, used)| {
            let counted = OPCODES.iter().zip(used.operations);
            let done = counted.filter(|&(_, count)| count > 0);
            TenantStatus {
                name: name_of(names, id.0),
                tenant: id.0,
                memory_bytes: used.memory_bytes,
                processes: used.processes.into(),
                read_bytes: used.read_bytes,
                written_bytes: used.written_bytes,
                over_rate: used.over_rate,
                over_quota: used.over_quota,
                offload_fuel: used.offload_fuel,
                operations: done.map(|(row, count)| (row.name.to_owned(), count)).collect(),
            }
        });
        Status {
            state: if snapshot.ending { "ending" } else { "serving" }.to_owned(),
            epoch: snapshot.epoch.0,
            uptime_s: snapshot.uptime.0 as f64 / 1e9,
            memory_bytes: snapshot.memory.0,
            free_bytes: snapshot.free.0,
            processes: snapshot.processes as u64,
            datagrams: node.datagrams,
            received_bytes: snapshot.server.received_bytes,
            sent_bytes: snapshot.server.sent_bytes,
            dropped: named(dropped(snapshot)),
            requests: node.requests,
            executed: node.executed,
            repeated: node.repeated,
            refused: named(refused(snapshot)),
            page_faults: map.faults,
            page_faults_dry: map.dry_faults,
            tlb_hits: map.tlb_hits,
            tlb_misses: map.table_accesses,
            allocation_retries: map.allocation_retries,
            leases_lapsed: node.lapsed,
            offload_slices: node.offload_slices,
            offloads_stopped: named(stopped(snapshot)),
            sleeps: snapshot.server.sleeps,
            gave_way: snapshot.server.gave_way,
            serving_ns_p50_max: within(&snapshot.serving, 0.5),
            serving_ns_p99_max: within(&snapshot.serving, 0.99),
            tenants: tenants.collect(),
        }
    }
}

/// Name of a tenant; its number if it has no name.
pub(crate) fn name_of(names: &[(u16, String)], tenant: u16) -> String {
    let named = names.iter().find(|(id, _)| *id == tenant);
    named.map_or_else(|| tenant.to_string(), |(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_within_the_bound_of_its_bucket() {
        let mut latencies = Latencies::default();
        assert_eq!(within(&latencies, 0.5), None);
        latencies.counts[2] = 98;
        latencies.counts[5] = 2;
        assert_eq!(within(&latencies, 0.5), Latencies::bound(2).map(|bound| bound.0));
        assert_eq!(within(&latencies, 0.99), Latencies::bound(5).map(|bound| bound.0));
        *latencies.counts.last_mut().unwrap() = 1000;
        assert_eq!(within(&latencies, 0.99), None);
    }
}
