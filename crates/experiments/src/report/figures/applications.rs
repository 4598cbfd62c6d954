//! The five application workloads.

use ethermem_sim::report::{Axis, BarPlot, BarSeries, Figure, Panel, Plot};

use super::{Draw, MEAN, P99, Statistic};
use crate::error::Error;
use crate::report::plan::{
    APPLICATIONS, Contender, EDM, EDM_AS_PUBLISHED, EDM_AUTO, EDM_FCFS, EDM_RELAXED,
    MICROBENCHMARK, Plan, Published, RunId, application_contenders,
};

/// How a run is requested: as long as a table's, or as a form of EDM.
type Add = fn(&mut Plan, Published, Contender, &[String]) -> Result<RunId, Error>;

/// Bars for each workload: the slowdowns of these contenders.
fn bars(
    plan: &mut Plan,
    add: Add,
    workloads: &'static [Published],
    contenders: Vec<Contender>,
    title: &'static str,
    caption: &'static str,
) -> Result<Draw, Error> {
    let mut rows: Vec<(Contender, Vec<RunId>)> = Vec::new();
    for contender in contenders {
        let run = |workload: &Published| add(plan, *workload, contender, &[]);
        let runs: Result<Vec<RunId>, Error> = workloads.iter().map(run).collect();
        rows.push((contender, runs?));
    }
    Ok(Box::new(move |results| {
        let panel = |shown: Statistic| Panel {
            title: shown.title.to_owned(),
            items: rows
                .iter()
                .map(|(contender, runs)| BarSeries {
                    intervals: Vec::new(),
                    name: contender.name.to_owned(),
                    role: contender.role,
                    values: runs.iter().map(|run| (shown.of)(results.of(*run))).collect(),
                })
                .collect(),
        };
        Figure {
            id: String::new(),
            title: title.to_owned(),
            caption: caption.to_owned(),
            plot: Plot::GroupedBars(BarPlot {
                category_label: "Workload".to_owned(),
                categories: workloads.iter().map(|workload| workload.name.to_owned()).collect(),
                y: Axis::slowdown("Slowdown"),
                panels: [MEAN, P99].map(panel).into(),
                marks: Vec::new(),
            }),
            table: None,
            command: String::new(),
        }
    }))
}

pub(super) fn contenders_compared(plan: &mut Plan) -> Result<Draw, Error> {
    bars(
        plan,
        Plan::add,
        &APPLICATIONS,
        application_contenders(),
        "Slowdown by application",
        "Message sizes of EDM's public traces at load 0.4, 144 nodes, 100 Gb/s, half reads and \
         half writes; every message runs to its end, in the order that EDM promises.",
    )
}

/// A size distribution without a tail, at load 0.9, and two with one, at load 0.4.
const LIGHT_AND_HEAVY: [Published; 3] = [MICROBENCHMARK, APPLICATIONS[0], APPLICATIONS[4]];

pub(super) fn policies(plan: &mut Plan) -> Result<Draw, Error> {
    bars(
        plan,
        Plan::add_form,
        &LIGHT_AND_HEAVY,
        vec![EDM, EDM_AS_PUBLISHED, EDM_FCFS, EDM_AUTO],
        "Who is granted first",
        "64 B messages at load 0.9, applications at 0.4. Fewest remaining bytes with a hold for \
         what is much shorter (edm), the same greedily and as published, first come \
         first served, and the choice by the tail of the sizes. The \
         published rule lets a short message wait while its two ends take turns in being free.",
    )
}

pub(super) fn orders(plan: &mut Plan) -> Result<Draw, Error> {
    bars(
        plan,
        Plan::add_form,
        &APPLICATIONS,
        vec![EDM, EDM_RELAXED],
        "What the order of a pair costs",
        "EDM promises that messages between two nodes arrive in the order of their requests. \
         Relaxed, independent messages may overtake each other, and only a fence orders them.",
    )
}
