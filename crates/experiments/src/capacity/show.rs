//! The tables of capacities and latencies.

use ethermem_sim::metrics::SteadyState;
use ethermem_sim::output::{TableStyle, TextTable};

use super::{Point, Row};

/// Different names in the order in which they come first.
pub(super) fn distinct<'r>(names: impl Iterator<Item = &'r str>) -> Vec<&'r str> {
    let mut found = Vec::new();
    for name in names {
        if !found.contains(&name) {
            found.push(name);
        }
    }
    found
}

/// The row of a fabric and a workload.
pub(super) fn find<'r>(rows: &'r [Row], fabric: &str, workload: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.fabric == fabric && row.workload == workload)
}

/// The capacities: a row per fabric, a column per workload.
pub(super) fn capacities(rows: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let workloads = distinct(rows.iter().map(|row| row.workload.as_str()));
    let fabrics = distinct(rows.iter().map(|row| row.fabric.as_str()));
    let head = std::iter::once("fabric").chain(workloads.iter().copied());
    let cell = |fabric: &str, workload: &str| {
        let capacity = find(rows, fabric, workload).and_then(|row| row.capacity.as_ref());
        number(capacity.map(|capacity| capacity.goodput_gbps_per_node), 1)
    };
    let row = |fabric: &&str| {
        let cells = workloads.iter().map(|workload| cell(fabric, workload));
        std::iter::once((*fabric).to_owned()).chain(cells).collect()
    };
    (head.map(str::to_owned).collect(), fabrics.iter().map(row).collect())
}

/// The head of [`latencies`].
pub(super) const HEAD: [&str; 11] = [
    "workload",
    "at",
    "fabric",
    "Gb/s/node",
    "load",
    "p50 ns",
    "p99 ns",
    "p99.9 ns",
    "max ns",
    "slowdown",
    "p99 slowdown",
];
/// Columns of text.
pub(super) const TEXT_COLUMNS: [usize; 3] = [0, 1, 2];
/// Columns to leave out on a narrow terminal.
const OPTIONAL_COLUMNS: [usize; 4] = [8, 4, 10, 3];

/// The latencies, grouped by workload and load.
pub(super) fn latencies(rows: &[Row]) -> Vec<Vec<String>> {
    let mut cells = Vec::new();
    for workload in distinct(rows.iter().map(|row| row.workload.as_str())) {
        let of: Vec<&Row> = rows.iter().filter(|row| row.workload == workload).collect();
        let places = of.iter().max_by_key(|row| row.points.len());
        for place in places.map_or(&[][..], |row| &row.points) {
            let here = |point: &&Point| (point.at, point.share) == (place.at, place.share);
            for row in &of {
                if let Some(point) = row.points.iter().find(here) {
                    cells.push(latency(row, point));
                }
            }
        }
    }
    cells
}

fn latency(row: &Row, point: &Point) -> Vec<String> {
    vec![
        row.workload.clone(),
        place(point),
        row.fabric.clone(),
        number(Some(point.goodput_gbps_per_node), 1),
        number(point.load, 2),
        number(point.latency_ns_p50, 1),
        number(point.latency_ns_p99, 1),
        number(point.latency_ns_p999, 1),
        number(point.latency_ns_max, 1),
        number(point.slowdown_mean, 3),
        number(point.slowdown_p99, 3),
    ]
}

/// The load of a point: `30 Gb/s`, or `80 % of own`.
fn place(point: &Point) -> String {
    match point.at {
        "share" => format!("{:.0} % of own", point.share * 100.0),
        _ => format!("{:.0} Gb/s", point.goodput_gbps_per_node),
    }
}

/// Notes on the tables.
pub(super) fn said(rows: &[Row]) -> Vec<String> {
    let unsettled = |row: &&Row| {
        let is = |point: &Point| point.state == Some(SteadyState::Unsettled);
        row.points.iter().any(is)
    };
    let mut said = vec![
        "blank: more than the fabric sustains, so that latencies grow with the length of the run"
            .to_owned(),
    ];
    let names: Vec<String> = rows
        .iter()
        .filter(unsettled)
        .map(|row| format!("{} on {}", row.workload, row.fabric))
        .collect();
    if !names.is_empty() {
        said.push(format!(
            "not settled within run.events_max at some load, so that tails may move: {}",
            names.join(", ")
        ));
    }
    said
}

pub(super) fn text(rows: &[Row], style: TableStyle) -> String {
    let (head, cells) = capacities(rows);
    let header: Vec<&str> = head.iter().map(String::as_str).collect();
    let capacities =
        TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows: cells };
    let latencies = TextTable {
        header: &HEAD,
        text_columns: &TEXT_COLUMNS,
        optional_columns: &OPTIONAL_COLUMNS,
        rows: latencies(rows),
    };
    let said: String = said(rows).iter().map(|line| format!("{line}\n")).collect();
    format!(
        "Sustained, Gb/s of data a node:\n{}\nLatency at equal goodput, and at equal share of the \
         fabric's own capacity:\n{}{said}",
        capacities.render(style),
        latencies.render(style),
    )
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}
