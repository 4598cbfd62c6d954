//! A machine's latency problems, for people.

use std::fmt::Write;

use ethermem_node::doctor::Finding;
use ethermem_sim::output::{TableStyle, TextTable};

/// One line per finding, followed by the costs and remedies.
#[must_use]
pub fn table(findings: &[Finding], style: TableStyle) -> String {
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
