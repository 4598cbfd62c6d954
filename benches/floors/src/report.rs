//! The rounds as a table and as JSON.

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde::Serialize;

use crate::measure::{Round, Spread, over_floor};

/// What a case came to.
#[derive(Debug, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) floor: Option<String>,
    /// One for each round of the run, `null` where it failed.
    pub(crate) rounds: Vec<Option<Round>>,
    pub(crate) p50_us: Option<Spread>,
    pub(crate) p99_us: Option<Spread>,
    pub(crate) operations_per_s: Option<Spread>,
    /// Against the floor of the same round: times where both have them, else rates.
    pub(crate) over_floor: Option<Spread>,
    /// Why it has no rounds.
    pub(crate) skipped: Option<String>,
}

/// All of a run.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) kernel: String,
    pub(crate) client_cpu: usize,
    pub(crate) server_cpu: usize,
    pub(crate) rounds: u32,
    pub(crate) samples: u32,
    pub(crate) lines: Vec<Line>,
}

impl Line {
    pub(crate) fn new(name: String, floor: Option<String>) -> Line {
        let (rounds, none) = (Vec::new(), None);
        Line {
            name,
            floor,
            rounds,
            p50_us: none,
            p99_us: none,
            operations_per_s: none,
            over_floor: none,
            skipped: None,
        }
    }

    fn summarise(&mut self, floor: Option<&[Option<Round>]>) {
        let rounds = || self.rounds.iter().flatten();
        let latencies = || rounds().filter_map(|round| round.latency);
        self.p50_us = Spread::of(latencies().map(|latency| latency.p50_us));
        self.p99_us = Spread::of(latencies().map(|latency| latency.p99_us));
        self.operations_per_s = Spread::of(rounds().map(|round| round.operations_per_s));
        let pairs = self.rounds.iter().zip(floor.unwrap_or_default());
        let ratios =
            pairs.filter_map(|(own, floor)| Some(over_floor(own.as_ref()?, floor.as_ref()?)));
        self.over_floor = Spread::of(ratios);
    }
}

impl Report {
    /// Computes what the rounds say.
    pub(crate) fn summarise(&mut self) {
        for at in 0..self.lines.len() {
            let name = self.lines[at].floor.clone();
            let floor = self.lines.iter().find(|line| Some(&line.name) == name.as_ref());
            let floor = floor.map(|line| line.rounds.clone());
            self.lines[at].summarise(floor.as_deref());
        }
    }

    /// Median, and least to most of the rounds.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_header(["what", "p50, us", "p99, us", "operations/s", "over floor"]);
        for line in self.lines.iter().filter(|line| line.operations_per_s.is_some()) {
            let us = |value: f64| format!("{value:.2}");
            let rate = |value: f64| format!("{:.0} k", value / 1e3);
            let cells = [
                line.name.clone(),
                shown(line.p50_us, us),
                shown(line.p99_us, us),
                shown(line.operations_per_s, rate),
                shown(line.over_floor, us),
            ];
            table.add_row(cells.map(|cell| Cell::new(cell).set_alignment(CellAlignment::Left)));
        }
        table
    }
}

fn shown(spread: Option<Spread>, value: impl Fn(f64) -> String) -> String {
    let text = |Spread { median, least, most }| {
        format!("{} ({} to {})", value(median), value(least), value(most))
    };
    spread.map_or_else(|| "-".to_owned(), text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Latency;

    fn round(p50_us: f64) -> Option<Round> {
        let latency = Some(Latency { p50_us, p99_us: 2.0 * p50_us });
        Some(Round { latency, operations_per_s: 1e6 / p50_us })
    }

    #[test]
    fn ratios_are_those_of_the_same_round() {
        let mut floor = Line::new("floor".to_owned(), None);
        floor.rounds = vec![round(2.0), None, round(4.0)];
        let mut own = Line::new("own".to_owned(), Some("floor".to_owned()));
        own.rounds = vec![round(3.0), round(9.0), round(8.0)];
        let mut report = Report {
            kernel: String::new(),
            client_cpu: 0,
            server_cpu: 1,
            rounds: 3,
            samples: 1,
            lines: vec![floor, own],
        };
        report.summarise();
        let own = &report.lines[1];
        assert_eq!(own.over_floor, Some(Spread { median: 1.75, least: 1.5, most: 2.0 }));
        assert_eq!(own.p50_us, Some(Spread { median: 8.0, least: 3.0, most: 9.0 }));
        let table = report.table().to_string();
        assert!(table.contains("| 8.00 (3.00 to 9.00)"), "{table}");
        assert!(table.contains("| 1.75 (1.50 to 2.00)"), "{table}");
    }
}
