//! The results of a comparison, as rows of tables.

use serde::Serialize;

use super::Counted;
use crate::metrics::RunResult;

/// One fabric at one point.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Place {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the point.
    pub point: String,
    /// Name of the fabric.
    pub fabric: String,
    /// The published mean slowdown, if there is one.
    pub published: Option<f64>,
    /// Why the fabric's numbers differ from the published ones, if they do.
    pub why: String,
}

impl Place {
    /// True if another place has the same point.
    pub(super) fn is_with(&self, other: &Place) -> bool {
        self.experiment == other.experiment && self.point == other.point
    }

    pub(super) fn cells(&self) -> Vec<String> {
        [&self.experiment, &self.point, &self.fabric].map(String::clone).to_vec()
    }

    /// Difference of a mean slowdown from the published one, in percent.
    fn percent(&self, slowdown_mean: Option<f64>) -> Option<f64> {
        Some((slowdown_mean? / self.published? - 1.0) * 100.0)
    }
}

/// The results of a fabric at a point, with every message run to its end.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The fabric and the point.
    #[serde(flatten)]
    pub place: Place,
    /// Share of its busiest links that the messages of the scenario's fabric need. Over 1 it cannot
    /// carry them. `None` for a trace.
    pub load_asked: Option<f64>,
    /// The run on the same messages at the same times as every other fabric.
    pub same_messages: RunResult,
    /// The run with the load counted in its own blocks; `None` for the scenario's own fabric, where
    /// it would be the same run.
    pub own_blocks: Option<RunResult>,
}

impl Compared {
    /// Notices for the reader about its runs: lost messages, and fallbacks.
    #[must_use]
    pub fn said(&self) -> Vec<String> {
        let mut said = Vec::new();
        for run in [Some(&self.same_messages), self.own_blocks.as_ref()].into_iter().flatten() {
            let name = format!("{} {}", run.fabric, run.label);
            if run.messages_lost > 0 {
                let (lost, started) = (run.messages_lost, run.messages_started);
                said.push(format!("{name}: {lost} of {started} messages lost"));
            }
            said.extend(run.notices.iter().map(|notice| format!("{name}: {notice}")));
        }
        said
    }
}

/// The table of all points: header and rows. Columns that start with `own` are for load counted in
/// the fabric's own blocks.
#[must_use]
pub fn points_rows(rows: &[Compared]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let head = vec![
        "experiment",
        "point",
        "fabric",
        "asked",
        "slowdown",
        "p99",
        "latency ns",
        "p99 ns",
        "own slowdown",
        "own p99",
        "own ns",
        "published",
        "differs",
    ];
    let row = |row: &Compared| {
        let all = row.same_messages.shown_all();
        let own = row.own_blocks.as_ref().map(RunResult::shown_all);
        let mut cells = row.place.cells();
        cells.extend([
            number(row.load_asked, 2),
            number(all.slowdown_mean, 3),
            number(all.slowdown_p99, 3),
            number(all.latency_ns_mean, 1),
            number(all.latency_ns_p99, 1),
            number(own.as_ref().and_then(|own| own.slowdown_mean), 3),
            number(own.as_ref().and_then(|own| own.slowdown_p99), 3),
            number(own.as_ref().and_then(|own| own.latency_ns_mean), 1),
            number(row.place.published, 2),
            differs(row),
        ]);
        cells
    };
    (head, rows.iter().map(row).collect())
}

/// The difference of the mean slowdown from the published one, and its reason if it is over 10 %.
fn differs(row: &Compared) -> String {
    let Some(percent) = row.place.percent(row.same_messages.shown_all().slowdown_mean) else {
        return "-".to_owned();
    };
    if percent.abs() <= NEAR_PERCENT {
        return format!("{percent:+.0} %");
    }
    let why = match row.load_asked {
        Some(asked) if asked > 1.0 => format!("overloaded, asked for {asked:.2} of its links"),
        _ => "run to its end, over the time alone".to_owned(),
    };
    let own = if row.place.why.is_empty() { "" } else { "; " };
    format!("{percent:+.0} %: {why}{own}{}", row.place.why)
}

/// The result of a fabric at a point by a published method.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ByMethod {
    /// The fabric and the point.
    #[serde(flatten)]
    pub place: Place,
    /// Mean over the seeds of the mean over the flows that ended in time.
    pub slowdown_mean: Option<f64>,
    /// That mean for each seed.
    pub slowdown_mean_by_seed: Vec<Option<f64>>,
    /// Mean over the seeds of the mean time of these flows.
    pub latency_ns_mean: Option<f64>,
    /// Number of flows that ended in time, over all seeds.
    pub flows: u64,
    /// Number of messages that had not ended when their run was over, over all seeds.
    pub unfinished: u64,
    /// Time at which the run of the first seed was over, in ns.
    pub stopped_ns: f64,
}

impl ByMethod {
    /// The result at a place from the runs of its seeds.
    #[must_use]
    pub fn of(place: Place, seeds: &[Counted]) -> ByMethod {
        let by_seed: Vec<Option<f64>> = seeds.iter().map(|seed| seed.slowdown_mean).collect();
        ByMethod {
            place,
            slowdown_mean: mean(by_seed.iter().copied()),
            slowdown_mean_by_seed: by_seed,
            latency_ns_mean: mean(seeds.iter().map(|seed| seed.latency_ns_mean)),
            flows: seeds.iter().map(|seed| seed.flows).sum(),
            unfinished: seeds.iter().map(|seed| seed.unfinished).sum(),
            stopped_ns: seeds.first().map_or(0.0, |seed| seed.stopped_ns),
        }
    }

    /// The difference from the published value, and its reason if it is over 10 %.
    fn differs(&self) -> String {
        match self.place.percent(self.slowdown_mean) {
            None => "-".to_owned(),
            Some(percent) if percent.abs() <= NEAR_PERCENT || self.place.why.is_empty() => {
                format!("{percent:+.0} %")
            }
            Some(percent) => format!("{percent:+.0} %: {}", self.place.why),
        }
    }
}

/// The table of points by a published method: header and rows.
#[must_use]
pub fn method_rows(rows: &[ByMethod]) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let head = vec![
        "experiment",
        "point",
        "fabric",
        "flows",
        "unfinished",
        "over at ns",
        "slowdown",
        "published",
        "differs",
    ];
    let row = |row: &ByMethod| {
        let mut cells = row.place.cells();
        cells.extend([
            row.flows.to_string(),
            row.unfinished.to_string(),
            number(Some(row.stopped_ns), 0),
            number(row.slowdown_mean, 3),
            number(row.place.published, 2),
            row.differs(),
        ]);
        cells
    };
    (head, rows.iter().map(row).collect())
}

/// Differences up to this percentage need no reason.
const NEAR_PERCENT: f64 = 10.0;

/// The mean of the values; `None` is left out.
fn mean(values: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let known: Vec<f64> = values.flatten().collect();
    (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
}

fn number(value: Option<f64>, decimals: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.decimals$}"))
}

#[cfg(test)]
pub(super) mod tests {
    use ethermem_units::{Bytes, Ps};

    use super::*;
    use crate::compare::Order;
    use crate::metrics::{FabricStats, Recorder, RunFacts, Window};
    use crate::{Kind, Message};

    /// A message of `ns`, which takes `alone_ns` alone.
    pub(crate) fn run(ns: u64, alone_ns: u64) -> RunResult {
        let mut recorder = Recorder::new(Window::ALL);
        let (arrival, bytes) = (Ps(0), Bytes(64));
        let message = Message { index: 0, arrival, kind: Kind::Read, compute: 0, memory: 1, bytes };
        recorder.record(&message, Ps::from_ns(ns), Ps::from_ns(alone_ns));
        let facts = RunFacts {
            nodes: 2,
            messages_started: 1,
            simulated: Ps::from_ns(ns),
            ..RunFacts::default()
        };
        recorder.finish(facts, FabricStats::default())
    }

    pub(crate) fn row(
        fabric: &str,
        published: f64,
        same: RunResult,
        own: Option<RunResult>,
    ) -> Compared {
        let place = Place {
            experiment: "reads".to_owned(),
            point: "load=0.9".to_owned(),
            fabric: fabric.to_owned(),
            published: Some(published),
            why: if fabric == "cxl" { "flits".to_owned() } else { String::new() },
        };
        Compared {
            place,
            load_asked: Some(if fabric == "dctcp" { 1.5 } else { 0.9 }),
            same_messages: same,
            own_blocks: own,
        }
    }

    pub(crate) fn rows() -> Vec<Compared> {
        vec![
            row("edm", 1.2, run(400, 200), None),
            row("cxl", 2.0, run(300, 100), None),
            row("dctcp", 3.0, run(4_000, 1_000), Some(run(1_500, 1_000))),
        ]
    }

    #[test]
    fn the_difference_to_a_published_value_has_its_reason() {
        let (head, cells) = points_rows(&rows());
        assert!(cells.iter().all(|row| row.len() == head.len()));
        assert_eq!(cells[0].last().unwrap(), "+67 %: run to its end, over the time alone");
        assert_eq!(cells[2].last().unwrap(), "+33 %: overloaded, asked for 1.50 of its links");
        assert_eq!(cells[1].last().unwrap(), "+50 %: run to its end, over the time alone; flits");
        let near = [row("edm", 2.1, run(400, 200), None)];
        assert_eq!(points_rows(&near).1[0].last().unwrap(), "-5 %");
    }

    #[test]
    fn pairs_that_come_out_the_other_way_round_are_counted() {
        let mut rows = rows();
        let order = |rows: &[Compared]| {
            let of = |row: &Compared| row.same_messages.kinds.all.slowdown_mean;
            let places: Vec<_> = rows.iter().map(|row| (&row.place, of(row))).collect();
            Order::of(&places)
        };
        assert_eq!(order(&rows), Order { pairs: 3, reversed: Vec::new() });
        rows[2].place.published = Some(2.1);
        assert_eq!(order(&rows).pairs, 2, "2.0 and 2.1 have no order");
        rows[2].place.published = Some(1.0);
        let order = order(&rows);
        let found: Vec<(&str, &str)> =
            order.reversed.iter().map(|pair| (pair.lower.as_str(), pair.higher.as_str())).collect();
        assert_eq!(found, [("dctcp", "edm"), ("dctcp", "cxl")]);
        let first =
            "order: as published in 1 of 3 pairs whose published values are over 10 % apart";
        assert_eq!(order.lines()[..2], [first, "order: dctcp not under edm at 1"]);
    }
}
