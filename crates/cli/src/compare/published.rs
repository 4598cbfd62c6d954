//! `ethermem compare --method published`.

use ethermem_sim::compare::{
    ByMethod, Comparison, Order, Place, PublishedMethod, method_page, method_rows,
};
use ethermem_sim::output::TableStyle;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::report::ReportInput;
use ethermem_sim::scenario::Scenario;

use super::page::Page;
use super::points::{fabrics_of, order_lines, place, table};
use super::{Arguments, baseline_of};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::runner::{Job, run_each, typed_command};

/// A fabric at a point with one of the seeds.
struct Run {
    experiment: usize,
    point: usize,
    fabric: &'static FabricEntry,
    scenario: Scenario,
}

pub(super) fn run(
    arguments: &Arguments,
    name: &str,
    comparison: &Comparison,
) -> Result<(), Failure> {
    let Some(method) = &comparison.method else {
        let problem = "the scenario has no table [compare.published], which defines it";
        return Err(Failure::input(format!("--method published: {problem}")));
    };
    let runs = runs_of(arguments, comparison, method)?;
    let page = Page::prepare(arguments)?;
    let seed = runs.first().map_or(0, |run| run.scenario.run.seed);
    let command = typed_command(seed);
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
    let progress = Progress::of_runs(jobs.iter().map(|job| job.cost).sum(), jobs.len().max(1));
    let counted = run_each(&jobs, arguments.threads(), &progress, |at, result| {
        let run = &runs[at];
        let point = &comparison.experiments[run.experiment].points[run.point];
        Ok(point.count(method, run.fabric, &run.scenario, &result?.ways)?)
    });
    progress.clear();
    let counted = counted?;
    let seeds = method.seeds as usize;
    let row = |(runs, counted): (&[Run], &[_])| {
        let (run, of) = (&runs[0], &comparison.experiments[runs[0].experiment]);
        let why = method.why(run.fabric).to_owned();
        ByMethod::of(place(comparison, of, &of.points[run.point], run.fabric, why), counted)
    };
    let rows: Vec<ByMethod> = runs.chunks(seeds).zip(counted.chunks(seeds)).map(row).collect();
    arguments.format.print(&rows, |rows, style| text(rows, method, style))?;
    let Some(page) = page else { return Ok(()) };
    let baseline = baseline_of(comparison.baseline, fabrics_of(arguments, comparison)).name;
    page.write(name, seed, &rows, |repeat| ReportInput {
        lead: "The definitions of the published values, so that ours can be held against them."
            .to_owned(),
        ..method_page(&rows, method, baseline, repeat)
    })
}

/// Every fabric at every point, its seeds one after the other.
fn runs_of(
    arguments: &Arguments,
    comparison: &Comparison,
    method: &PublishedMethod,
) -> Result<Vec<Run>, Failure> {
    let mut runs = Vec::new();
    for (experiment, of) in comparison.experiments.iter().enumerate() {
        for (at, point) in of.points.iter().enumerate() {
            for &fabric in fabrics_of(arguments, comparison) {
                let Some(scenarios) = point.by_method(method, fabric) else {
                    let name = fabric.name;
                    let problem = format!("compare.published.fabrics.{name} is not set");
                    return Err(Failure::input(format!("--method published: {problem}")));
                };
                let run = |scenario| Run { experiment, point: at, fabric, scenario };
                runs.extend(scenarios.into_iter().map(run));
            }
        }
    }
    Ok(runs)
}

fn text(rows: &[ByMethod], method: &PublishedMethod, style: TableStyle) -> String {
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
