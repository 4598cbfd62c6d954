//! The built-in size distributions.

use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::workload::{SizeSummary, built_in, built_in_names};
use serde::Serialize;

/// A distribution of sizes.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    workload: &'static str,
    #[serde(flatten)]
    sizes: SizeSummary,
}

/// Every built-in distribution.
#[must_use]
pub fn list() -> Vec<Entry> {
    let entry = |name| {
        let sizes = built_in(name).expect("a name of the list");
        Entry { workload: name, sizes: SizeSummary::of(&sizes) }
    };
    built_in_names().map(entry).into_iter().collect()
}

/// The distributions for people.
#[must_use]
pub fn table(entries: &[Entry], style: TableStyle) -> String {
    let header = ["workload", "mean B", "p50 B", "p99 B", "max B", "bytes in largest 10 %"];
    let row = |entry: &Entry| {
        let sizes = &entry.sizes;
        vec![
            entry.workload.to_owned(),
            format!("{:.0}", sizes.bytes_mean),
            sizes.bytes_p50.to_string(),
            sizes.bytes_p99.to_string(),
            sizes.bytes_max.to_string(),
            format!("{:.1} %", sizes.bytes_share_over_p90 * 100.0),
        ]
    };
    let rows = entries.iter().map(row).collect();
    let table = TextTable { header: &header, text_columns: &[0], optional_columns: &[4], rows };
    table.render(style)
}
