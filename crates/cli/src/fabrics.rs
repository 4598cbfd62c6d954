//! `ethermem fabrics`.

use clap::Args;
use ethermem_sim::output::TextTable;
use ethermem_sim::registry::FABRICS;
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
    fabric: &'static str,
    summary: &'static str,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let entries: Vec<Entry> = FABRICS
        .iter()
        .map(|fabric| Entry { fabric: fabric.name, summary: fabric.summary })
        .collect();
    let rows: Vec<Vec<String>> = entries
        .iter()
        .map(|entry| vec![entry.fabric.to_owned(), entry.summary.to_owned()])
        .collect();
    let header = ["fabric", "what it is"];
    let table = TextTable { header: &header, text_columns: &[0, 1], optional_columns: &[], rows };
    arguments.format.print(&entries, |_, style| table.render(style))
}
