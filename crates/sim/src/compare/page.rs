//! A comparison as a page: the points at which rivals are not behind, the figures, and every
//! number.

use super::figures::{columns, figures_of, figures_of_runs, method_figures};
use super::picture::{At, data_table, distinct};
use super::{
    ByMethod, Compared, Lead, Order, Place, PublishedMethod, leads, leads_rows, method_leads,
    method_leads_rows, method_rows, points_rows,
};
use crate::metrics::RunResult;
use crate::report::{ReportInput, ReportedRun, TableSection};

/// The command that repeats a figure of an experiment, if it belongs to one, into a folder.
pub type Repeat<'a> = &'a dyn Fn(Option<&str>, &str) -> String;

/// The page of a comparison whose runs went to the end. The caller sets title, lead and origin.
#[must_use]
pub fn points_page(rows: &[Compared], baseline: &str, repeat: Repeat<'_>) -> ReportInput {
    let mut figures = Vec::new();
    for experiment in experiments(rows, |row| &row.place) {
        let rows: Vec<&Compared> =
            rows.iter().filter(|row| row.place.experiment == *experiment).collect();
        figures.extend(figures_of(experiment, &rows, repeat));
    }
    let mean = |row: &Compared| row.same_messages.shown_all().slowdown_mean;
    let places: Vec<At<'_>> = rows.iter().map(|row| (&row.place, mean(row))).collect();
    ReportInput {
        first: vec![leads_section(&leads(rows, baseline), baseline, true)],
        figures,
        last: vec![TableSection {
            id: "all-points".to_owned(),
            title: "All points".to_owned(),
            caption: "asked: the share of its busiest links that the messages ask of a fabric; \
                      over 1 it cannot carry them. Columns that start with own: with the load \
                      counted in the fabric's own blocks, so that its links are as full as those \
                      of the scenario's own fabric."
                .to_owned(),
            table: data_table(points_rows(rows), &[0, 1, 2, 12]),
            notes: order_notes(&places),
        }],
        notices: rows.iter().flat_map(Compared::said).collect(),
        ..ReportInput::default()
    }
}

/// The page of a comparison by a published method.
#[must_use]
pub fn method_page(
    rows: &[ByMethod],
    method: &PublishedMethod,
    baseline: &str,
    repeat: Repeat<'_>,
) -> ReportInput {
    let mut figures = Vec::new();
    for experiment in experiments(rows, |row| &row.place) {
        let of: Vec<&ByMethod> =
            rows.iter().filter(|row| row.place.experiment == *experiment).collect();
        figures.extend(method_figures(experiment, &of, repeat));
    }
    let places: Vec<At<'_>> = rows.iter().map(|row| (&row.place, row.slowdown_mean)).collect();
    let leads = method_leads(rows, baseline);
    let first = TableSection {
        id: "rivals-not-behind".to_owned(),
        title: leads_title(baseline, leads.is_empty()),
        caption: "Mean slowdowns by the published method, the rival's over that of the \
                  scenario's own fabric, and the published ones in the same order."
            .to_owned(),
        table: data_table(method_leads_rows(&leads), &[0, 1, 2]),
        notes: Vec::new(),
    };
    ReportInput {
        first: vec![first],
        figures,
        last: vec![TableSection {
            id: "all-points".to_owned(),
            title: "All points".to_owned(),
            caption: "flows: those that ended before their run was over, of all seeds; \
                      unfinished: messages that did not, and are in no mean."
                .to_owned(),
            table: data_table(method_rows(rows), &[0, 1, 2, 8]),
            notes: [order_notes(&places), method.runs_notes(rows)].concat(),
        }],
        definitions: Some(format!(
            "By the definitions of the published values, which the scenario's table \
             compare.published has: {} messages a run, means over {} seeds of the flows that \
             ended before the run was over, each over a number of slots for its fabric and kind. \
             Fabrics have denominators of their own, so that what is published says little of who \
             is faster: hold it against the page of the default method.",
            method.messages, method.seeds
        )),
        ..ReportInput::default()
    }
}

/// The page of one workload on several fabrics.
#[must_use]
pub fn runs_page(rows: &[Compared], baseline: &str, repeat: Repeat<'_>) -> ReportInput {
    let runs: Vec<&RunResult> = rows.iter().map(|row| &row.same_messages).collect();
    let reported = |row: &Compared| ReportedRun {
        workload: row.same_messages.label.clone(),
        fabric: row.place.fabric.clone(),
        result: row.same_messages.clone(),
    };
    ReportInput {
        first: vec![leads_section(&leads(rows, baseline), baseline, false)],
        runs: rows.iter().map(reported).collect(),
        figures: figures_of_runs(&runs, repeat),
        ..ReportInput::default()
    }
}

fn experiments<'r, R>(rows: &'r [R], place: impl Fn(&'r R) -> &'r Place) -> Vec<&'r String> {
    distinct(rows.iter().map(|row| &place(row).experiment))
}

fn leads_title(baseline: &str, none: bool) -> String {
    if none {
        format!("No rival ties with {baseline} or is ahead of it")
    } else {
        format!("Where a rival ties with {baseline} or is ahead of it")
    }
}

/// The first table of a page; with a single point, without the columns that name it.
fn leads_section(leads: &[Lead], baseline: &str, several: bool) -> TableSection {
    let table = leads_rows(leads);
    let (table, text_columns) = if several {
        (table, &[0, 1, 2, 3][..])
    } else {
        (columns(table, &[2, 4, 5, 6, 7]), &[0][..])
    };
    let own = "Messages are the same on all fabrics, or (own blocks) as many as fill as much of \
               the rival's own links, fewer where its framing is larger.";
    TableSection {
        id: "rivals-not-behind".to_owned(),
        title: leads_title(baseline, leads.is_empty()),
        caption: format!(
            "In mean or 99th percentile, slowdown or ns; each number of the rival over that of \
             {baseline}, a dash where the rival is behind. Bounds are no rivals. {}",
            if several { own } else { "" }
        ),
        table: data_table(table, text_columns),
        notes: Vec::new(),
    }
}

fn order_notes(places: &[At<'_>]) -> Vec<String> {
    let order = Order::of(places);
    if order.pairs == 0 { Vec::new() } else { order.lines() }
}
