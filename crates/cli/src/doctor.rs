//! `ethermem doctor`.

use std::fmt::Write;
use std::path::Path;

use clap::Args;
use ethermem_node::doctor::{Finding, examine};
use ethermem_sim::output::{TableStyle, TextTable};

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem doctor\n  \
    ethermem doctor --format json")]
pub(crate) struct Arguments {
    /// How to print it
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    arguments.format.print(&examine(Path::new("/"))[..], table)
}

/// What is found in a line each; below, what each cost is and how to be rid of it.
fn table(findings: &[Finding], style: TableStyle) -> String {
    let row = |finding: &Finding| {
        vec![finding.name.clone(), finding.verdict.name().to_owned(), finding.found.clone()]
    };
    let header = ["what", "verdict", "found"];
    let rows = findings.iter().map(row).collect();
    let table =
        TextTable { header: &header, text_columns: &[0, 1, 2], optional_columns: &[], rows };
    let mut text = table.render(style);
    for finding in findings.iter().filter(|finding| !finding.cost.is_empty()) {
        let Finding { name, cost, remedy, .. } = finding;
        write!(text, "\n{name}: {cost}.\n  {remedy}\n").expect("a string takes all");
    }
    text
}
