//! The pictures of a study.

use ethermem_sim::report::{Axis, Figure, LinePlot, Panel, Scale, Series};

use super::replays::ReadTimes;
use super::{Point, Study};
use crate::remote::pictures::{
    by_swap, distinct, lines, local_axis, loss_mark, percent, series, slowdown_axis, swap_place,
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
        Some((point.replayed.local_share * 100.0, emulation.slowdown.mean))
    });
    let end = study.all_local.as_ref().map(|emulation| (100.0, emulation.slowdown.mean));
    let panels = panels.into_iter().map(|mut panel| {
        for series in panel.items.iter_mut().filter(|series| !series.points.is_empty()) {
            series.points.extend(end);
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
                Some((point.replayed.link_gbps as f64, emulation.slowdown.mean))
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
        Some((point.replayed.local_share * 100.0, of(times) / 1e3))
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
            let mut points: Vec<(f64, f64)> = of_rate
                .filter_map(|point| {
                    let network = point.replayed.network.as_ref()?;
                    Some((point.replayed.local_share * 100.0, network.busiest_load))
                })
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            points.dedup();
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
    let panels = panels_of_rates(study, |point| Some(swap_place(point.emulation.as_ref()?)));
    let caption = "Each point is a share of local memory: what went to and from remote memory \
        without delays, and what the fabric then cost.";
    by_swap(panels, caption, command)
}

fn panels_of_rates(
    study: &Study,
    place: impl Fn(&Point) -> Option<(f64, f64)>,
) -> Vec<Panel<Series>> {
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

/// A series for each fabric, its points in order of x.
fn panel_of_fabrics(
    title: String,
    points: &[&Point],
    place: impl Fn(&Point) -> Option<(f64, f64)>,
) -> Panel<Series> {
    let mut items: Vec<Series> = Vec::new();
    for point in points {
        let fabric = &point.replayed.fabric;
        if !items.iter().any(|series| series.name == *fabric) {
            items.push(series(fabric.clone(), Vec::new()));
        }
        let of_fabric = items.iter_mut().find(|series| series.name == *fabric);
        of_fabric.expect("added above").points.extend(place(point));
    }
    for series in &mut items {
        series.points.sort_by(|one, other| one.0.total_cmp(&other.0));
    }
    Panel { title, items }
}
