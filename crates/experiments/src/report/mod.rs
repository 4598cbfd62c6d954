//! The main job: every workload on EDM and its references, as figures and a table.

mod figures;
mod plan;
mod summary;

use std::path::PathBuf;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::TableStyle;
use ethermem_sim::report::{Figure, ReportInput};
use ethermem_sim::run::shell_line;
use serde::Serialize;

use crate::error::Error;
use crate::face::Expected;
use crate::folder::{Folder, origin};
use crate::runner::{Job, Runner};
pub use figures::FigureEntry;
use figures::{Draw, FIGURES};
use plan::{Plan, Results, Size};
use summary::Row;

/// Default folder of a report.
pub const OUT_DEFAULT: &str = "out/report";

/// Figures to make, number of messages, and destination.
#[derive(Clone, Debug)]
pub struct Request {
    /// Folder of the report.
    pub out: PathBuf,
    /// Figures; all if the list is empty.
    pub figures: Vec<&'static FigureEntry>,
    /// True to run few messages: enough to see that everything works, too few for tails.
    pub quick: bool,
    /// Seed of every run; the scenarios' if `None`.
    pub seed: Option<u64>,
}

/// A report that was written.
#[derive(Debug)]
pub struct Report {
    rows: Vec<Row>,
    results: Results,
    commands: Vec<String>,
    /// Path of the page.
    pub path: PathBuf,
}

/// A run in `results.json`.
#[derive(Clone, Debug, Serialize)]
pub struct Entry<'r> {
    /// Command that repeats the run.
    pub command: &'r str,
    /// Result of the run.
    pub result: &'r RunResult,
}

impl Report {
    /// Every run, as in `results.json`.
    #[must_use]
    pub fn entries(&self) -> Vec<Entry<'_>> {
        entries(&self.commands, &self.results)
    }

    /// The table for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        summary::table(&self.rows, &self.results, style)
    }
}

impl Request {
    /// Runs the report and writes its page.
    ///
    /// # Errors
    ///
    /// When a run fails or is interrupted, or when the folder cannot be written.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Report, Error> {
        let size = if self.quick { Size::QUICK } else { Size::FULL };
        let mut plan = Plan::new(size, self.seed);
        let wanted: Vec<&FigureEntry> =
            if self.figures.is_empty() { FIGURES.iter().collect() } else { self.figures.clone() };
        let whole = self.figures.is_empty();
        let mut rows = if whole { summary::plan(&mut plan)? } else { Vec::new() };
        let drawn: Vec<(&FigureEntry, Draw)> = wanted
            .into_iter()
            .map(|entry| Ok((entry, (entry.plan)(&mut plan)?)))
            .collect::<Result<_, Error>>()?;
        if !whole {
            rows = summary::of_all(&plan);
        }
        let folder = Folder::prepare(&self.out)?;
        let results = Results(run_plan(&plan, runner)?);
        let figures = drawn.iter().map(|(entry, draw)| Figure {
            id: entry.id.to_owned(),
            command: self.command_of(entry.id),
            ..draw(&results)
        });
        let page = self.page(&plan, &rows, &results, figures.collect(), runner);
        let commands: Vec<String> = plan.runs.iter().map(plan::PlannedRun::command).collect();
        let path = folder.write(&entries(&commands, &results), &page)?;
        Ok(Report { rows, results, commands, path })
    }

    fn page(
        &self,
        plan: &Plan,
        rows: &[Row],
        results: &Results,
        figures: Vec<Figure>,
        runner: &Runner<'_>,
    ) -> ReportInput {
        let mut notices = Vec::new();
        if self.quick {
            notices.push(
                "A quick run of few messages: it shows that everything works. Its percentiles say \
                 little."
                    .to_owned(),
            );
        }
        ReportInput {
            title: "EDM, simulated".to_owned(),
            lead: "Remote memory inside the Ethernet PHY, scheduled by the switch, beside fabrics \
                   that do without: slowdown and latency of application workloads and of 64 B \
                   messages, and where the nanoseconds go."
                .to_owned(),
            origin: origin(
                runner,
                self.command(),
                plan.runs.first().map_or(1, |run| run.scenario.run.seed),
            ),
            runs: rows.iter().map(|row| row.reported(results)).collect(),
            figures,
            notices,
            ..ReportInput::default()
        }
    }

    /// Command that repeats the whole page.
    fn command(&self) -> String {
        let figures: Vec<&str> = self.figures.iter().map(|entry| entry.id).collect();
        self.shell_line(&figures, None)
    }

    /// Command that repeats one figure.
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

/// Runs everything, the longest run first, so that no thread is left with it at the end.
fn run_plan(plan: &Plan, runner: &Runner<'_>) -> Result<Vec<RunResult>, Error> {
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
    let results = runner.run_all(&jobs, Expected::of(&jobs))?;
    let mut results: Vec<(usize, RunResult)> = order.into_iter().zip(results).collect();
    results.sort_by_key(|(at, _)| *at);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

fn entries<'r>(commands: &'r [String], results: &'r Results) -> Vec<Entry<'r>> {
    let runs = commands.iter().zip(&results.0);
    runs.map(|(command, result)| Entry { command, result }).collect()
}

/// The figure with this name.
///
/// # Errors
///
/// One line with the known names.
pub fn figure(name: &str) -> Result<&'static FigureEntry, String> {
    FIGURES.iter().find(|entry| entry.id == name).ok_or_else(|| {
        let names = FIGURES.map(|entry| entry.id);
        format!("must be one of {}", names.join(", "))
    })
}
