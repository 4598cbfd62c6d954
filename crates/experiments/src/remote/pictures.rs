//! Parts that the pages of `emulate` and `study` share.

use ethermem_pager::{Counted, Emulation, Estimate, LOSS_MAX, Verdict};
use ethermem_sim::report::{
    Axis, DataTable, Figure, LinePlot, Mark, Panel, Plot, Role, Scale, Series,
};

/// Definition of the slowdown, for the foot of a page.
pub(super) const SLOWDOWN: &str = "The slowdown is the program's time with the delays of a network \
    over its time with the same share of its memory local and no delays, in runs that follow each \
    other. A mean is the geometric one of all pairs, an interval is of 95 % (Student's t of the \
    logarithms). What this machine itself takes to serve a page is in both times, so that it is \
    not in the slowdown. By waits, the slowdown is 1 plus the time that threads wait for the \
    network over that of the program without delays, less what other programs took of the \
    processors: it does not depend on what else runs.";

pub(super) fn local_axis() -> Axis {
    Axis::of_data("Memory that is local (% of the peak)", Scale::Linear, 0)
}

pub(super) fn slowdown_axis() -> Axis {
    Axis::slowdown("Slowdown")
}

/// Slowdown that the study allows, as a line across a picture.
pub(super) fn loss_mark() -> Mark {
    Mark { label: "5 % loss".to_owned(), value: LOSS_MAX }
}

/// A point of a line, and the interval of its y if that is known.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) x: f64,
    pub(super) y: f64,
    interval: Option<(f64, f64)>,
}

impl Place {
    /// A point whose y is exact.
    pub(super) fn exact(x: f64, y: f64) -> Place {
        Place { x, y, interval: None }
    }

    /// The slowdown of an emulation.
    pub(super) fn slowdown(x: f64, of: &Emulation) -> Place {
        Place { x, y: of.slowdown.mean, interval: ends(&of.slowdown) }
    }

    /// The slowdown of an emulation, by its swap bandwidth.
    pub(super) fn by_swap(of: &Emulation) -> Place {
        Place::slowdown(of.swap_gbps, of)
    }
}

/// Both ends of an interval.
pub(super) fn ends(of: &Estimate) -> Option<(f64, f64)> {
    of.low.zip(of.high)
}

/// A series of these points, in order of x.
pub(super) fn series(name: String, mut places: Vec<Place>) -> Series {
    places.sort_by(|one, other| one.x.total_cmp(&other.x));
    let interval = |place: &Place| place.interval.map(|(low, high)| (place.x, low, high));
    Series {
        name,
        role: Role::Measured,
        intervals: places.iter().filter_map(interval).collect(),
        points: places.iter().map(|place| (place.x, place.y)).collect(),
    }
}

/// A verdict for people.
pub(super) fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Within => "yes",
        Verdict::Above => "no",
        Verdict::Undecided => "undecided",
    }
}

/// The slowdown by counted waits, and whether it is within 5 %, for people.
pub(super) fn by_waits(counted: Option<&Counted>) -> [String; 2] {
    counted.map_or_else(
        || ["–", "–"].map(str::to_owned),
        |counted| [interval(&counted.slowdown), word(counted.within_5_percent).to_owned()],
    )
}

pub(super) fn percent(share: f64) -> String {
    format!("{} %", share_name(share))
}

/// Distinct values in order of appearance.
pub(super) fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    let mut found = Vec::new();
    for value in values {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    found
}

/// A fraction in percent, as short as it is exact.
pub(super) fn share_name(share: f64) -> String {
    // A hundredth of a percent is less than the granularity of any program's peak.
    format!("{}", (share * 10_000.0).round() / 100.0)
}

/// A line figure, without empty series and panels; `None` if nothing is left.
pub(super) fn lines(
    id: &str,
    (title, caption): (&str, &str),
    plot: LinePlot,
    command: &str,
) -> Option<Figure> {
    let mut plot = plot;
    for panel in &mut plot.panels {
        panel.items.retain(|series| !series.points.is_empty());
    }
    plot.panels.retain(|panel| !panel.items.is_empty());
    (!plot.panels.is_empty()).then(|| figure(id, (title, caption), Plot::Lines(plot), command))
}

pub(super) fn figure(
    id: &str,
    (title, caption): (&str, &str),
    plot: Plot,
    command: &str,
) -> Figure {
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        plot,
        table: None,
        command: command.to_owned(),
    }
}

pub(super) fn table(columns: &[&str], text: usize, rows: Vec<Vec<String>>) -> DataTable {
    DataTable {
        columns: columns.iter().map(|&column| column.to_owned()).collect(),
        rows,
        text_columns: (0..text).collect(),
    }
}

/// A figure of slowdowns by swap bandwidth.
pub(super) fn by_swap(panels: Vec<Panel<Series>>, caption: &str, command: &str) -> Option<Figure> {
    let x = Axis::of_data("To and from remote memory (Gb/s)", Scale::Linear, 3);
    let plot = LinePlot { x, y: slowdown_axis(), panels, marks: vec![loss_mark()] };
    lines("swap", ("Slowdown by swap bandwidth", caption), plot, command)
}

/// Position of an emulation in that figure, for a correlation.
pub(super) fn swap_place(emulation: &Emulation) -> (f64, f64) {
    (emulation.swap_gbps, emulation.slowdown.mean)
}

/// A correlation coefficient for people.
pub(super) fn coefficient(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"))
}

/// A mean with its interval, if there is one.
pub(super) fn interval(estimate: &Estimate) -> String {
    match (estimate.low, estimate.high) {
        (Some(low), Some(high)) => format!("{:.3} ({low:.3} to {high:.3})", estimate.mean),
        _ => format!("{:.3}", estimate.mean),
    }
}
