//! The points of a scenario's table `[compare]`.

use std::collections::BTreeMap;

use ethermem_sim::compare::{
    Compared, ComparedPoint, Comparison, Experiment, Order, Place, leads, leads_rows, points_page,
    points_rows,
};
use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::report::ReportInput;
use ethermem_sim::run::shell_line;
use ethermem_sim::scenario::Scenario;

use super::{Outcome, Request, Rows, baseline_of};
use crate::error::Error;
use crate::face::Expected;
use crate::runner::{Job, Runner};

/// A run of the comparison: its row, and how its load is counted.
struct PlannedRun {
    experiment: usize,
    point: usize,
    fabric: &'static FabricEntry,
    own_blocks: bool,
    scenario: Scenario,
}

pub(super) fn run(
    request: &Request,
    runner: &Runner<'_>,
    name: &str,
    comparison: &Comparison,
) -> Result<Outcome, Error> {
    let fabrics = fabrics_of(request, comparison);
    let folder = request.folder()?;
    let runs = runs_of(comparison, fabrics);
    let results = run_points(request, runner, name, comparison, &runs)?;
    let rows = rows_of(comparison, &runs, results)?;
    let baseline = baseline_of(comparison.baseline, fabrics).name;
    let page = request.page(folder, name, seed_of(&runs), runner, |repeat| ReportInput {
        lead: "At each point the same messages at the same times on every fabric, each run to its \
               end; and beside them as many as fill as much of the fabric's own links."
            .to_owned(),
        ..points_page(&rows, baseline, repeat)
    });
    Ok(Outcome { rows: Rows::Points { rows, baseline }, page })
}

fn seed_of(runs: &[PlannedRun]) -> u64 {
    runs.first().map_or(0, |run| run.scenario.run.seed)
}

/// The requested fabrics, or else the scenario's.
pub(super) fn fabrics_of<'a>(
    request: &'a Request,
    comparison: &'a Comparison,
) -> &'a [&'static FabricEntry] {
    let asked = &request.fabrics;
    if asked.is_empty() { &comparison.fabrics } else { asked }
}

/// A fabric at a point, with its published value.
pub(super) fn place(
    comparison: &Comparison,
    experiment: &Experiment,
    point: &ComparedPoint,
    fabric: &FabricEntry,
    why: String,
) -> Place {
    let values = comparison.values.as_ref();
    Place {
        experiment: experiment.name.clone(),
        point: point.name.clone(),
        fabric: fabric.name.to_owned(),
        published: values.and_then(|values| values.at(&experiment.name, &point.name, fabric.name)),
        why,
    }
}

/// All fabrics of a point side by side; the scenario's own fabric always has its load in its own
/// blocks.
fn runs_of(comparison: &Comparison, fabrics: &[&'static FabricEntry]) -> Vec<PlannedRun> {
    let mut runs = Vec::new();
    for (experiment, of) in comparison.experiments.iter().enumerate() {
        for (at, point) in of.points.iter().enumerate() {
            for &fabric in fabrics {
                let run = |own_blocks, scenario| PlannedRun {
                    experiment,
                    point: at,
                    fabric,
                    own_blocks,
                    scenario,
                };
                runs.push(run(false, point.scenario.clone()));
                if fabric.name != comparison.baseline.name {
                    runs.push(run(true, point.in_blocks_of(fabric)));
                }
            }
        }
    }
    runs
}

/// Runs everything, the longest run first, so that no thread is left with it at the end.
fn run_points(
    request: &Request,
    runner: &Runner<'_>,
    name: &str,
    comparison: &Comparison,
    runs: &[PlannedRun],
) -> Result<Vec<RunResult>, Error> {
    let mut order: Vec<usize> = (0..runs.len()).collect();
    let cost = |run: &PlannedRun| run.scenario.messages().unwrap_or(1);
    order.sort_by_key(|&at| std::cmp::Reverse(cost(&runs[at])));
    let job = |&at: &usize| {
        let run = &runs[at];
        let point = &comparison.experiments[run.experiment].points[run.point];
        Job {
            fabric: run.fabric,
            scenario: &run.scenario,
            scenario_name: name,
            label: point.name.clone(),
            command: command(request, name, point, run),
            cost: cost(run),
            ways: false,
        }
    };
    let jobs: Vec<Job<'_>> = order.iter().map(job).collect();
    let results = runner.run_all(&jobs, Expected::of(&jobs))?;
    let placed: BTreeMap<usize, RunResult> = order.iter().copied().zip(results).collect();
    Ok(placed.into_values().collect())
}

/// Command that repeats one run alone.
fn command(request: &Request, name: &str, point: &ComparedPoint, run: &PlannedRun) -> String {
    let mut words = vec!["sim".to_owned(), name.to_owned()];
    let mut set = request.selection.settings_of_scenario();
    set.extend(point.settings.iter().cloned());
    if run.own_blocks {
        set.push(format!("fabric.kind={}", run.fabric.name));
    }
    words.extend(set.into_iter().flat_map(|setting| ["--set".to_owned(), setting]));
    let seed = run.scenario.run.seed.to_string();
    words.extend(["--fabric", run.fabric.name, "--seed", &seed].map(str::to_owned));
    shell_line(words.iter().map(String::as_str))
}

fn rows_of(
    comparison: &Comparison,
    runs: &[PlannedRun],
    results: Vec<RunResult>,
) -> Result<Vec<Compared>, Error> {
    let mut rows: Vec<Compared> = Vec::new();
    for (run, result) in runs.iter().zip(results) {
        if run.own_blocks {
            rows.last_mut().expect("it follows the same messages").own_blocks = Some(result);
            continue;
        }
        let experiment = &comparison.experiments[run.experiment];
        let point = &experiment.points[run.point];
        let method = comparison.method.as_ref();
        let why =
            method.map_or_else(String::new, |method| method.why_in_a_steady_state(run.fabric));
        rows.push(Compared {
            place: place(comparison, experiment, point, run.fabric, why),
            load_asked: point.asked(run.fabric)?,
            same_messages: result,
            own_blocks: None,
        });
    }
    Ok(rows)
}

/// Points where a rival is not behind come first; then every point; then caveats.
pub(super) fn text(rows: &[Compared], baseline: &str, style: TableStyle) -> String {
    let leads = leads(rows, baseline);
    let mut text = if leads.is_empty() {
        format!("No rival ties with {baseline} or is ahead of it in any number.\n")
    } else {
        let (head, rows) = leads_rows(&leads);
        let table = table(&head, &[0, 1, 2, 3], &[7, 5], rows);
        format!("Where a rival ties with {baseline} or is ahead of it:\n{}", table.render(style))
    };
    let (head, cells) = points_rows(rows);
    text += "\nAll points:\n";
    text += &table(&head, &[0, 1, 2, 12], &[10, 9, 8, 7, 3], cells).render(style);
    let number = |row: &Compared| row.same_messages.shown_all().slowdown_mean;
    let places: Vec<(&Place, Option<f64>)> =
        rows.iter().map(|row| (&row.place, number(row))).collect();
    text += &order_lines(&Order::of(&places));
    rows.iter().flat_map(Compared::said).for_each(|line| text += &format!("{line}\n"));
    text
}

/// States which pairs of fabrics stand in the published order, if an order was published.
pub(super) fn order_lines(order: &Order) -> String {
    let lines = order.lines();
    lines.iter().filter(|_| order.pairs > 0).map(|line| format!("{line}\n")).collect()
}

pub(super) fn table<'a>(
    header: &'a [&'a str],
    text_columns: &'a [usize],
    optional_columns: &'a [usize],
    rows: Vec<Vec<String>>,
) -> TextTable<'a> {
    TextTable { header, text_columns, optional_columns, rows }
}
