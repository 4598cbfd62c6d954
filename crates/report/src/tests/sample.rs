//! A page of plausible data: every kind of figure, several panels, references and marks.

use std::sync::LazyLock;

use ethermem_engine::metrics::{FabricStats, Recorder, RunFacts, Window};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message};

use super::super::*;

const FABRICS: [&str; 4] = ["edm srpt", "edm srpt-published", "edm fcfs", "raw-ethernet"];
const APPLICATIONS: [&str; 5] = ["hadoop", "spark", "sparksql", "graphlab", "memcached"];

/// Approximate latencies of an M/D/1 queue on top of `alone`, which a page must be able to show.
fn run(label: &str, load: f64, alone_ns: f64, factor: f64) -> RunResult {
    let mut recorder = Recorder::new(Window::ALL);
    let mut state = 88_172_645_463_325_252_u64;
    for index in 0..4_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let draw = (state >> 11) as f64 / (1_u64 << 53) as f64;
        let wait = (-(1.0 - draw).ln() * factor * load / (1.0 - load) - 0.5).max(0.0);
        let kind = if state & 64 == 0 { Kind::Read } else { Kind::Write };
        let alone = alone_ns * if kind == Kind::Read { 1.0 } else { 0.98 };
        let message =
            Message { index, arrival: Ps(index), kind, compute: 0, memory: 1, bytes: Bytes(64) };
        let latency = Ps::from_ns_f64(alone * (1.0 + wait)).unwrap();
        recorder.record(&message, message.arrival + latency, Ps::from_ns_f64(alone).unwrap());
    }
    let facts = RunFacts {
        fabric: label.split(' ').next().unwrap().to_owned(),
        label: label.to_owned(),
        scenario: "scenarios/64b.toml".to_owned(),
        seed: 1,
        nodes: 144,
        load_requested: Some(load),
        messages_started: 4_000,
        simulated: Ps::from_ns(1_000),
        ..RunFacts::default()
    };
    let stats = FabricStats { load_measured: Some(load * 1.01), ..FabricStats::default() };
    recorder.finish(facts, stats)
}

fn factor(fabric: &str) -> f64 {
    match fabric {
        "edm srpt" => 0.03,
        "edm srpt-published" => 0.3,
        "edm fcfs" => 0.05,
        _ => 0.12,
    }
}

fn slowdown_by_load() -> Figure {
    let loads = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
    let panels = [("Reads", 1.0), ("Writes", 1.15), ("Mix", 1.07)].map(|(title, more)| {
        let mut items: Vec<Series> = FABRICS
            .iter()
            .map(|fabric| Series {
                intervals: Vec::new(),
                name: (*fabric).to_owned(),
                role: Role::Measured,
                points: loads
                    .map(|load| (load, 1.0 + factor(fabric) * more * load / (1.0 - load)))
                    .into(),
            })
            .collect();
        items.push(Series {
            intervals: Vec::new(),
            name: "ideal output-queued switch".to_owned(),
            role: Role::Reference,
            points: loads.map(|load| (load, 1.0 + 0.02 * load / (1.0 - load))).into(),
        });
        Panel { title: title.to_owned(), items }
    });
    Figure {
        id: "slowdown-by-load".to_owned(),
        title: "Mean slowdown by load".to_owned(),
        caption: "64 B messages, all to all, 144 nodes at 100 Gb/s.".to_owned(),
        plot: Plot::Lines(LinePlot {
            x: Axis::of_data("Load (share of block slots)", Scale::Linear, 2),
            y: Axis::slowdown("Mean slowdown"),
            panels: panels.into(),
            marks: vec![Mark { label: "paper, load 0.9".to_owned(), value: 1.31 }],
        }),
        table: None,
        command: "ethermem compare scenarios/64b.toml --fabrics edm,raw-ethernet".to_owned(),
    }
}

fn sweep() -> Figure {
    let series = |name: &str, role, scale: f64| Series {
        intervals: Vec::new(),
        name: name.to_owned(),
        role,
        points: (1..=8).map(|x| (f64::from(x), 1.1 + scale / f64::from(x))).collect(),
    };
    Figure {
        id: "sweep-notifications".to_owned(),
        title: "Mean slowdown by active notifications (X)".to_owned(),
        caption: "More notifications a pair help until the third.".to_owned(),
        plot: Plot::Lines(LinePlot {
            x: Axis::of_data("Active notifications for a destination", Scale::Linear, 0),
            y: Axis::slowdown("Mean slowdown"),
            panels: vec![Panel {
                title: String::new(),
                items: vec![
                    series("hadoop", Role::Measured, 0.6),
                    series("spark", Role::Measured, 0.45),
                    series("memcached", Role::Measured, 0.43),
                    series("64 B", Role::Measured, 0.08),
                    series("greedy matching", Role::Reference, 0.3),
                ],
            }],
            marks: Vec::new(),
        }),
        table: None,
        command: "ethermem sim scenarios/sweep-x.toml".to_owned(),
    }
}

fn slowdown_by_application() -> Figure {
    let panel = |title: &str, scale: f64, spread: f64| Panel {
        title: title.to_owned(),
        items: FABRICS
            .iter()
            .enumerate()
            .map(|(index, fabric)| BarSeries {
                intervals: Vec::new(),
                name: (*fabric).to_owned(),
                role: Role::Measured,
                values: (0..APPLICATIONS.len())
                    .map(|app| Some(1.0 + scale * (1.0 + spread * index as f64 + app as f64 / 7.0)))
                    .collect(),
            })
            .collect(),
    };
    Figure {
        id: "slowdown-by-application".to_owned(),
        title: "Slowdown by application".to_owned(),
        caption: "Load 0.4, every message run to its end.".to_owned(),
        plot: Plot::GroupedBars(BarPlot {
            category_label: "Application".to_owned(),
            categories: APPLICATIONS.map(str::to_owned).into(),
            y: Axis::slowdown("Slowdown"),
            panels: vec![panel("Mean", 0.2, 1.0), panel("99th percentile", 1.5, 8.0)],
            marks: Vec::new(),
        }),
        table: None,
        command: "ethermem compare scenarios/applications.toml --fabrics edm".to_owned(),
    }
}

fn latency_cdf(runs: &[RunResult]) -> Figure {
    let items = runs
        .iter()
        .map(|run| Series {
            intervals: Vec::new(),
            name: run.label.clone(),
            role: Role::Measured,
            points: run
                .kinds
                .all
                .latency_cdf
                .iter()
                .map(|point| (point.latency_ns, point.share))
                .collect(),
        })
        .collect();
    Figure {
        id: "latency-cdf".to_owned(),
        title: "Latency of 64 B messages".to_owned(),
        caption: "Markers at 50 % and 99 % of the messages.".to_owned(),
        plot: Plot::Cdf(LinePlot {
            x: Axis::of_data("Latency (ns)", Scale::Log, 1),
            y: Axis::from_zero("Share of messages that took at most this long", 4),
            panels: vec![Panel { title: String::new(), items }],
            marks: Vec::new(),
        }),
        table: None,
        command: "ethermem sim scenarios/64b.toml --format json".to_owned(),
    }
}

fn budget() -> Figure {
    let segments = [
        ("compute protocol stack", "protocol stack"),
        ("compute MAC", "MAC"),
        ("compute PCS", "PCS"),
        ("compute EDM logic", "EDM logic"),
        ("switch L2 forwarding", "L2 forwarding"),
        ("switch MAC", "MAC"),
        ("switch PCS", "PCS"),
        ("switch EDM logic", "EDM logic"),
        ("memory protocol stack", "protocol stack"),
        ("memory MAC", "MAC"),
        ("memory PCS", "PCS"),
        ("memory EDM logic", "EDM logic"),
        ("PMA, PMD, transceiver", "PMA, PMD, transceiver"),
        ("propagation", "propagation"),
    ];
    let bar =
        |name: &str, values: [f64; 14]| StackedBar { name: name.to_owned(), values: values.into() };
    let (mac, pcs) = (15.36, 15.36);
    let read = vec![
        bar(
            "edm",
            [0.0, 0.0, 10.24, 12.8, 0.0, 0.0, 20.48, 28.16, 0.0, 0.0, 10.24, 25.6, 152.0, 40.0],
        ),
        bar(
            "raw-ethernet",
            [0.0, mac, pcs, 0.0, 800.0, 30.72, 30.72, 0.0, 0.0, mac, pcs, 0.0, 152.0, 40.0],
        ),
        bar(
            "roce",
            [460.4, mac, pcs, 0.0, 800.0, 30.72, 30.72, 0.0, 460.4, mac, pcs, 0.0, 152.0, 40.0],
        ),
        bar(
            "tcp",
            [1332.4, mac, pcs, 0.0, 800.0, 30.72, 30.72, 0.0, 1332.4, mac, pcs, 0.0, 152.0, 40.0],
        ),
    ];
    let write = read
        .iter()
        .map(|bar| StackedBar {
            name: bar.name.clone(),
            values: bar.values.iter().map(|value| value / 2.0).collect(),
        })
        .collect();
    Figure {
        id: "budget".to_owned(),
        title: "Where the nanoseconds go".to_owned(),
        caption: "One message alone, without serialisation, at 25 Gb/s.".to_owned(),
        plot: Plot::StackedBars(StackedPlot {
            x_label: "Latency (ns)".to_owned(),
            decimals: 2,
            segments: segments
                .map(|(name, layer)| Segment { name: name.to_owned(), layer: layer.to_owned() })
                .into(),
            panels: vec![
                Panel { title: "Read".to_owned(), items: read },
                Panel { title: "Write".to_owned(), items: write },
            ],
            shared_axis: true,
        }),
        table: None,
        command: "ethermem latency --fabric edm --op read --link-gbps 25".to_owned(),
    }
}

/// The input is made once, because recorders are slow without optimization.
pub(super) fn input() -> ReportInput {
    static INPUT: LazyLock<ReportInput> = LazyLock::new(make_input);
    INPUT.clone()
}

fn reported(result: RunResult) -> ReportedRun {
    ReportedRun { workload: "64 B".to_owned(), fabric: result.label.clone(), result }
}

fn make_input() -> ReportInput {
    let runs: Vec<RunResult> =
        FABRICS.iter().map(|fabric| run(fabric, 0.8, 305.92, factor(fabric) * 3.0)).collect();
    let figures =
        vec![slowdown_by_load(), slowdown_by_application(), latency_cdf(&runs), budget(), sweep()];
    ReportInput {
        title: "EDM beside two references".to_owned(),
        lead: "Five application workloads and 64 B messages on 144 nodes.".to_owned(),
        origin: Origin {
            command: "make run".to_owned(),
            seed: 1,
            commit: Some("0123456789ab".to_owned()),
            machine: "x86_64, 2 cores".to_owned(),
            versions: vec![("ethermem".to_owned(), "0.1.0".to_owned())],
        },
        runs: runs.into_iter().map(reported).collect(),
        figures,
        ..ReportInput::default()
    }
}
