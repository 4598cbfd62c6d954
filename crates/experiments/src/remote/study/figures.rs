//! The pictures of a study.

use ethermem_sim::report::{Axis, Figure, LinePlot, Panel, Scale, Series};

use super::replays::ReadTimes;
use super::{Point, Study};
use crate::remote::pictures::{
    Place, by_swap, distinct, ends, lines, local_axis, loss_mark, percent, series, slowdown_axis,
};

/// All figures that have a point.
pub(super) fn of(study: &Study, command: &str) -> Vec<Figure> {
    let figures = [
        slowdown_by_share(study, command),
        slowdown_by_rate(study, command),
        read_times(study, ("read-p50", "Median read"), |times| times.p50, command),
        read_times(study, ("read-p99", "99th percentile of reads"), |times| times.p99, command),
        load(study, command),
        swap(study, command),
    ];
    figures.into_iter().flatten().collect()
}

fn slowdown_by_share(study: &Study, command: &str) -> Option<Figure> {
    let panels = panels_of_rates(study, |point| {
        let emulation = point.emulation.as_ref()?;
        Some(Place::slowdown(point.replayed.local_share * 100.0, emulation))
    });
    let end = study.all_local.as_ref().map(|emulation| &emulation.slowdown);
    let panels = panels.into_iter().map(|mut panel| {
        for series in panel.items.iter_mut().filter(|series| !series.points.is_empty()) {
            series.points.extend(end.map(|slowdown| (100.0, slowdown.mean)));
            let interval = end.and_then(ends);
            series.intervals.extend(interval.map(|(low, high)| (100.0, low, high)));
        }
        panel
    });
    let caption = "How much memory must stay local on each fabric. The line across is the loss \
        that the OSDI'16 study lets a network cost.";
    let plot = LinePlot {
        x: local_axis(),
        y: slowdown_axis(),
        panels: panels.collect(),
        marks: vec![loss_mark()],
    };
    lines("by-share", ("Slowdown by share of local memory", caption), plot, command)
}

fn slowdown_by_rate(study: &Study, command: &str) -> Option<Figure> {
    let rates = distinct(study.points.iter().map(|point| point.replayed.link_gbps));
    if rates.len() < 2 {
        return None;
    }
    let panels = distinct(study.points.iter().map(|point| point.replayed.local_share))
        .into_iter()
        .map(|share| {
            let of_share = |point: &&Point| point.replayed.local_share == share;
            let title = format!("{} local", percent(share));
            let points: Vec<&Point> = study.points.iter().filter(of_share).collect();
            panel_of_fabrics(title, &points, |point| {
                let emulation = point.emulation.as_ref()?;
                Some(Place::slowdown(point.replayed.link_gbps as f64, emulation))
            })
        });
    let plot = LinePlot {
        x: Axis::of_data("Rate of every link (Gb/s)", Scale::Log, 0),
        y: slowdown_axis(),
        panels: panels.collect(),
        marks: vec![loss_mark()],
    };
    let caption = "What faster links buy: with more bandwidth reads wait less behind each other.";
    lines("by-rate", ("Slowdown by rate", caption), plot, command)
}

fn read_times(
    study: &Study,
    (id, title): (&str, &str),
    of: impl Fn(&ReadTimes) -> f64,
    command: &str,
) -> Option<Figure> {
    let panels = panels_of_rates(study, |point| {
        let times = point.replayed.network.as_ref()?.read_ns.as_ref()?;
        Some(Place::exact(point.replayed.local_share * 100.0, of(times) / 1e3))
    });
    let y = Axis { start: None, ..Axis::of_data("Completion time (us)", Scale::Auto, 3) };
    let plot = LinePlot { x: local_axis(), y, panels, marks: Vec::new() };
    let caption = "What the simulated network took for the reads of the traces: the times that \
        the program was then given. Less local memory means more reads at once.";
    lines(id, (title, caption), plot, command)
}

fn load(study: &Study, command: &str) -> Option<Figure> {
    // All fabrics are replayed with equal requests.
    let rates = distinct(study.points.iter().map(|point| point.replayed.link_gbps))
        .into_iter()
        .map(|gbps| {
            let of_rate = study.points.iter().filter(|point| point.replayed.link_gbps == gbps);
            let mut points: Vec<Place> = of_rate
                .filter_map(|point| {
                    let network = point.replayed.network.as_ref()?;
                    Some(Place::exact(point.replayed.local_share * 100.0, network.busiest_load))
                })
                .collect();
            points.sort_by(|one, other| one.x.total_cmp(&other.x));
            points.dedup_by(|one, other| (one.x, one.y) == (other.x, other.y));
            series(format!("{gbps} Gb/s"), points)
        });
    let plot = LinePlot {
        x: local_axis(),
        y: Axis::from_zero("Load of the busiest link", 3),
        panels: vec![Panel { title: String::new(), items: rates.collect() }],
        marks: Vec::new(),
    };
    let caption = "Data over what the busiest direction of a link carries, headers not counted. \
        From 1 on queues grow without end, and no time means anything.";
    lines("load", ("What was asked of the network", caption), plot, command)
}

fn swap(study: &Study, command: &str) -> Option<Figure> {
    let panels = panels_of_rates(study, |point| Some(Place::by_swap(point.emulation.as_ref()?)));
    let caption = "Each point is a share of local memory: what went to and from remote memory \
        without delays, and what the fabric then cost.";
    by_swap(panels, caption, command)
}

fn panels_of_rates(study: &Study, place: impl Fn(&Point) -> Option<Place>) -> Vec<Panel<Series>> {
    let panel = |gbps: u64| {
        let of_rate = study.points.iter().filter(|point| point.replayed.link_gbps == gbps);
        let points: Vec<&Point> = of_rate.collect();
        panel_of_fabrics(format!("{gbps} Gb/s"), &points, &place)
    };
    distinct(study.points.iter().map(|point| point.replayed.link_gbps))
        .into_iter()
        .map(panel)
        .collect()
}

/// A series for each fabric.
fn panel_of_fabrics(
    title: String,
    points: &[&Point],
    place: impl Fn(&Point) -> Option<Place>,
) -> Panel<Series> {
    let of_fabric = |fabric: &String| {
        let points = points.iter().filter(|point| point.replayed.fabric == *fabric);
        series(fabric.clone(), points.filter_map(|point| place(point)).collect())
    };
    let fabrics = distinct(points.iter().map(|point| &point.replayed.fabric));
    Panel { title, items: fabrics.into_iter().map(of_fabric).collect() }
}
