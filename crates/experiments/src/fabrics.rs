//! The fabrics of the simulator.

use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::FABRICS;
use serde::Serialize;

/// A fabric of the simulator.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Entry {
    /// Name of the fabric.
    pub fabric: &'static str,
    /// One line that describes the fabric.
    pub summary: &'static str,
}

/// Every fabric of the simulator.
#[must_use]
pub fn list() -> Vec<Entry> {
    let entry = |fabric: &ethermem_sim::registry::FabricEntry| Entry {
        fabric: fabric.name,
        summary: fabric.summary,
    };
    FABRICS.iter().map(entry).collect()
}

/// The fabrics for people.
#[must_use]
pub fn table(entries: &[Entry], style: TableStyle) -> String {
    let row = |entry: &Entry| vec![entry.fabric.to_owned(), entry.summary.to_owned()];
    let rows = entries.iter().map(row).collect();
    let header = ["fabric", "what it is"];
    TextTable { header: &header, text_columns: &[0, 1], optional_columns: &[], rows }.render(style)
}
