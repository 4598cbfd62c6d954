//! The points of a comparison by the published method.

use ethermem_sim::compare::{
    ByMethod, Comparison, Order, Place, PublishedMethod, method_page, method_rows,
};
use ethermem_sim::output::TableStyle;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::report::ReportInput;
use ethermem_sim::scenario::Scenario;

use super::points::{fabrics_of, order_lines, place, table};
use super::{Outcome, Request, Rows, baseline_of};
use crate::error::Error;
use crate::face::Expected;
use crate::runner::{Job, Runner};

/// A fabric at a point with one of the seeds.
struct PlannedRun {
    experiment: usize,
    point: usize,
    fabric: &'static FabricEntry,
    scenario: Scenario,
}

pub(super) fn run(
    request: &Request,
    runner: &Runner<'_>,
    name: &str,
    comparison: &Comparison,
) -> Result<Outcome, Error> {
    let Some(method) = &comparison.method else {
        let problem = "the scenario has no table [compare.published], which defines it";
        return Err(Error::Request(format!("--method published: {problem}")));
    };
    let runs = runs_of(request, comparison, method)?;
    let folder = request.folder()?;
    let seed = runs.first().map_or(0, |run| run.scenario.run.seed);
    let command = runner.command_with_seed(seed);
    let mut jobs: Vec<Job<'_>> = Vec::new();
    for run in &runs {
        jobs.push(Job {
            fabric: method.runs(run.fabric),
            scenario: &run.scenario,
            scenario_name: name,
            label: comparison.experiments[run.experiment].points[run.point].name.clone(),
            command: command.clone(),
            cost: run.scenario.messages().unwrap_or(1),
            ways: true,
        });
    }
    let counted = runner.run_each(&jobs, Expected::of(&jobs), |at, result| {
        let run = &runs[at];
        let point = &comparison.experiments[run.experiment].points[run.point];
        Ok(point.count(method, run.fabric, &run.scenario, &result?.ways)?)
    })?;
    let seeds = method.seeds as usize;
    let row = |(runs, counted): (&[PlannedRun], &[_])| {
        let (run, of) = (&runs[0], &comparison.experiments[runs[0].experiment]);
        let why = method.why(run.fabric).to_owned();
        ByMethod::of(place(comparison, of, &of.points[run.point], run.fabric, why), counted)
    };
    let rows: Vec<ByMethod> = runs.chunks(seeds).zip(counted.chunks(seeds)).map(row).collect();
    let baseline = baseline_of(comparison.baseline, fabrics_of(request, comparison)).name;
    let page = request.page(folder, name, seed, runner, |repeat| ReportInput {
        lead: "The definitions of the published values, so that ours can be held against them."
            .to_owned(),
        ..method_page(&rows, method, baseline, repeat)
    });
    Ok(Outcome { rows: Rows::Published { rows, method: method.clone() }, page })
}

/// Every fabric at every point, with consecutive seeds.
fn runs_of(
    request: &Request,
    comparison: &Comparison,
    method: &PublishedMethod,
) -> Result<Vec<PlannedRun>, Error> {
    let mut runs = Vec::new();
    for (experiment, of) in comparison.experiments.iter().enumerate() {
        for (at, point) in of.points.iter().enumerate() {
            for &fabric in fabrics_of(request, comparison) {
                let Some(scenarios) = point.by_method(method, fabric) else {
                    let name = fabric.name;
                    let problem = format!("compare.published.fabrics.{name} is not set");
                    return Err(Error::Request(format!("--method published: {problem}")));
                };
                let run = |scenario| PlannedRun { experiment, point: at, fabric, scenario };
                runs.extend(scenarios.into_iter().map(run));
            }
        }
    }
    Ok(runs)
}

pub(super) fn text(rows: &[ByMethod], method: &PublishedMethod, style: TableStyle) -> String {
    let (head, cells) = method_rows(rows);
    let mut text = table(&head, &[0, 1, 2, 8], &[5, 3], cells).render(style);
    let places: Vec<(&Place, Option<f64>)> =
        rows.iter().map(|row| (&row.place, row.slowdown_mean)).collect();
    text += &order_lines(&Order::of(&places));
    for note in method.runs_notes(rows) {
        text += &format!("{note}\n");
    }
    let unfinished: u64 = rows.iter().map(|row| row.unfinished).sum();
    let all = rows.len() as u64 * method.messages * method.seeds;
    text += &format!("{unfinished} of {all} messages had not ended when their run was over\n");
    text
}
