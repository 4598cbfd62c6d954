//! Pools by the points of a scenario, with published values beside them.

use std::path::{Path, PathBuf};

use ethermem_bench::LatencyStats;
use ethermem_bench::plan::{Figure as Head, Plan, Planned, Shows};
use ethermem_bench::ycsb::{LinkUse, Settings};
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::report::{
    Axis, BarPlot, BarSeries, DataTable, Figure, Panel, Plot, ReportInput, Role, TableSection,
};
use serde::{Serialize, Serializer};

use crate::error::Error;
use crate::face::Expected;
use crate::folder::{Folder, origin};
use crate::runner::Runner;
use crate::selection::note_shipped;

/// Column heads, indices of text columns, and rows.
type Cells = (Vec<String>, Vec<usize>, Vec<Vec<String>>);

/// Results of the points. It serializes to its rows.
pub struct Outcome {
    plan: Plan,
    rows: Vec<Planned>,
    page: Option<(Folder, ReportInput)>,
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.rows.serialize(serializer)
    }
}

/// Runs every point of the scenario on every pool, with settings overridden by `over`. The page for
/// `out` is made but not yet written: see [`Outcome::write`].
///
/// # Errors
///
/// When the scenario cannot be used, or when a measurement fails or is interrupted.
pub fn run(
    scenario: &Path,
    over: &Settings,
    out: Option<&Path>,
    runner: &Runner<'static>,
) -> Result<Outcome, Error> {
    note_shipped(scenario, runner.face);
    let (plan, published) = Plan::load(scenario)?;
    let folder = out.map(Folder::prepare).transpose()?;
    let (cost, runs) = (plan.runs() as u64, plan.runs());
    let progress = runner.face.progress(Expected::Runs { cost, runs });
    let done = || progress.run_ended();
    let rows = plan.run(published.as_ref(), over, runner.interrupt, &done);
    let rows = rows.map_err(|error| Error::of_bench(&error, runner))?;
    let page = folder.map(|folder| (folder, page(&plan, &rows, runner)));
    Ok(Outcome { plan, rows, page })
}

impl Outcome {
    /// The rows for people, and their deviation from the published values.
    #[must_use]
    pub fn text(&self, style: TableStyle) -> String {
        text(&self.plan.figure, &self.rows, style)
    }

    /// Writes the page, if one was requested, and returns its path.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn write(&mut self) -> Result<Option<PathBuf>, Error> {
        let Some((folder, page)) = self.page.take() else { return Ok(None) };
        Ok(Some(folder.write(self, &page)?))
    }
}

fn text(figure: &Head, rows: &[Planned], style: TableStyle) -> String {
    let (header, text_columns, cells) = cells(figure, rows);
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let table = TextTable {
        header: &header,
        text_columns: &text_columns,
        optional_columns: &[],
        rows: cells,
    };
    table.render(style) + &verdicts(rows).iter().map(|line| line.clone() + "\n").collect::<String>()
}

/// Which pools meet the requested deviation from the published values.
fn verdicts(rows: &[Planned]) -> Vec<String> {
    let mut lines = Vec::new();
    for pool in pools(rows) {
        let of: Vec<&Planned> = rows.iter().filter(|row| row.pool == pool).collect();
        let asked = of.iter().filter(|row| row.is_met().is_some());
        let missed: Vec<&str> = of
            .iter()
            .filter(|row| row.is_met() == Some(false))
            .map(|row| row.point.as_str())
            .collect();
        let Some(within) = of.first().and_then(|row| row.within_percent) else { continue };
        let worst =
            of.iter().filter_map(|row| row.off_percent).fold(0.0_f64, |a, b| a.max(b.abs()));
        let met = asked.count() - missed.len();
        let mut line =
            format!("{pool}: {met} of {} points within {within} %, worst {worst:.1} %", of.len());
        if !missed.is_empty() {
            line += &format!("; not {}", missed.join(", "));
        }
        lines.push(line);
    }
    lines
}

fn pools(rows: &[Planned]) -> Vec<&str> {
    let mut pools = Vec::new();
    for row in rows {
        if !pools.contains(&row.pool.as_str()) {
            pools.push(row.pool.as_str());
        }
    }
    pools
}

fn cells(figure: &Head, rows: &[Planned]) -> Cells {
    let has_published = rows.iter().any(|row| row.published.is_some());
    match figure.shows {
        Shows::Latency if has_published => beside_published(rows),
        Shows::Latency => by_pool(rows),
        Shows::Requests => requests(rows),
    }
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

fn off(row: &Planned) -> String {
    row.off_percent.map_or_else(|| "-".to_owned(), |off| format!("{off:+.1}"))
}

fn heads(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn beside_published(rows: &[Planned]) -> Cells {
    let header = [
        "point",
        "pool",
        "published ns",
        "mean ns",
        "off %",
        "p50",
        "p99",
        "least seed",
        "most",
        "remote requests",
    ];
    let row = |row: &Planned| {
        let all = |of: fn(&LatencyStats) -> f64| row.mean(|run| run.all().map(of));
        vec![
            row.point.clone(),
            row.pool.clone(),
            number(row.published, 0),
            number(Some(row.ours), 1),
            off(row),
            number(all(|all| all.p50_ns), 1),
            number(all(|all| all.p99_ns), 1),
            number(Some(row.ours_range.0), 1),
            number(Some(row.ours_range.1), 1),
            number(row.mean(|run| Some(run.remote_share)), 3),
        ]
    };
    (heads(&header), vec![0, 1], rows.iter().map(row).collect())
}

/// A row for each pool, with mean, median and 99th percentile of each point side by side.
fn by_pool(rows: &[Planned]) -> Cells {
    let pools = pools(rows);
    let of = |pool: &str| -> Vec<&Planned> { rows.iter().filter(|row| row.pool == pool).collect() };
    let mut header = vec!["pool".to_owned()];
    for point in of(pools.first().unwrap_or(&"")) {
        header.extend(["mean", "p50", "p99"].map(|name| format!("{} {name} ns", point.point)));
    }
    let row = |pool: &&str| {
        let mut cells = vec![(*pool).to_owned()];
        for point in of(pool) {
            for of in [
                |all: &LatencyStats| all.mean_ns,
                |all: &LatencyStats| all.p50_ns,
                |all: &LatencyStats| all.p99_ns,
            ] {
                cells.push(number(point.mean(|run| run.all().map(of)), 0));
            }
        }
        cells
    };
    (header, vec![0], pools.iter().map(row).collect())
}

fn requests(rows: &[Planned]) -> Cells {
    let header = [
        "point",
        "pool",
        "published M/s",
        "writes filling the way there, M/s",
        "off %",
        "requests filling it, M/s",
        "whole system, M requests/s",
        "way there used %",
        "way back used %",
        "mean ns",
    ];
    let row = |row: &Planned| {
        let links = |of: fn(&LinkUse) -> f64| row.mean(|run| run.links.as_ref().map(of));
        vec![
            row.point.clone(),
            row.pool.clone(),
            number(row.published, 1),
            number(Some(row.ours), 2),
            off(row),
            number(links(|links| links.requesting_alone_per_s / 1e6), 2),
            number(row.mean(|run| Some(run.requests_per_s / 1e6)), 3),
            number(links(|links| links.requesting_utilisation * 100.0), 1),
            number(links(|links| links.replying_utilisation * 100.0), 1),
            number(row.mean(|run| run.all().map(|all| all.mean_ns)), 0),
        ]
    };
    (heads(&header), vec![0, 1], rows.iter().map(row).collect())
}

fn page(plan: &Plan, rows: &[Planned], runner: &Runner<'static>) -> ReportInput {
    let (columns, text_columns, cells) = cells(&plan.figure, rows);
    let (axis, caption) = match plan.figure.shows {
        Shows::Latency => {
            ("Mean latency (ns)", "Means of all operations, from the call to the result.")
        }
        Shows::Requests => (
            "Millions a second",
            "Writes that fill the requesting direction alone, which is what was published, and \
             the requests of the whole running system.",
        ),
    };
    let seed = rows.first().and_then(|row| row.runs.first()).map_or(0, |run| run.config.seed);
    ReportInput {
        title: plan.figure.title.clone(),
        lead: "YCSB on simulated pools: records are loaded, bytes really move, and every read is \
               held against what was written."
            .to_owned(),
        origin: origin(runner, runner.command(), seed),
        figures: vec![Figure {
            id: plan.figure.name.clone(),
            title: plan.figure.title.clone(),
            caption: caption.to_owned(),
            plot: bars(plan, rows, axis),
            table: None,
            command: runner.command(),
        }],
        last: vec![TableSection {
            id: "all-points".to_owned(),
            title: "All points".to_owned(),
            caption: format!("Means of {} seeds.", plan.figure.seeds),
            table: DataTable { columns, rows: cells, text_columns },
            notes: verdicts(rows),
        }],
        definitions: Some(
            "Latency: from the call of an operation to its result, in the fabric's time. Seeds \
             follow one another."
                .to_owned(),
        ),
        ..ReportInput::default()
    }
}

/// Each pool in its own panel, our values beside the published ones.
fn bars(plan: &Plan, rows: &[Planned], axis: &str) -> Plot {
    let categories: Vec<String> = plan.point.iter().map(|point| point.name.clone()).collect();
    let panel = |pool: &str| {
        let of: Vec<&Planned> = rows.iter().filter(|row| row.pool == pool).collect();
        let series = |name: &str, role, value: &dyn Fn(&Planned) -> Option<f64>| BarSeries {
            intervals: Vec::new(),
            name: name.to_owned(),
            role,
            values: of.iter().map(|row| value(row)).collect(),
        };
        let mut items = vec![series(pool, Role::Measured, &|row| Some(row.ours))];
        if of.iter().any(|row| row.published.is_some()) {
            items.push(series("published", Role::Reference, &|row| row.published));
        }
        if plan.figure.shows == Shows::Requests {
            let whole = |row: &Planned| row.mean(|run| Some(run.requests_per_s / 1e6));
            items.push(series("whole system", Role::Measured, &whole));
        }
        Panel { title: pool.to_owned(), items }
    };
    Plot::GroupedBars(BarPlot {
        category_label: "Point".to_owned(),
        categories,
        y: Axis::from_zero(axis, 1),
        panels: pools(rows).into_iter().map(panel).collect(),
        marks: Vec::new(),
    })
}
