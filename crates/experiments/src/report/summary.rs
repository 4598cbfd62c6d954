//! The one table that a report prints.

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::report::{ReportedRun, run_name};

use super::figures;
use super::plan::{APPLICATIONS, Plan, Results, RunId, application_contenders, contenders};
use crate::error::Error;

/// Loads of the microbenchmark in the table.
const LOADS: [f64; 2] = [0.8, 0.9];

/// A row of the table: workload, contender, and the index of the run.
#[derive(Debug)]
pub(crate) struct Row {
    workload: String,
    fabric: String,
    run: RunId,
}

impl Row {
    pub(crate) fn reported(&self, results: &Results) -> ReportedRun {
        let (workload, fabric) = (self.workload.clone(), self.fabric.clone());
        ReportedRun { workload, fabric, result: results.of(self.run).clone() }
    }

    fn place(&self) -> (&str, &str) {
        (&self.workload, &self.fabric)
    }
}

/// Every workload on every contender.
pub(crate) fn plan(plan: &mut Plan) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for application in APPLICATIONS {
        for contender in application_contenders() {
            let run = plan.add(application, contender, &[])?;
            let (workload, fabric) = (application.name.to_owned(), contender.name.to_owned());
            rows.push(Row { workload, fabric, run });
        }
    }
    for load in LOADS {
        for contender in contenders() {
            let run = figures::at_load(plan, contender, load)?;
            rows.push(Row { workload: "64 B".to_owned(), fabric: contender.name.to_owned(), run });
        }
    }
    Ok(rows)
}

/// Every run of the plan, if the plan does not have all of them.
pub(crate) fn of_all(plan: &Plan) -> Vec<Row> {
    let row = |(run, id): (&super::plan::PlannedRun, RunId)| Row {
        workload: run.label.clone(),
        fabric: run.fabric.name.to_owned(),
        run: id,
    };
    plan.runs.iter().zip(plan.ids()).map(row).collect()
}

const HEADER: [&str; 8] =
    ["workload", "load", "fabric", "slowdown", "p99", "latency ns", "p99 ns", "Gb/s/node"];

/// Slowdown and latency of all kinds of messages together: means, with 99th percentiles.
pub(crate) fn table(rows: &[Row], results: &Results, style: TableStyle) -> String {
    let mut cells: Vec<Vec<String>> = Vec::new();
    let mut said = String::new();
    let mut last = None;
    for row in rows {
        let run = results.of(row.run);
        let workload = Some((&row.workload, run.load_requested));
        cells.push(cells_of(row, run, workload == last));
        last = workload;
        let name = run_name(row.place(), run.load_requested, rows.iter().map(Row::place));
        if run.messages_lost > 0 {
            said += &format!("{name}: {} lost\n", run.messages_lost);
        }
        let notice = run.steady.as_ref().and_then(|steady| steady.notice(run.load_requested));
        if let Some(notice) = notice {
            said += &format!("{name}: {notice}\n");
        }
    }
    let table = TextTable {
        header: &HEADER,
        text_columns: &[0, 2],
        optional_columns: &[7, 6],
        rows: cells,
    };
    table.render(style) + &said
}

fn cells_of(row: &Row, run: &RunResult, again: bool) -> Vec<String> {
    let all = &run.shown_all();
    let number = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
    };
    let once = |text: String| if again { String::new() } else { text };
    vec![
        once(row.workload.clone()),
        once(number(run.load_requested, 1)),
        row.fabric.clone(),
        number(all.slowdown_mean, 3),
        number(all.slowdown_p99, 3),
        number(all.latency_ns_mean, 1),
        number(all.latency_ns_p99, 1),
        number(Some(run.payload_goodput_gbps_per_node), 1),
    ]
}
