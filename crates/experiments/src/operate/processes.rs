//! The processes of a memory node, for people.

use ethermem_node::ProcessStatus;
use ethermem_sim::output::{TableStyle, TextTable};

/// A row for each process.
#[must_use]
pub fn table(found: &[ProcessStatus], style: TableStyle) -> String {
    let header =
        ["process", "tenant", "memory, B", "age, s", "unheard, s", "lease left, s", "state"];
    let seconds = |time: Option<f64>| time.map_or("-".to_owned(), |time| format!("{time:.1}"));
    let row = |process: &ProcessStatus| {
        vec![
            format!("{}/{}", process.tenant, process.process),
            process.tenant_name.clone(),
            process.memory_bytes.to_string(),
            format!("{:.1}", process.age_s),
            seconds(process.unheard_s),
            seconds(process.lease_left_s),
            process.state.clone(),
        ]
    };
    let rows = found.iter().map(row).collect();
    let table =
        TextTable { header: &header, text_columns: &[0, 1, 6], optional_columns: &[], rows };
    table.render(style)
}
