//! The 64 B microbenchmark: load by load, and the distribution behind one load.

use ethermem_sim::metrics::RunResult;
use ethermem_sim::report::{Axis, Figure, LinePlot, Panel, Plot, Role, Scale, Series};

use super::{Draw, MEAN, P99, READS, Statistic, WRITES, statistic};
use crate::error::Error;
use crate::report::plan::{Contender, EDM, MICROBENCHMARK, Plan, Results, RunId, contenders};

const LOADS: [f64; 8] = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
/// A load at which queueing is visible, and which Ethernet still carries.
const LOAD_OF_DISTRIBUTION: f64 = 0.8;

/// A contender's runs by load.
struct Row {
    contender: Contender,
    runs: Vec<(f64, RunId)>,
}

impl Row {
    fn series(&self, results: &Results, of: fn(&RunResult) -> Option<f64>) -> Series {
        let point = |(load, run): &(f64, RunId)| Some((*load, of(results.of(*run))?));
        Series {
            intervals: Vec::new(),
            name: self.contender.name.to_owned(),
            role: self.contender.role,
            points: self.runs.iter().filter_map(point).collect(),
        }
    }
}

/// The run of a contender at a load; the summary of a report also shows some of them.
pub(crate) fn at_load(plan: &mut Plan, contender: Contender, load: f64) -> Result<RunId, Error> {
    plan.add(MICROBENCHMARK, contender, &[format!("workload.load={load}")])
}

fn rows(plan: &mut Plan) -> Result<Vec<Row>, Error> {
    let row = |contender: Contender| {
        let run = |load: f64| Ok((load, at_load(plan, contender, load)?));
        Ok(Row { contender, runs: LOADS.into_iter().map(run).collect::<Result<_, Error>>()? })
    };
    contenders().into_iter().map(row).collect()
}

fn panels(rows: &[Row], results: &Results, shown: &[Statistic]) -> Vec<Panel<Series>> {
    let panel = |shown: &Statistic| Panel {
        title: shown.title.to_owned(),
        items: rows.iter().map(|row| row.series(results, shown.of)).collect(),
    };
    shown.iter().map(panel).collect()
}

fn load_axis() -> Axis {
    Axis::of_data("Load (share of block slots on EDM)", Scale::Linear, 1)
}

/// True for contenders that carry every load: EDM, and its bounds.
fn carry_every_load(contender: &Contender) -> bool {
    contender.role == Role::Reference || contender.name.starts_with(EDM.name)
}

fn figure(title: &str, caption: &str, y: Axis, panels: Vec<Panel<Series>>) -> Figure {
    Figure {
        id: String::new(),
        title: title.to_owned(),
        caption: caption.to_owned(),
        plot: Plot::Lines(LinePlot { x: load_axis(), y, panels, marks: Vec::new() }),
        table: None,
        command: String::new(),
    }
}

pub(super) fn slowdown(plan: &mut Plan) -> Result<Draw, Error> {
    let mut rows = rows(plan)?;
    rows.retain(|row| carry_every_load(&row.contender));
    Ok(Box::new(move |results| {
        let shown = [
            statistic("Reads, mean", |run| run.shown(&run.kinds.read).slowdown_mean),
            statistic("Writes, mean", |run| run.shown(&run.kinds.write).slowdown_mean),
            Statistic { title: "All, mean", ..MEAN },
            Statistic { title: "All, 99th percentile", ..P99 },
        ];
        figure(
            "Slowdown by load, 64 B messages",
            "144 nodes, 100 Gb/s links, every node to every node, half reads and half writes. Load \
             is the share of block slots that the messages take on EDM with their control; every \
             fabric gets the same messages at the same times. Dashed: bounds, a switch that \
             sends at once whatever comes and messages that never meet. Each slowdown is over the \
             unloaded time of the same fabric, and that of a bound over EDM's.",
            Axis::slowdown("Slowdown"),
            panels(&rows, results, &shown),
        )
    }))
}

pub(super) fn beside_ethernet(plan: &mut Plan) -> Result<Draw, Error> {
    let rows = rows(plan)?;
    Ok(Box::new(move |results| {
        let shown = [
            statistic("Mean", |run| run.shown_all().latency_ns_mean),
            statistic("99th percentile", |run| run.shown_all().latency_ns_p99),
        ];
        figure(
            "Latency by load, 64 B messages, beside Ethernet",
            "The same runs in ns. Preamble, headers and gaps take so many slots that raw Ethernet \
             cannot carry the higher loads: its line ends at the last that it sustains.",
            Axis::of_data("Latency (ns)", Scale::Log, 1),
            panels(&rows, results, &shown),
        )
    }))
}

pub(super) fn goodput(plan: &mut Plan) -> Result<Draw, Error> {
    let rows = rows(plan)?;
    Ok(Box::new(move |results| {
        let shown = [statistic("", |run| Some(run.payload_goodput_gbps_per_node))];
        figure(
            "Data carried by load, 64 B messages",
            "Data bits of all messages over the time from the first arrival to the last end, per \
             node: framing and control are not counted, so that no fabric reaches the 100 Gb/s of \
             its links.",
            Axis::from_zero("Data per node (Gb/s)", 1),
            panels(&rows, results, &shown),
        )
    }))
}

pub(super) fn latency_distribution(plan: &mut Plan) -> Result<Draw, Error> {
    let row =
        |contender: Contender| Ok((contender, at_load(plan, contender, LOAD_OF_DISTRIBUTION)?));
    let rows: Vec<(Contender, RunId)> =
        contenders().into_iter().map(row).collect::<Result<_, Error>>()?;
    Ok(Box::new(move |results| {
        let panel = |(title, kind): super::OfKind| Panel {
            title: title.to_owned(),
            items: rows
                .iter()
                .map(|(contender, run)| Series {
                    intervals: Vec::new(),
                    name: contender.name.to_owned(),
                    role: contender.role,
                    points: results
                        .of(*run)
                        .shown(kind(results.of(*run)))
                        .latency_cdf
                        .iter()
                        .map(|point| (point.latency_ns, point.share))
                        .collect(),
                })
                .collect(),
        };
        Figure {
            id: String::new(),
            title: format!("Latency of 64 B messages at load {LOAD_OF_DISTRIBUTION}"),
            caption:
                "From the application's request to the last byte, in ns, of all messages that \
                      are measured. Above: the share that has finished. Below: the share that has \
                      not, which shows the tail."
                    .to_owned(),
            plot: Plot::Cdf(LinePlot {
                x: Axis::of_data("Latency (ns)", Scale::Log, 1),
                y: Axis::from_zero("Share of messages", 4),
                panels: [READS, WRITES].map(panel).into(),
                marks: Vec::new(),
            }),
            table: None,
            command: String::new(),
        }
    }))
}
