//! The page of capacities and latencies.

use ethermem_sim::report::{
    Axis, BarPlot, BarSeries, DataTable, Figure, Panel, Plot, ReportInput, Role, Scale,
    TableSection,
};

use super::show::{HEAD, TEXT_COLUMNS, capacities, distinct, find, latencies, said};
use super::{Point, Row};
use crate::folder::origin;
use crate::runner::Runner;

const LEAD: &str = "What load each fabric sustains, found by bisection, and its latency at equal \
    goodput and at equal share of that. Every node to every node, half reads and half writes.";
const CAPACITY: &str = "Data of the mean node in either direction, the most that is sustained: \
    what arrives ends, and the backlog does not grow. Loads are tried in hundredths of a fabric's \
    own links, up to 0.99.";
const LATENCY: &str = "Goodput is data of a node; a share is of the fabric's own capacity. Load is \
    the share of the fabric's busiest links, framing and control included. A slowdown is over the \
    time that a message takes alone in the same fabric.";

pub(super) fn page(rows: &[Row], seed: u64, command: &str, runner: &Runner<'_>) -> ReportInput {
    let table = |id: &str, title: &str, caption: &str, table: DataTable| TableSection {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        table,
        notes: Vec::new(),
    };
    let (columns, cells) = capacities(rows);
    let capacity = DataTable { columns, rows: cells, text_columns: vec![0] };
    let latency = DataTable {
        columns: HEAD.map(str::to_owned).into(),
        rows: latencies(rows),
        text_columns: TEXT_COLUMNS.into(),
    };
    let figure = |id: &str, title: &str, caption: &str, plot: Plot| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        plot,
        table: None,
        command: command.to_owned(),
    };
    let p99 = |at: &'static str| {
        let axis = Axis { start: Some(100.0), ..Axis::of_data("p99 latency (ns)", Scale::Log, 1) };
        bars(rows, axis, &places(rows, at), |row, share| {
            let here = |point: &&Point| point.at == at && point.share == share;
            row.points.iter().find(here)?.latency_ns_p99
        })
    };
    let goodput = bars(
        rows,
        Axis::from_zero("Sustained (Gb/s a node)", 1),
        &[(String::new(), 0.0)],
        |row, _| row.capacity.as_ref().map(|capacity| capacity.goodput_gbps_per_node),
    );
    ReportInput {
        title: "Capacity first".to_owned(),
        lead: LEAD.to_owned(),
        origin: origin(runner, command.to_owned(), seed),
        first: vec![table("capacity", "Sustained, Gb/s of data a node", CAPACITY, capacity)],
        figures: vec![
            figure("sustained", "What each fabric sustains", CAPACITY, goodput),
            figure("equal-goodput", "p99 at equal goodput", LATENCY, p99("goodput")),
            figure("equal-share", "p99 at equal share of the capacity", LATENCY, p99("share")),
        ],
        last: vec![table("latencies", "Latencies", LATENCY, latency)],
        notices: said(rows),
        ..ReportInput::default()
    }
}

/// The shares of the points of a kind, with titles.
fn places(rows: &[Row], at: &str) -> Vec<(String, f64)> {
    let all = rows.iter().map(|row| row.points.iter().filter(|point| point.at == at));
    let most = all.max_by_key(|points| points.clone().count());
    let what = if at == "share" { "of its capacity" } else { "of the link rate as data" };
    let title = |point: &Point| format!("{:.0} % {what}", point.share * 100.0);
    most.into_iter().flatten().map(|point| (title(point), point.share)).collect()
}

/// A panel for each place, bars of all fabrics for each workload.
fn bars(
    rows: &[Row],
    y: Axis,
    places: &[(String, f64)],
    value: impl Fn(&Row, f64) -> Option<f64>,
) -> Plot {
    let workloads = distinct(rows.iter().map(|row| row.workload.as_str()));
    let fabrics = distinct(rows.iter().map(|row| row.fabric.as_str()));
    let series = |fabric: &&str, share: f64| BarSeries {
        intervals: Vec::new(),
        name: (*fabric).to_owned(),
        role: match rows.iter().any(|row| row.fabric == *fabric && row.is_bound) {
            true => Role::Reference,
            false => Role::Measured,
        },
        values: workloads
            .iter()
            .map(|workload| value(find(rows, fabric, workload)?, share))
            .collect(),
    };
    let panel = |(title, share): &(String, f64)| Panel {
        title: title.clone(),
        items: fabrics.iter().map(|fabric| series(fabric, *share)).collect(),
    };
    Plot::GroupedBars(BarPlot {
        category_label: "Messages".to_owned(),
        categories: workloads.iter().map(|name| (*name).to_owned()).collect(),
        y,
        panels: places.iter().map(panel).collect(),
        marks: Vec::new(),
    })
}
