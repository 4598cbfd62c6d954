//! The state of a memory node, for people.

use std::collections::BTreeMap;

use ethermem_node::{Status, TenantStatus};
use ethermem_sim::output::{TableStyle, TextTable};

/// The state of a node and of its tenants.
#[must_use]
pub fn table(status: &Status, style: TableStyle) -> String {
    let header = ["node", ""];
    let rows = node_rows(status).into_iter().map(|(what, value)| vec![what.to_owned(), value]);
    let rows = rows.collect();
    let node = TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows };
    let header =
        ["tenant", "memory, B", "processes", "read, B", "written, B", "refused", "operations"];
    let rows = status.tenants.iter().map(tenant_row).collect();
    let tenants =
        TextTable { header: &header, text_columns: &[0, 6], optional_columns: &[6], rows };
    format!("{}\n{}", node.render(style), tenants.render(style))
}

fn node_rows(status: &Status) -> Vec<(&'static str, String)> {
    let bound = |ns: Option<u64>| ns.map_or("-".to_owned(), |ns| format!("up to {ns}"));
    vec![
        ("state", status.state.clone()),
        ("epoch", status.epoch.to_string()),
        ("uptime, s", format!("{:.1}", status.uptime_s)),
        ("memory, B", status.memory_bytes.to_string()),
        ("free, B", status.free_bytes.to_string()),
        ("processes", status.processes.to_string()),
        ("datagrams", status.datagrams.to_string()),
        ("requests", status.requests.to_string()),
        ("executed", status.executed.to_string()),
        ("repeated", status.repeated.to_string()),
        ("refused", counts(&status.refused)),
        ("dropped", counts(&status.dropped)),
        ("page faults", format!("{}, {} dry", status.page_faults, status.page_faults_dry)),
        ("TLB hits, misses", format!("{}, {}", status.tlb_hits, status.tlb_misses)),
        ("leases lapsed", status.leases_lapsed.to_string()),
        ("serving p50, ns", bound(status.serving_ns_p50_max)),
        ("serving p99, ns", bound(status.serving_ns_p99_max)),
    ]
}

fn tenant_row(tenant: &TenantStatus) -> Vec<String> {
    vec![
        tenant.name.clone(),
        tenant.memory_bytes.to_string(),
        tenant.processes.to_string(),
        tenant.read_bytes.to_string(),
        tenant.written_bytes.to_string(),
        (tenant.over_rate + tenant.over_quota).to_string(),
        counts(&tenant.operations),
    ]
}

/// Text of the counters that are not zero.
fn counts(counts: &BTreeMap<String, u64>) -> String {
    let some = counts.iter().filter(|&(_, &count)| count > 0);
    let some: Vec<String> = some.map(|(name, count)| format!("{count} {name}")).collect();
    if some.is_empty() { "-".to_owned() } else { some.join(", ") }
}
