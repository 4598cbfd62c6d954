//! A node's state as data: what `ethermem node status` shows.

use std::collections::BTreeMap;

use ethermem_clio::offload::Stop;
use ethermem_udp::{Latencies, Snapshot};
use ethermem_wire::clio::OPCODES;
use serde::{Deserialize, Serialize};

/// Of one moment; counts are since the start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// `serving`, or `ending` once it takes no more processes.
    pub state: String,
    /// Which life of the node.
    pub epoch: u32,
    /// Since the start.
    pub uptime_s: f64,
    /// All that it serves.
    pub memory_bytes: u64,
    /// What of it is not allocated.
    pub free_bytes: u64,
    /// Of all tenants.
    pub processes: u64,
    /// Datagrams that came.
    pub datagrams: u64,
    /// Their octets.
    pub received_bytes: u64,
    /// Octets of answers.
    pub sent_bytes: u64,
    /// Datagrams and answers that were dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Requests that came.
    pub requests: u64,
    /// Requests that were executed.
    pub executed: u64,
    /// Requests that had been executed, and were answered from memory.
    pub repeated: u64,
    /// Requests that were refused, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Pages that were touched for the first time.
    pub page_faults: u64,
    /// Faults that found no page ready.
    pub page_faults_dry: u64,
    /// Translations that the TLB had.
    pub tlb_hits: u64,
    /// Translations that took the page table.
    pub tlb_misses: u64,
    /// Ranges that were tried and would have overflowed a bucket of the page table.
    pub allocation_retries: u64,
    /// Processes whose lease ended.
    pub leases_lapsed: u64,
    /// Slices of operations at the node that are not done in one go.
    pub offload_slices: u64,
    /// Such operations that were stopped, by reason.
    pub offloads_stopped: BTreeMap<String, u64>,
    /// Times that the server went to sleep.
    pub sleeps: u64,
    /// Half of the answers took at most so long, from the socket to the socket.
    pub serving_ns_p50_max: Option<u64>,
    /// Ninety-nine of a hundred.
    pub serving_ns_p99_max: Option<u64>,
    /// Who uses it.
    pub tenants: Vec<TenantStatus>,
}

/// What a tenant has and did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantStatus {
    /// What people call it.
    pub name: String,
    /// Its number.
    pub tenant: u16,
    /// What is allocated to its processes.
    pub memory_bytes: u64,
    /// How many they are.
    pub processes: u64,
    /// Bytes that it read.
    pub read_bytes: u64,
    /// Bytes that it wrote.
    pub written_bytes: u64,
    /// Requests over its rate.
    pub over_rate: u64,
    /// Requests for more than it may have.
    pub over_quota: u64,
    /// Fuel that its operations at the node used.
    pub offload_fuel: u64,
    /// Requests that were executed, by kind, those that are none left out.
    pub operations: BTreeMap<String, u64>,
}

/// Why datagrams and answers are dropped, and how many were.
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

/// Why requests are refused as a whole, and how many were.
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

/// Why operations at the node are stopped, and how many were.
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

/// The bound that a share of the answers are within; `None` of none, or beyond all bounds.
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
    /// What a snapshot says, with tenants by their names.
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
            serving_ns_p50_max: within(&snapshot.serving, 0.5),
            serving_ns_p99_max: within(&snapshot.serving, 0.99),
            tenants: tenants.collect(),
        }
    }
}

/// What a tenant is called; its number where nobody named it.
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
