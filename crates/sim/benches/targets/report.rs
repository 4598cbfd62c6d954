//! Measurements compared with the targets, as tables and as JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use comfy_table::{Table, presets};
use ethermem_sim::metrics::RunResult;
use ethermem_sim::output::{OutputError, to_json, write_file};
use serde::Serialize;

use crate::case::Case;

/// The condition of a target.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    /// At most this value.
    AtMost(f64),
    /// At least this value.
    AtLeast(f64),
    /// This value, to the last given digit.
    Exactly(f64),
}

/// One target and its measurement. `least` and `most` differ where repeats do.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    what: String,
    unit: &'static str,
    target: Target,
    measured: f64,
    least: f64,
    most: f64,
    met: bool,
}

impl Check {
    /// A simulated quantity, which is equal in every repeat.
    pub(crate) fn exact(
        what: impl Into<String>,
        unit: &'static str,
        target: Target,
        measured: f64,
    ) -> Check {
        Check::median(what, unit, target, &[measured])
    }

    /// A timed quantity: the median of its samples counts.
    ///
    /// # Panics
    /// If there is no sample.
    pub(crate) fn median(
        what: impl Into<String>,
        unit: &'static str,
        target: Target,
        samples: &[f64],
    ) -> Check {
        let sorted = sorted(samples);
        let measured = median(samples);
        let met = match target {
            Target::AtMost(limit) => measured <= limit,
            Target::AtLeast(limit) => measured >= limit,
            // Values are printed to a thousandth; picoseconds as nanoseconds have no more digits.
            Target::Exactly(value) => (measured - value).abs() < 5e-4,
        };
        let (least, most) = (sorted[0], sorted[sorted.len() - 1]);
        Check { what: what.into(), unit, target, measured, least, most, met }
    }

    fn row(&self) -> [String; 5] {
        // An exact target is shown to the thousandth to which it is held.
        let (target, measured) = match self.target {
            Target::AtMost(limit) => (format!("<= {}", number(limit)), number(self.measured)),
            Target::AtLeast(limit) => (format!(">= {}", number(limit)), number(self.measured)),
            Target::Exactly(value) => (format!("= {value:.3}"), format!("{:.3}", self.measured)),
        };
        let spread = match self.least == self.most {
            true => "exact".to_owned(),
            false => format!("{} to {}", number(self.least), number(self.most)),
        };
        let verdict = if self.met { "PASS" } else { "MISS" };
        let measured = format!("{measured} {}", self.unit);
        [self.what.clone(), target, measured.trim_end().to_owned(), spread, verdict.to_owned()]
    }
}

/// The median of samples: the mean of the two middle ones if their number is even.
pub(crate) fn median(samples: &[f64]) -> f64 {
    let sorted = sorted(samples);
    let middle = sorted.len() / 2;
    if sorted.len() % 2 == 1 { sorted[middle] } else { (sorted[middle - 1] + sorted[middle]) / 2.0 }
}

fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Formats four significant digits, and whole numbers without a point.
pub(crate) fn number(value: f64) -> String {
    if value == value.trunc() {
        return format!("{value:.0}");
    }
    let decimals = (3 - value.abs().log10().floor() as i32).clamp(0, 4);
    format!("{value:.*}", decimals as usize)
}

/// A simulated run, with the scenario that repeats it.
#[derive(Clone, Debug, Serialize)]
struct MeasuredRun {
    table: String,
    scenario_toml: String,
    result: RunResult,
}

/// The measurements of a section.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Section {
    checks: Vec<Check>,
    runs: Vec<MeasuredRun>,
    notes: Vec<String>,
}

impl Section {
    /// Adds a target.
    pub(crate) fn check(&mut self, check: Check) {
        self.checks.push(check);
    }

    /// Adds a run to the table named `table`.
    pub(crate) fn run(&mut self, table: &str, case: &Case, result: RunResult) {
        let scenario_toml = case.scenario.clone();
        self.runs.push(MeasuredRun { table: table.to_owned(), scenario_toml, result });
    }

    /// Adds a line that is not a target.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }
}

const RUN_COLUMNS: [&str; 9] =
    ["run", "messages", "read", "write", "all", "p50", "p99", "p99.9", "mean ns"];

fn run_row(result: &RunResult) -> Vec<String> {
    let shown = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.3}"));
    let all = &result.kinds.all;
    vec![
        result.label.clone(),
        result.messages_finished.to_string(),
        shown(result.kinds.read.slowdown_mean),
        shown(result.kinds.write.slowdown_mean),
        shown(all.slowdown_mean),
        shown(all.slowdown_p50),
        shown(all.slowdown_p99),
        shown(all.slowdown_p999),
        all.latency_ns_mean.map_or("-".to_owned(), |ns| format!("{ns:.1}")),
    ]
}

/// A table in Markdown.
pub(crate) fn table(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN).set_header(header.iter().copied());
    table.add_rows(rows);
    table
}

const CHECK_COLUMNS: [&str; 5] = ["what", "target", "measured", "spread", "verdict"];

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut at = 0;
        while let Some(first) = self.runs.get(at) {
            let of_table = self.runs[at..].iter().take_while(|run| run.table == first.table);
            let rows: Vec<_> = of_table.map(|run| run_row(&run.result)).collect();
            at += rows.len();
            writeln!(f, "\n{}: slowdown\n{}", first.table, table(&RUN_COLUMNS, rows))?;
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        let rows = self.checks.iter().map(|check| check.row().to_vec());
        if rows.len() > 0 {
            writeln!(f, "\n{}", table(&CHECK_COLUMNS, rows))?;
        }
        Ok(())
    }
}

/// All requested sections.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Report {
    pub(crate) sections: BTreeMap<&'static str, Section>,
}

impl Report {
    /// Writes everything to `out/bench/targets.json`; returns its path.
    ///
    /// # Errors
    /// The reason why the file could not be written; then no file is left.
    pub(crate) fn write(&self) -> Result<PathBuf, OutputError> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../out/bench");
        let path = folder.join("targets.json");
        std::fs::create_dir_all(&folder)
            .map_err(|reason| OutputError { path: folder.clone(), reason })?;
        write_file(&path, to_json(self).as_bytes())?;
        Ok(path.canonicalize().unwrap_or(path))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut checks: Vec<&Check> = self.sections.values().flat_map(|s| &s.checks).collect();
        checks.sort_by_key(|check| check.met);
        let missed = checks.iter().filter(|check| !check.met).count();
        let rows = checks.iter().map(|check| check.row().to_vec());
        writeln!(f, "\n== all targets, misses first\n{}", table(&CHECK_COLUMNS, rows))?;
        writeln!(f, "{} met, {missed} missed", checks.len() - missed)
    }
}
