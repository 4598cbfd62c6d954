//! `ethermem report`: the main job.

mod figures;
mod plan;
mod summary;

use std::path::PathBuf;

use clap::Args;
use ethermem_sim::metrics::RunResult;
use ethermem_sim::report::{Figure, ReportInput};
use ethermem_sim::run::shell_line;
use serde::Serialize;

use crate::failure::Failure;
use crate::folder::{Folder, origin};
use crate::output::{print, table_style};
use crate::progress::Progress;
use crate::runner::{Job, run_all, threads_default};
use figures::{Draw, FIGURES, FigureEntry};
use plan::{Plan, Results, Size};
use summary::Row;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem report\n  \
    ethermem report --quick --out out/quick\n  \
    ethermem report --figure slowdown-by-load --figure policy --out out/two\n\
    \n\
    Writes index.html, one page that needs no other file, and results.json, every run with the\n\
    command that repeats it. Both are whole or not there.")]
pub(crate) struct Arguments {
    /// Folder of the report
    #[arg(long, value_name = "FOLDER", default_value = "out/report")]
    out: PathBuf,

    /// Only this figure; repeat it for more [default: all]
    #[arg(long = "figure", value_name = "NAME", value_parser = figure)]
    figures: Vec<&'static FigureEntry>,

    /// Few messages: shows in a second that everything works, but no tails
    #[arg(long)]
    quick: bool,

    /// Seed of every run [default: the scenarios', 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// Runs at once; the results are the same bytes, whatever it is [default: as many as the
    /// machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let size = if arguments.quick { Size::QUICK } else { Size::FULL };
    let mut plan = Plan::new(size, arguments.seed);
    let wanted: Vec<&FigureEntry> = if arguments.figures.is_empty() {
        FIGURES.iter().collect()
    } else {
        arguments.figures.clone()
    };
    let whole = arguments.figures.is_empty();
    let mut rows = if whole { summary::plan(&mut plan)? } else { Vec::new() };
    let drawn: Vec<(&FigureEntry, Draw)> = wanted
        .into_iter()
        .map(|entry| Ok((entry, (entry.plan)(&mut plan)?)))
        .collect::<Result<_, Failure>>()?;
    if !whole {
        rows = summary::of_all(&plan);
    }
    let folder = Folder::prepare(&arguments.out)?;
    let results = Results(run_plan(&plan, arguments)?);
    let figures = drawn.iter().map(|(entry, draw)| Figure {
        id: entry.id.to_owned(),
        command: arguments.command_of(entry.id),
        ..draw(&results)
    });
    let page = page(arguments, &plan, &rows, &results, figures.collect());
    let path = write(folder, &plan, &results, &page)?;
    print(&summary::table(&rows, &results, table_style()))?;
    print(&format!("wrote {}\n", path.display()))
}

/// Runs everything, the longest first, so that no thread ends up alone with it.
fn run_plan(plan: &Plan, arguments: &Arguments) -> Result<Vec<RunResult>, Failure> {
    let mut order: Vec<usize> = (0..plan.runs.len()).collect();
    order.sort_by_key(|&at| std::cmp::Reverse(plan.runs[at].cost()));
    let job = |&at: &usize| {
        let run = &plan.runs[at];
        Job {
            fabric: run.fabric,
            scenario: &run.scenario,
            scenario_name: run.path,
            label: run.label.clone(),
            command: run.command(),
            cost: run.cost(),
            ways: false,
        }
    };
    let jobs: Vec<Job<'_>> = order.iter().map(job).collect();
    let progress = Progress::of_runs(jobs.iter().map(|job| job.cost).sum(), jobs.len());
    let threads = arguments.threads.map_or_else(threads_default, usize::from);
    let results = run_all(&jobs, threads, &progress);
    progress.clear();
    let mut results: Vec<(usize, RunResult)> = order.into_iter().zip(results?).collect();
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn page(
    arguments: &Arguments,
    plan: &Plan,
    rows: &[Row],
    results: &Results,
    figures: Vec<Figure>,
) -> ReportInput {
    let mut notices = Vec::new();
    if arguments.quick {
        notices.push(
            "A quick run of few messages: it shows that everything works. Its percentiles say \
             little."
                .to_owned(),
        );
    }
    ReportInput {
        title: "EDM, simulated".to_owned(),
        lead:
            "Remote memory inside the Ethernet PHY, scheduled by the switch, beside fabrics that \
               do without: slowdown and latency of application workloads and of 64 B messages, and \
               where the nanoseconds go."
                .to_owned(),
        origin: origin(
            arguments.command(),
            plan.runs.first().map_or(1, |run| run.scenario.run.seed),
        ),
        runs: rows.iter().map(|row| row.reported(results)).collect(),
        figures,
        notices,
        ..ReportInput::default()
    }
}

/// A run in `results.json`.
#[derive(Serialize)]
struct Entry<'r> {
    command: String,
    result: &'r RunResult,
}

fn write(
    folder: Folder,
    plan: &Plan,
    results: &Results,
    page: &ReportInput,
) -> Result<PathBuf, Failure> {
    let runs = plan.runs.iter().zip(&results.0);
    let entries: Vec<Entry<'_>> =
        runs.map(|(run, result)| Entry { command: run.command(), result }).collect();
    folder.write(&entries, page)
}

impl Arguments {
    /// Repeats the whole page.
    fn command(&self) -> String {
        let figures: Vec<&str> = self.figures.iter().map(|entry| entry.id).collect();
        self.shell_line(&figures, None)
    }

    /// Repeats one figure.
    fn command_of(&self, id: &str) -> String {
        self.shell_line(&[id], Some(&format!("out/{id}")))
    }

    fn shell_line(&self, figures: &[&str], out: Option<&str>) -> String {
        let seed = self.seed.map(|seed| seed.to_string());
        let mut words = vec!["report"];
        words.extend(figures.iter().flat_map(|id| ["--figure", id]));
        if self.quick {
            words.push("--quick");
        }
        words.extend(seed.iter().flat_map(|seed| ["--seed", seed]));
        words.extend(out.into_iter().flat_map(|out| ["--out", out]));
        shell_line(words.into_iter())
    }
}

fn figure(name: &str) -> Result<&'static FigureEntry, String> {
    FIGURES.iter().find(|entry| entry.id == name).ok_or_else(|| {
        let names = FIGURES.map(|entry| entry.id);
        format!("allowed are {}", names.join(", "))
    })
}
