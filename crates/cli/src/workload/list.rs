//! `ethermem workload list`.

use clap::Args;
use ethermem_sim::output::TextTable;
use ethermem_sim::workload::{SizeSummary, built_in, built_in_names};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
pub(crate) struct Arguments {
    /// How to print the list
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

#[derive(Serialize)]
struct Entry {
    workload: &'static str,
    #[serde(flatten)]
    sizes: SizeSummary,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let entry = |name| {
        let sizes = built_in(name).expect("a name of the list");
        Entry { workload: name, sizes: SizeSummary::of(&sizes) }
    };
    let entries = built_in_names().map(entry);
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
    arguments.format.print(&entries, |_, style| table.render(style))
}
