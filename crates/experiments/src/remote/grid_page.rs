//! The page of `ethermem emulate --out`: Figures 2 to 6 and Table 3 of the OSDI'16 study for one
//! program.

use ethermem_pager::{Emulation, correlation};
use ethermem_sim::report::{
    Axis, BarPlot, BarSeries, Figure, LinePlot, Panel, Plot, ReportInput, Role, Scale, Series,
    TableSection,
};

use super::emulate::{Cheapest, Report};
use super::network::Tried;
use super::pictures::{
    Place, SLOWDOWN, by_swap, by_waits, coefficient, distinct, ends, figure, interval, lines,
    local_axis, loss_mark, percent, series, slowdown_axis, swap_place, table, word,
};
use crate::folder::origin;
use crate::runner::Runner;

/// One network at one fraction of local memory.
type Point<'r> = (&'r Tried, &'r Emulation);

pub(super) fn page(
    report: &Report,
    tried: &[Tried],
    seed: u64,
    runner: &Runner<'_>,
) -> ReportInput {
    let command = runner.command();
    let shares: Vec<Vec<Point<'_>>> = report
        .emulations
        .chunks(tried.len())
        .map(|chunk| tried.iter().zip(chunk).collect())
        .collect();
    let points: Vec<Point<'_>> = shares.iter().flatten().copied().collect();
    let figures = [
        Some(networks(&shares, &command)),
        by_rate(&shares, &command),
        by_latency(&shares, &command),
        by_share(&points, &command),
        swap(&points, &command),
    ];
    ReportInput {
        title: format!("What a network costs {}", report.program),
        lead: format!(
            "The program holds {} at most and takes {:.3} s with all its memory local. Here a part \
             of it is remote, behind networks of several latencies and rates.",
            super::size(report.peak_bytes),
            report.local_seconds
        ),
        origin: origin(runner, command, seed),
        first: vec![cheapest(&report.cheapest)],
        figures: figures.into_iter().flatten().collect(),
        last: vec![correlations(&points), all(&points)],
        definitions: Some(format!(
            "{SLOWDOWN} Latency is from a fault to the first byte; bytes \
            queue behind each other at the rate, in both directions together."
        )),
        ..ReportInput::default()
    }
}

/// The study's Table 3.
fn cheapest(found: &[Cheapest]) -> TableSection {
    let row = |cheapest: &Cheapest| {
        let none = || "none of those tried".to_owned();
        let undecided = match &cheapest.undecided[..] {
            [] => "–".to_owned(),
            names => names.join("; "),
        };
        vec![
            percent(cheapest.local_share),
            cheapest.network.clone().unwrap_or_else(none),
            cheapest.slowdown.as_ref().map_or_else(|| "–".to_owned(), interval),
            undecided,
        ]
    };
    TableSection {
        id: "cheapest".to_owned(),
        title: "The cheapest network within 5 %".to_owned(),
        caption: "For each share, the lowest rate, and at it the longest latency, for which the \
            slowdown by waits is at most 1.05 with its interval. Where 1.05 is in that, the \
            clock's interval decides if it has a part of it. Else a cheaper network is undecided: \
            more repeats, or a quieter machine, may make it the answer. The study's Table 3, of \
            this program."
            .to_owned(),
        table: table(
            &["Local", "Network", "Slowdown (95 %)", "Undecided, and cheaper"],
            4,
            found.iter().map(row).collect(),
        ),
        notes: Vec::new(),
    }
}

/// Figure 2: every network.
fn networks(shares: &[Vec<Point<'_>>], command: &str) -> Figure {
    let points = shares.first().map_or(&[][..], Vec::as_slice);
    let categories = distinct(points.iter().map(|(tried, _)| latency(tried)));
    let rates = distinct(points.iter().map(|(tried, _)| rate(tried)));
    // For each latency, at one rate.
    fn of_each<T>(
        points: &[Point<'_>],
        wanted: &str,
        of: impl Fn(&Emulation) -> Option<T>,
    ) -> Vec<Option<T>> {
        let categories = distinct(points.iter().map(|(tried, _)| latency(tried)));
        let found = |category: &String| {
            let is_it =
                |(tried, _): &&Point<'_>| rate(tried) == wanted && latency(tried) == *category;
            points.iter().find(is_it).and_then(|(_, emulation)| of(emulation))
        };
        categories.iter().map(found).collect()
    }
    let panel = |points: &Vec<Point<'_>>| Panel {
        title: format!("{} local", percent(points[0].1.local_share)),
        items: rates
            .iter()
            .map(|name| BarSeries {
                name: name.clone(),
                role: Role::Measured,
                values: of_each(points, name, |emulation| Some(emulation.slowdown.mean)),
                intervals: of_each(points, name, |emulation| ends(&emulation.slowdown)),
            })
            .collect(),
    };
    let plot = BarPlot {
        category_label: "Latency".to_owned(),
        categories,
        y: slowdown_axis(),
        panels: shares.iter().map(panel).collect(),
        marks: vec![loss_mark()],
    };
    let caption = "Slowdown on each network, at each share. Shares have scales of their own. The \
        study's Figure 2 shows 25 %.";
    figure("networks", ("Slowdown by network", caption), Plot::GroupedBars(plot), command)
}

/// Figure 3: rates at given latencies.
fn by_rate(shares: &[Vec<Point<'_>>], command: &str) -> Option<Figure> {
    let x = Axis::of_data("Rate (Gb/s)", Scale::Log, 0);
    let panels = panels_of_shares(shares, latency, |tried| tried.gbps);
    let caption = "Where a line is flat, more bandwidth buys nothing. The study's Figure 3 shows \
        5 us at 25 %.";
    let plot = LinePlot { x, y: slowdown_axis(), panels, marks: vec![loss_mark()] };
    lines("by-rate", ("Slowdown by rate, at given latencies", caption), plot, command)
}

/// Figure 4: latencies at given rates.
fn by_latency(shares: &[Vec<Point<'_>>], command: &str) -> Option<Figure> {
    let x = Axis::of_data("Latency (us)", Scale::Linear, 1);
    let panels = panels_of_shares(shares, rate, |tried| tried.latency_us);
    let caption = "How steep a line is says how much the program waits for single pages. The \
        study's Figure 4 shows 40 Gb/s at 25 %.";
    let plot = LinePlot { x, y: slowdown_axis(), panels, marks: vec![loss_mark()] };
    lines("by-latency", ("Slowdown by latency, at given rates", caption), plot, command)
}

fn panels_of_shares(
    shares: &[Vec<Point<'_>>],
    name: impl Fn(&Tried) -> String,
    x: impl Fn(&Tried) -> Option<f64>,
) -> Vec<Panel<Series>> {
    let panel = |points: &Vec<Point<'_>>| Panel {
        title: format!("{} local", percent(points[0].1.local_share)),
        items: named(points, &name, |(tried, emulation)| {
            Some(Place::slowdown(x(tried)?, emulation))
        }),
    };
    shares.iter().map(panel).collect()
}

/// Figure 5: shares.
fn by_share(points: &[Point<'_>], command: &str) -> Option<Figure> {
    let panels = panels_of_rates(points, |emulation| {
        Place::slowdown(emulation.local_share * 100.0, emulation)
    });
    let caption = "How much memory must stay local. The study's Figure 5 shows 5 us and 40 Gb/s.";
    let plot = LinePlot { x: local_axis(), y: slowdown_axis(), panels, marks: vec![loss_mark()] };
    lines("by-share", ("Slowdown by share of local memory", caption), plot, command)
}

/// Figure 6: swap bandwidth.
fn swap(points: &[Point<'_>], command: &str) -> Option<Figure> {
    let panels = panels_of_rates(points, Place::by_swap);
    let caption = "Each point is a share of local memory: what went to and from remote memory \
        without delays, and what delays then cost. The study's Figure 6 (a) has a point for each \
        of its programs; here they are one program's. Its Figure 6 (b), by memory bandwidth, needs \
        counters of the whole machine.";
    by_swap(panels, caption, command)
}

/// A panel for each rate, with a series for each latency.
fn panels_of_rates(
    points: &[Point<'_>],
    place: impl Fn(&Emulation) -> Place,
) -> Vec<Panel<Series>> {
    let rates = distinct(points.iter().map(|(tried, _)| rate(tried)));
    let panel = |title: String| {
        let of_rate: Vec<Point<'_>> =
            points.iter().copied().filter(|(tried, _)| rate(tried) == title).collect();
        Panel { items: named(&of_rate, &latency, |(_, emulation)| Some(place(emulation))), title }
    };
    rates.into_iter().map(panel).collect()
}

/// A series for each name.
fn named<'r>(
    points: &[Point<'r>],
    name: &impl Fn(&Tried) -> String,
    place: impl Fn(&Point<'r>) -> Option<Place>,
) -> Vec<Series> {
    let of_name = |wanted: String| {
        let of_it = points.iter().filter(|(tried, _)| name(tried) == wanted);
        let places = of_it.filter_map(&place).collect();
        series(wanted, places)
    };
    distinct(points.iter().map(|(tried, _)| name(tried))).into_iter().map(of_name).collect()
}

fn correlations(points: &[Point<'_>]) -> TableSection {
    let of = |points: &mut dyn Iterator<Item = &Point<'_>>| {
        let places: Vec<(f64, f64)> = points.map(|(_, emulation)| swap_place(emulation)).collect();
        vec![places.len().to_string(), coefficient(correlation(&places))]
    };
    let networks = distinct(points.iter().map(|(_, emulation)| emulation.network.clone()));
    let mut rows: Vec<Vec<String>> = networks
        .into_iter()
        .map(|name| {
            let found = of(&mut points.iter().filter(|(_, emulation)| emulation.network == name));
            [vec![name], found].concat()
        })
        .collect();
    rows.push([vec!["all".to_owned()], of(&mut points.iter())].concat());
    TableSection {
        id: "correlation".to_owned(),
        title: "Correlation of slowdown with swap bandwidth".to_owned(),
        caption: "Pearson's coefficient over the shares of each network; from three points on."
            .to_owned(),
        table: table(&["Network", "Points", "Coefficient"], 1, rows),
        notes: Vec::new(),
    }
}

fn all(points: &[Point<'_>]) -> TableSection {
    let row = |(_, emulation): &Point<'_>| {
        let [by_waits, by_waits_within] = by_waits(emulation.counted.as_ref());
        vec![
            percent(emulation.local_share),
            emulation.network.clone(),
            interval(&emulation.slowdown),
            word(emulation.within_5_percent).to_owned(),
            by_waits,
            by_waits_within,
            emulation.repeats.to_string(),
            format!("{:.3}", emulation.undelayed_seconds.mean),
            format!("{:.3}", emulation.delayed_seconds.mean),
            format!("{:.3}", emulation.swap_gbps),
            emulation.accuracy.accesses.to_string(),
            format!("{:.2}", emulation.accuracy.error_mean_percent),
        ]
    };
    let columns = [
        "Local",
        "Network",
        "Slowdown (95 %)",
        "Within 5 %",
        "By waits (95 %)",
        "By waits within 5 %",
        "Repeats",
        "Without delays (s)",
        "With (s)",
        "Swap (Gb/s)",
        "Delayed accesses",
        "Off what was asked (%)",
    ];
    TableSection {
        id: "all-points".to_owned(),
        title: "All points".to_owned(),
        caption: "Means of all repeats. Delays were off what was asked for by so much on average."
            .to_owned(),
        table: table(&columns, 6, points.iter().map(row).collect()),
        notes: Vec::new(),
    }
}

fn latency(tried: &Tried) -> String {
    match tried.latency_us {
        Some(latency) => format!("{latency} us"),
        None => tried.network.name.clone(),
    }
}

fn rate(tried: &Tried) -> String {
    match (tried.gbps, tried.latency_us) {
        (Some(gbps), _) => format!("{gbps} Gb/s"),
        (None, Some(_)) => "any rate".to_owned(),
        (None, None) => "as simulated".to_owned(),
    }
}

#[cfg(test)]
pub(super) mod samples {
    use ethermem_pager::{Accuracy, Counted, Counts, Emulation, Estimate, LOSS_MAX};

    use super::Tried;
    use crate::remote::network::fixed;

    pub(in crate::remote) fn tried(latency_us: f64, gbps: f64) -> Tried {
        fixed(latency_us, Some(gbps))
    }

    /// The cost by waits, known exactly.
    pub(in crate::remote) fn counted(slowdown: f64) -> Option<Counted> {
        let slowdown = Estimate { mean: slowdown, low: Some(slowdown), high: Some(slowdown) };
        Some(Counted {
            stopped_seconds: slowdown,
            waited_seconds: slowdown,
            quiet_seconds: slowdown,
            slowdown,
            within_5_percent: slowdown.verdict(LOSS_MAX),
        })
    }

    pub(in crate::remote) fn emulation(
        network: &str,
        local_share: f64,
        mean: f64,
        half: Option<f64>,
        swap_gbps: f64,
    ) -> Emulation {
        let of = |mean: f64, half: Option<f64>| Estimate {
            mean,
            low: half.map(|half| mean - half),
            high: half.map(|half| mean + half),
        };
        Emulation {
            local_share,
            local_bytes: (local_share * 1e8) as u64,
            network: network.to_owned(),
            local_seconds: 1.0,
            undelayed_seconds: of(2.0, half),
            delayed_seconds: of(2.0 * mean, half),
            slowdown: of(mean, half),
            within_5_percent: of(mean, half).verdict(LOSS_MAX),
            repeats: 3,
            swap_gbps,
            counts: Counts::default(),
            accuracy: Accuracy::default(),
            counted: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use ethermem_sim::report::Plot;

    use super::super::emulate::Report;
    use super::samples::{emulation, tried};
    use super::{Tried, page};

    fn report(tried: &[Tried]) -> Report {
        let mut emulations = Vec::new();
        for (share, factor) in [(0.1, 3.0), (0.25, 2.0), (1.0, 0.0)] {
            for network in tried {
                let latency = network.latency_us.expect("a latency");
                let slow = 1.0 + factor * latency / 100.0;
                let name = &network.network.name;
                emulations.push(emulation(name, share, slow, None, factor));
            }
        }
        let program = "./query".to_owned();
        let (peak_bytes, local_seconds) = (100_000_000, 1.0);
        Report { program, peak_bytes, local_seconds, emulations, cheapest: Vec::new() }
    }

    #[test]
    fn figures_have_the_points_of_the_grid() {
        let tried = [tried(1.0, 10.0), tried(1.0, 40.0), tried(5.0, 10.0), tried(5.0, 40.0)];
        let page = page(&report(&tried), &tried, 1, &crate::runner::samples::runner());
        let ids: Vec<&str> = page.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["networks", "by-rate", "by-latency", "by-share", "swap"]);
        let Plot::GroupedBars(bars) = &page.figures[0].plot else { panic!("bars") };
        assert_eq!(bars.categories, ["1 us", "5 us"]);
        assert_eq!(bars.panels.len(), 3);
        assert_eq!(bars.panels[1].items[1].name, "40 Gb/s");
        assert_eq!(bars.panels[1].items[1].values, [Some(1.02), Some(1.1)]);
        let Plot::Lines(rates) = &page.figures[1].plot else { panic!("lines") };
        assert_eq!(rates.panels[0].items[1].points, [(10.0, 1.15), (40.0, 1.15)]);
        let Plot::Lines(shares) = &page.figures[3].plot else { panic!("lines") };
        assert_eq!(shares.panels[0].title, "10 Gb/s");
        assert_eq!(shares.panels[0].items[1].points, [(10.0, 1.15), (25.0, 1.1), (100.0, 1.0)]);
        let Plot::Lines(swap) = &page.figures[4].plot else { panic!("lines") };
        let places: Vec<f64> = swap.panels[0].items[0].points.iter().map(|p| p.0).collect();
        assert_eq!(places, [0.0, 2.0, 3.0], "in order of the swap bandwidth");
        let rows = &page.last[0].table.rows;
        assert_eq!(rows[0], ["1 us, 10 Gb/s", "3", "1.000"], "slowdowns are in proportion");
        assert_eq!(rows.last().expect("all")[1], "12");
    }
}
