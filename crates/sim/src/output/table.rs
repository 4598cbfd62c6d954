use std::io::IsTerminal;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use crate::metrics::{KindStats, RunResult};

/// How a table is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStyle {
    /// Lines for a person at a terminal.
    Ruled,
    /// Columns of spaces, for files and pipes.
    Plain,
}

impl TableStyle {
    /// Ruled when the standard output is a terminal.
    #[must_use]
    pub fn for_stdout() -> TableStyle {
        if std::io::stdout().is_terminal() { TableStyle::Ruled } else { TableStyle::Plain }
    }

    /// A table of any content: `text_columns` from the left hold text, the others numbers.
    #[must_use]
    pub fn render(self, header: &[&str], text_columns: usize, rows: &[Vec<String>]) -> String {
        let mut table = self.table(header, text_columns);
        for row in rows {
            table.add_row(row);
        }
        text(&table)
    }

    pub(crate) fn table(self, header: &[&str], text_columns: usize) -> Table {
        let mut table = Table::new();
        table.load_style(match self {
            TableStyle::Ruled => RULED,
            TableStyle::Plain => presets::NOTHING,
        });
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(header);
        for column in table.column_iter_mut().skip(text_columns) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

const RULE: LineStyle = LineStyle::new('─', '─', '─', '─');
const RULED: comfy_table::TableStyle =
    comfy_table::TableStyle::new().top_border(RULE).header_separator(RULE).bottom_border(RULE);

/// What fits a terminal of 120 columns; JSON has the rest.
const HEADER: [&str; 12] = [
    "fabric",
    "run",
    "load",
    "kind",
    "messages",
    "slowdown",
    "p50",
    "p99",
    "latency ns",
    "p50",
    "p99",
    "Gb/s/node",
];
/// `load` and what follows but `kind` are numbers.
const TEXT_COLUMNS: usize = 2;
const KIND_COLUMN: usize = 3;

/// One row for every kind of message of every run, then the lost messages and the notices.
#[must_use]
pub fn runs_table(runs: &[RunResult], style: TableStyle) -> String {
    let mut table = style.table(&HEADER, TEXT_COLUMNS);
    if let Some(column) = table.column_mut(KIND_COLUMN) {
        column.set_cell_alignment(CellAlignment::Left);
    }
    for run in runs {
        let kinds = &run.kinds;
        let mut first = true;
        for (kind, stats) in [
            ("read", Some(&kinds.read)),
            ("write", Some(&kinds.write)),
            ("rmw", kinds.rmw.as_ref()),
            ("all", Some(&kinds.all)),
        ] {
            if let Some(stats) = stats.filter(|stats| stats.messages > 0 || kind == "all") {
                table.add_row(row(run, kind, stats, first));
                first = false;
            }
        }
    }
    let mut text = text(&table);
    for run in runs {
        if run.messages_lost > 0 {
            let (lost, started) = (run.messages_lost, run.messages_started);
            text.push_str(&format!("{}: {lost} of {started} messages lost\n", run.label));
        }
        for notice in &run.notices {
            text.push_str(&format!("{}: {notice}\n", run.label));
        }
    }
    text
}

fn row(run: &RunResult, kind: &str, stats: &KindStats, first: bool) -> Vec<Cell> {
    let once = |text: String| if first { text } else { String::new() };
    let load = run.load_measured.or(run.load_requested);
    [
        once(run.fabric.clone()),
        once(run.label.clone()),
        once(number(load, 2)),
        kind.to_owned(),
        stats.messages.to_string(),
        number(stats.slowdown_mean, 3),
        number(stats.slowdown_p50, 3),
        number(stats.slowdown_p99, 3),
        number(stats.latency_ns_mean, 2),
        number(stats.latency_ns_p50, 2),
        number(stats.latency_ns_p99, 2),
        once(number(Some(run.payload_goodput_gbps_per_node), 2)),
    ]
    .map(Cell::new)
    .into()
}

fn text(table: &Table) -> String {
    table.lines().flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()]).collect()
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use ethermem_units::{Bytes, Ps};

    use super::*;
    use crate::metrics::{FabricStats, Recorder, RunFacts, Window};
    use crate::{Kind, Message};

    fn run() -> RunResult {
        let mut recorder = Recorder::new(Window::ALL);
        let message = |index, kind| Message {
            index,
            arrival: Ps(0),
            kind,
            compute: 0,
            memory: 1,
            bytes: Bytes(64),
        };
        recorder.record(&message(0, Kind::Read), Ps(300_000), Ps(300_000));
        recorder.record(&message(1, Kind::ReadModifyWrite), Ps(600_000), Ps(300_000));
        recorder.lost(&message(2, Kind::Write));
        let facts = RunFacts {
            fabric: "edm".to_owned(),
            label: "edm srpt".to_owned(),
            load_requested: Some(0.9),
            messages_started: 3,
            nodes: 2,
            simulated: Ps::from_ns(10),
            notices: vec!["something fell back".to_owned()],
            ..RunFacts::default()
        };
        recorder.finish(facts, FabricStats::default())
    }

    #[test]
    fn a_row_for_every_kind_there_was_then_what_must_be_said() {
        let table = runs_table(&[run()], TableStyle::Plain);
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1][..6], ["edm", "edm", "srpt", "0.90", "read", "1"]);
        assert_eq!(rows[2][..3], ["rmw", "1", "2.000"]);
        assert_eq!(rows[3][..3], ["all", "2", "1.500"]);
        assert_eq!(rows[3][5..8], ["450.00", "300.01", "600.00"]);
        let said: Vec<&str> = table.lines().skip(4).collect();
        assert_eq!(said, ["edm srpt: 1 of 3 messages lost", "edm srpt: something fell back"]);
    }

    #[test]
    fn a_plain_table_has_no_lines_and_a_ruled_one_fits_a_terminal() {
        assert!(runs_table(&[run()], TableStyle::Plain).is_ascii());
        let ruled = runs_table(&[run()], TableStyle::Ruled);
        assert_eq!(ruled.lines().filter(|line| line.starts_with('─')).count(), 3);
        assert!(ruled.lines().all(|line| line.chars().count() <= 120), "{ruled}");
    }
}
