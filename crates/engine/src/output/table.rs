use std::collections::BTreeSet;

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, presets};

use crate::metrics::{FrameStats, KindStats, ProgramStats, RunResult};

/// The style of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableStyle {
    /// With lines, for a person at a terminal of this many columns.
    Ruled {
        /// Maximum width in columns. A wider table leaves out its optional columns; if it is still
        /// wider, its widest text columns are wrapped.
        width_max: usize,
    },
    /// Columns separated by spaces, for files and pipes: all columns, however wide.
    Plain,
}

/// A table of text and numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextTable<'a> {
    /// Headings of the columns.
    pub header: &'a [&'a str],
    /// Indices of the text columns, which are aligned to the left; the others are numbers.
    pub text_columns: &'a [usize],
    /// Indices of the columns to leave out where there is no room, the first one first.
    pub optional_columns: &'a [usize],
    /// Rows, with as many cells as there are columns.
    pub rows: Vec<Vec<String>>,
}

/// Number of spaces around a table, and between its columns.
const MARGIN: usize = 1;
const GAP: u16 = 2;
/// Least number of characters to which a text column is wrapped.
const WRAPPED_CHARS_MIN: usize = 20;

impl TextTable<'_> {
    /// Draws the table, with a line break after every line.
    #[must_use]
    pub fn render(&self, style: TableStyle) -> String {
        let unique: BTreeSet<&str> = self.header.iter().copied().collect();
        debug_assert_eq!(unique.len(), self.header.len(), "two columns of one name");
        let shown = self.columns_shown(style);
        let limits = self.limits(style, &shown);
        let of = |cells: &mut dyn Iterator<Item = &str>| -> Vec<Cell> {
            let cells: Vec<&str> = cells.collect();
            let cell = |&column: &usize| Cell::new(wrap(cells[column], limits[column]));
            shown.iter().map(cell).collect()
        };
        let mut table = Table::new();
        table.load_style(match style {
            TableStyle::Ruled { .. } => RULED,
            TableStyle::Plain => presets::NOTHING,
        });
        table.set_content_arrangement(ContentArrangement::Disabled);
        table.set_header(of(&mut self.header.iter().copied()));
        for row in &self.rows {
            table.add_row(of(&mut row.iter().map(String::as_str)));
        }
        for (column, &index) in table.column_iter_mut().zip(&shown) {
            if !self.text_columns.contains(&index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
            if let TableStyle::Ruled { .. } = style {
                // The rules take a column of their own between two others.
                column.set_padding((1, GAP - 2));
            }
        }
        table.lines().flat_map(|line| [line.trim_end().to_owned(), "\n".to_owned()]).collect()
    }

    fn columns_shown(&self, style: TableStyle) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.header.len()).collect();
        let TableStyle::Ruled { width_max } = style else { return shown };
        for left_out in self.optional_columns {
            if self.width(&shown) <= width_max {
                break;
            }
            shown.retain(|column| column != left_out);
        }
        shown
    }

    /// Most characters of each column, by the column's number: as its widest cell has, unless the
    /// table does not fit. Then the widest text columns have fewer.
    fn limits(&self, style: TableStyle, shown: &[usize]) -> Vec<usize> {
        let mut limits: Vec<usize> =
            (0..self.header.len()).map(|column| self.chars(column)).collect();
        let TableStyle::Ruled { width_max } = style else { return limits };
        for _ in width_max..self.width(shown) {
            let texts = shown.iter().copied().filter(|column| self.text_columns.contains(column));
            match texts.max_by_key(|&column| limits[column]) {
                Some(widest) if limits[widest] > WRAPPED_CHARS_MIN => limits[widest] -= 1,
                _ => break,
            }
        }
        limits
    }

    /// Number of columns of a terminal that the table takes with these columns.
    fn width(&self, shown: &[usize]) -> usize {
        let gap = usize::from(GAP);
        shown.iter().map(|&column| self.chars(column) + gap).sum::<usize>() - gap + 2 * MARGIN
    }

    /// Number of characters of the widest cell of a column.
    fn chars(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[column].chars().count());
        cells.chain([self.header[column].chars().count()]).max().unwrap_or(0)
    }
}

/// `text` in lines of at most `chars` characters, broken between words. A longer word stays whole.
fn wrap(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    let (mut lines, mut room) = (String::new(), chars);
    for word in text.split(' ') {
        let length = word.chars().count();
        if lines.is_empty() {
            room = chars.saturating_sub(length);
        } else if length < room {
            lines.push(' ');
            room -= length + 1;
        } else {
            lines.push('\n');
            room = chars.saturating_sub(length);
        }
        lines.push_str(word);
    }
    lines
}

const RULE: LineStyle = LineStyle::new('─', '─', '─', '─');
const RULED: comfy_table::TableStyle =
    comfy_table::TableStyle::new().top_border(RULE).header_separator(RULE).bottom_border(RULE);

/// The headings of the table; JSON has the other values.
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
    "p50 ns",
    "p99 ns",
    "Gb/s/node",
];
/// The columns of fabric, run and kind.
const TEXT_COLUMNS: [usize; 3] = [0, 1, 3];
/// The column of the run. With only one run it is left out; otherwise it is the last optional one.
const RUN_COLUMN: usize = 1;
/// The columns of medians, messages and goodput.
const OPTIONAL_COLUMNS: [usize; 4] = [9, 6, 4, 11];

/// One row for every kind of message of every run, then the lost messages and the notices.
#[must_use]
pub fn runs_table(runs: &[RunResult], style: TableStyle) -> String {
    let mut rows = Vec::new();
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
                rows.push(row(run, kind, stats, first));
                first = false;
            }
        }
    }
    let mut optional_columns = OPTIONAL_COLUMNS.to_vec();
    let alike = runs.iter().all(|run| run.label == runs[0].label);
    optional_columns.insert(if alike { 0 } else { OPTIONAL_COLUMNS.len() }, RUN_COLUMN);
    let table = TextTable {
        header: &HEADER,
        text_columns: &TEXT_COLUMNS,
        optional_columns: &optional_columns,
        rows,
    };
    let mut text = table.render(style);
    let one_fabric = runs.iter().all(|run| run.fabric == runs[0].fabric);
    for run in runs {
        let name =
            if one_fabric { run.label.clone() } else { format!("{} on {}", run.label, run.fabric) };
        if run.messages_lost > 0 {
            let (lost, started) = (run.messages_lost, run.messages_started);
            text.push_str(&format!("{name}: {lost} of {started} messages lost\n"));
        }
        if let Some(program) = &run.program {
            text.push_str(&format!("{name}: {}\n", program_line(run, program)));
        }
        if let Some(frames) = &run.frames {
            text.push_str(&format!("{name}: {}\n", frames_line(frames)));
        }
        for notice in &run.notices {
            text.push_str(&format!("{name}: {notice}\n"));
        }
    }
    text
}

fn row(run: &RunResult, kind: &str, stats: &KindStats, first: bool) -> Vec<String> {
    let once = |text: String| if first { text } else { String::new() };
    let load = run.load_measured.or(run.load_requested);
    let stats = &run.shown(stats);
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
    .into()
}

fn program_line(run: &RunResult, program: &ProgramStats) -> String {
    let ProgramStats { name, steps, finished_ns, links_ns, over_links, .. } = program;
    format!(
        "{name} of {steps} steps on {}: {finished_ns:.2} ns, {} times the {links_ns:.2} ns of \
         links without latency",
        run.fabric,
        number(*over_links, 3),
    )
}

fn frames_line(frames: &FrameStats) -> String {
    let FrameStats { latency_ns_mean, latency_ns_p50, latency_ns_p99, .. } = frames;
    format!(
        "{} Ethernet frames: latency ns {} p50 {} p99 {}, slowdown {} p99 {}; without memory \
         traffic: latency ns {} p99 {}",
        frames.sent,
        number(*latency_ns_mean, 2),
        number(*latency_ns_p50, 2),
        number(*latency_ns_p99, 2),
        number(frames.slowdown_mean, 3),
        number(frames.slowdown_p99, 3),
        number(frames.latency_ns_mean_without_memory, 2),
        number(frames.latency_ns_p99_without_memory, 2),
    )
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
mod tests {
    use ethermem_units::{Bytes, Ps};
    use ethermem_workload::{Kind, Message};

    use super::*;
    use crate::metrics::{FabricStats, Recorder, RunFacts, Window};

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
    fn the_time_of_a_program_stands_below_the_table() {
        let stats = crate::metrics::ProgramStats {
            name: "gather".to_owned(),
            steps: 15,
            finished_ns: 82_561.5,
            links_ns: 78_643.2,
            over_links: Some(82_561.5 / 78_643.2),
            order: Vec::new(),
        };
        let table = runs_table(&[RunResult { program: Some(stats), ..run() }], TableStyle::Plain);
        let said = "edm srpt: gather of 15 steps on edm: 82561.50 ns, 1.050 times the 78643.20 ns \
                    of links without latency";
        assert_eq!(table.lines().nth_back(1), Some(said), "{table}");
    }

    #[test]
    fn a_load_that_is_not_sustained_has_no_latency_and_its_notice_names_what_is() {
        let steady = crate::metrics::Steady::sample();
        let notices = steady.notice(Some(0.9)).into_iter().collect();
        let over = RunResult { steady: Some(steady), notices, ..run() };
        let table = runs_table(&[over], TableStyle::Plain);
        let rows: Vec<Vec<&str>> =
            table.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(rows[1][4..], ["read", "1", "-", "-", "-", "-", "-", "-", "51.20"]);
        let said = "edm srpt: load 0.9 is not sustained: it carries 0.700, and latencies grow with \
                    the length of the run";
        assert_eq!(table.lines().last(), Some(said));
    }

    #[test]
    fn a_plain_table_has_no_lines_and_a_ruled_one_fits_its_terminal() {
        assert!(runs_table(&[run()], TableStyle::Plain).is_ascii());
        for (width_max, medians) in [(120, 2), (110, 2), (80, 0)] {
            let ruled = runs_table(&[run()], TableStyle::Ruled { width_max });
            assert_eq!(ruled.lines().filter(|line| line.starts_with('─')).count(), 3);
            assert!(ruled.lines().all(|line| line.chars().count() <= width_max), "{ruled}");
            assert_eq!(ruled.matches("p50").count(), medians, "{ruled}");
            assert_eq!(ruled.matches("p99").count(), 2, "{ruled}");
            assert!(ruled.contains("450.00") && ruled.contains("1.500"), "{ruled}");
        }
    }

    #[test]
    fn the_label_goes_last_where_it_tells_runs_apart() {
        let other = RunResult { label: "edm fcfs".to_owned(), ..run() };
        let style = TableStyle::Ruled { width_max: 80 };
        let ruled = runs_table(&[run(), other], style);
        assert!(ruled.contains("edm fcfs") && !ruled.contains("p50"), "{ruled}");
    }

    #[test]
    fn lines_below_the_table_name_the_fabric_where_there_are_several() {
        let other = RunResult { fabric: "cxl".to_owned(), ..run() };
        let table = runs_table(&[run(), other], TableStyle::Plain);
        for line in ["edm srpt on edm: something fell back", "edm srpt on cxl: something fell back"]
        {
            assert!(table.lines().any(|it| it == line), "{table}");
        }
    }

    #[test]
    fn the_widest_texts_of_a_table_that_does_not_fit_are_wrapped() {
        let words = "each link carries a word of text, ".repeat(4);
        let rows = vec![
            vec!["first".to_owned(), words.trim_end().to_owned(), "more ".repeat(15) + "more"],
            vec!["second".to_owned(), "short".to_owned(), "short".to_owned()],
        ];
        let header = ["name", "what it is", "beyond"];
        let table =
            TextTable { header: &header, text_columns: &[0, 1, 2], optional_columns: &[], rows };
        assert_eq!(table.render(TableStyle::Plain).lines().count(), 3);
        for width_max in [54, 80, 132] {
            let ruled = table.render(TableStyle::Ruled { width_max });
            assert!(ruled.lines().all(|line| line.chars().count() <= width_max), "{ruled}");
            let ruled = ruled.replace(['─', '\n'], " ");
            let shown: Vec<&str> = ruled.split_whitespace().collect();
            assert_eq!(shown.iter().filter(|word| **word == "carries").count(), 4, "{ruled}");
        }
        assert_eq!(wrap("one two three", 7), "one two\nthree");
        assert_eq!(wrap("one two three", 8), "one two\nthree");
        assert_eq!(wrap("a longerthanthat b", 5), "a\nlongerthanthat\nb");
    }
}
