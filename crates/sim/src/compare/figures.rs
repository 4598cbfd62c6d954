//! The figures of a comparison.

use super::page::Repeat;
use super::picture::{
    At, beside_published, data_table, distinct, ns_axis, of_bars, role, spoken, together,
};
use super::{ByMethod, Compared, method_rows, points_rows};
use crate::metrics::{KindStats, RunResult};
use crate::report::{Axis, BarPlot, BarSeries, Figure, LinePlot, Panel, Plot, Series};

/// A mean and a tail of one quantity.
type Measure = [(&'static str, fn(&KindStats) -> Option<f64>); 2];

const MEASURES: [Measure; 2] = [
    [("Mean", |kind| kind.slowdown_mean), ("99th percentile", |kind| kind.slowdown_p99)],
    [("Mean", |kind| kind.latency_ns_mean), ("99th percentile", |kind| kind.latency_ns_p99)],
];

const SLOWDOWN_CAPTION: &str = "Time of a message over the time that it takes alone in the same \
    fabric. Every fabric gets the same messages at the same times.";
const LATENCY_CAPTION: &str =
    "The same messages in ns: a fabric that is slow alone can have a low slowdown.";
const CDF_CAPTION: &str = "The same messages. On the left the share that has finished, on the \
    right the share that has not, which shows the tail.";

pub(super) fn figures_of(experiment: &str, rows: &[&Compared], repeat: Repeat<'_>) -> Vec<Figure> {
    let figure = |what: &str, title: &str, caption: String, plot: Plot| {
        named(experiment, what, title, caption, plot, repeat)
    };
    let same = |row: &Compared| row.same_messages.shown_all();
    let own = |row: &Compared| row.own_blocks.as_ref().unwrap_or(&row.same_messages).shown_all();
    let panels = |measure: Measure, of: &dyn Fn(&Compared) -> KindStats, y: Axis| {
        let at = |(title, number): (&'static str, fn(&KindStats) -> Option<f64>)| {
            (title, rows.iter().map(|row| (&row.place, number(&of(row)))).collect::<Vec<_>>())
        };
        together(&measure.map(at), y)
    };
    let slowdown = || Axis::slowdown("Slowdown");
    let mut figures = vec![
        figure(
            "slowdown",
            "slowdown",
            format!("{SLOWDOWN_CAPTION} {}", overloaded(rows)),
            panels(MEASURES[0], &same, slowdown()),
        ),
        figure(
            "latency",
            "latency in ns",
            LATENCY_CAPTION.to_owned(),
            panels(MEASURES[1], &same, ns_axis()),
        ),
    ];
    if rows.iter().any(|row| row.own_blocks.is_some()) {
        let caption = "The load counted in each fabric's own blocks: with larger framing fewer \
                       messages, so that all links are as full.";
        let plot = panels(MEASURES[0], &own, slowdown());
        figures.push(figure("own-blocks", "slowdown, links as full", caption.to_owned(), plot));
    }
    let means: Vec<At<'_>> = rows.iter().map(|row| (&row.place, same(row).slowdown_mean)).collect();
    if means.iter().any(|(place, _)| place.published.is_some()) {
        let owned: Vec<Compared> = rows.iter().map(|row| (*row).clone()).collect();
        let (head, cells) = points_rows(&owned);
        figures.push(Figure {
            table: Some(data_table(columns((head, cells), &[1, 2, 12, 3, 4, 11]), &[0, 1, 2])),
            ..figure(
                "published",
                "mean slowdown beside the published values",
                "Every message run to its end, over the time alone: not how the published values \
                 were made, which --method published repeats. The table says by how much each \
                 number differs, and why where that is over 10 %. A fabric that cannot carry the \
                 load is in no steady state: its slowdown grows with the length of the run."
                    .to_owned(),
                beside_published(&means, slowdown()),
            )
        });
    }
    figures
}

pub(super) fn method_figures(
    experiment: &str,
    rows: &[&ByMethod],
    repeat: Repeat<'_>,
) -> Vec<Figure> {
    let figure = |what: &str, title: &str, caption: &str, plot: Plot| {
        named(experiment, what, title, caption.to_owned(), plot, repeat)
    };
    let means: Vec<At<'_>> = rows.iter().map(|row| (&row.place, row.slowdown_mean)).collect();
    let times: Vec<At<'_>> = rows.iter().map(|row| (&row.place, row.latency_ns_mean)).collect();
    let slowdown = || Axis::slowdown("Mean slowdown");
    let mut figures = vec![
        figure(
            "slowdown",
            "mean slowdown, as published",
            "Over the published denominators, which are other ones for each fabric. Points have \
             the names that the published values give them.",
            together(&[("", means.clone())], slowdown()),
        ),
        figure(
            "latency",
            "mean time of a flow in ns",
            "The same flows without a denominator. Where a read is two flows, its request counts \
             as one of them.",
            together(&[("", times)], ns_axis()),
        ),
    ];
    if means.iter().any(|(place, _)| place.published.is_some()) {
        let owned: Vec<ByMethod> = rows.iter().map(|row| (*row).clone()).collect();
        let table = columns(method_rows(&owned), &[1, 2, 8, 6, 7, 4]);
        figures.push(Figure {
            table: Some(data_table(table, &[0, 1, 2])),
            ..figure(
                "published",
                "beside the published values",
                "The table says by how much each number differs, and why where that is over 10 %.",
                beside_published(&means, slowdown()),
            )
        });
    }
    figures
}

/// A figure of an experiment, named as in the page's address.
fn named(
    experiment: &str,
    what: &str,
    title: &str,
    caption: String,
    plot: Plot,
    repeat: Repeat<'_>,
) -> Figure {
    let letter = |sign: char| if sign.is_ascii_alphanumeric() { sign } else { '-' };
    let id = format!("{}-{what}", experiment.chars().map(letter).collect::<String>());
    let title = format!("{}: {title}", spoken(experiment));
    Figure { command: repeat(Some(experiment), &id), id, title, caption, plot, table: None }
}

/// One workload on several fabrics.
pub(super) fn figures_of_runs(runs: &[&RunResult], repeat: Repeat<'_>) -> Vec<Figure> {
    let slowdown = by_kind(runs, MEASURES[0], Axis::slowdown("Slowdown"));
    let latency = by_kind(runs, MEASURES[1], ns_axis());
    let figures = [
        ("slowdown", "Slowdown by kind of message", SLOWDOWN_CAPTION, slowdown),
        ("latency", "Latency by kind of message", LATENCY_CAPTION, latency),
        ("latency-distribution", "Distribution of latency", CDF_CAPTION, distribution(runs)),
    ];
    let figure = |(id, title, caption, plot): (&str, &str, &str, Plot)| Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        plot,
        table: None,
        command: repeat(None, id),
    };
    figures.into_iter().map(figure).collect()
}

/// The fabrics that are offered more than they can carry, with the points.
fn overloaded(rows: &[&Compared]) -> String {
    let over: Vec<&Compared> = rows
        .iter()
        .filter(|row| row.load_asked.is_some_and(|asked| asked > 1.0))
        .copied()
        .collect();
    if over.is_empty() {
        return "Every fabric's links can carry them.".to_owned();
    }
    let fabrics = distinct(over.iter().map(|row| &row.place.fabric));
    let said = fabrics.into_iter().map(|fabric| {
        let of = over.iter().filter(|row| row.place.fabric == *fabric);
        let points: Vec<&str> = of.map(|row| row.place.point.as_str()).collect();
        format!("{fabric} ({})", points.join(", "))
    });
    let said = said.collect::<Vec<_>>().join("; ");
    format!(
        "They ask for more than the links of these can carry, whose queues then grow to the last \
         arrival: {said}."
    )
}

/// The requested columns of a table, in this order.
pub(super) fn columns(
    (head, rows): (Vec<&'static str>, Vec<Vec<String>>),
    wanted: &[usize],
) -> (Vec<&'static str>, Vec<Vec<String>>) {
    let row = |row: Vec<String>| wanted.iter().map(|at| row[*at].clone()).collect();
    (wanted.iter().map(|at| head[*at]).collect(), rows.into_iter().map(row).collect())
}

/// The kinds of message that any of the runs has, with all kinds together first.
fn kinds<'r>(runs: &[&'r RunResult]) -> Vec<(&'static str, Vec<Option<&'r KindStats>>)> {
    let of =
        |kind: fn(&RunResult) -> Option<&KindStats>| runs.iter().map(|run| kind(run)).collect();
    let all: [(&str, Vec<Option<&KindStats>>); 4] = [
        ("all", of(|run| Some(&run.kinds.all))),
        ("reads", of(|run| Some(&run.kinds.read))),
        ("writes", of(|run| Some(&run.kinds.write))),
        ("atomics", of(|run| run.kinds.rmw.as_ref())),
    ];
    let some = |kinds: &Vec<Option<&KindStats>>| kinds.iter().flatten().any(|of| of.messages > 0);
    all.into_iter().filter(|(_, kinds)| some(kinds)).collect()
}

fn by_kind(runs: &[&RunResult], measure: Measure, y: Axis) -> Plot {
    let kinds = kinds(runs);
    let panel = |(title, number): (&'static str, fn(&KindStats) -> Option<f64>)| Panel {
        title: title.to_owned(),
        items: runs
            .iter()
            .enumerate()
            .map(|(at, run)| BarSeries {
                intervals: Vec::new(),
                name: run.fabric.clone(),
                role: role(&run.fabric),
                values: kinds.iter().map(|(_, of)| number(&run.shown(of[at]?))).collect(),
            })
            .collect(),
    };
    Plot::GroupedBars(BarPlot {
        category_label: "Messages".to_owned(),
        categories: kinds.iter().map(|(name, _)| (*name).to_owned()).collect(),
        y: of_bars(y),
        panels: measure.map(panel).into(),
        marks: Vec::new(),
    })
}

fn distribution(runs: &[&RunResult]) -> Plot {
    let series = |run: &&RunResult| Series {
        intervals: Vec::new(),
        name: run.fabric.clone(),
        role: role(&run.fabric),
        points: run
            .shown_all()
            .latency_cdf
            .iter()
            .map(|point| (point.latency_ns, point.share))
            .collect(),
    };
    Plot::Cdf(LinePlot {
        x: ns_axis(),
        y: Axis::from_zero("Share of messages", 4),
        panels: vec![Panel { title: String::new(), items: runs.iter().map(series).collect() }],
        marks: Vec::new(),
    })
}
