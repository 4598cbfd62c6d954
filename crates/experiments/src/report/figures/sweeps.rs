//! EDM's own parameters, one at a time.

use ethermem_sim::report::{Axis, Figure, LinePlot, Panel, Plot, Role, Scale, Series};

use super::{Draw, MEAN, P99, Statistic};
use crate::error::Error;
use crate::report::plan::{APPLICATIONS, EDM, MICROBENCHMARK, Plan, Published, RunId};

const MEMCACHED: Published = APPLICATIONS[4];

/// One line: a workload's runs by the value of the key.
struct Row {
    name: String,
    runs: Vec<(u64, RunId)>,
}

fn row(
    plan: &mut Plan,
    published: Published,
    load: f64,
    key: &str,
    values: &[u64],
) -> Result<Row, Error> {
    let run = |value: &u64| {
        let settings = [format!("workload.load={load}"), format!("{key}={value}")];
        Ok((*value, plan.add_form(published, EDM, &settings)?))
    };
    let runs = values.iter().map(run).collect::<Result<_, Error>>()?;
    Ok(Row { name: format!("{}, load {load}", published.name), runs })
}

fn lines(rows: Vec<Row>, x: Axis, title: &'static str, caption: &'static str) -> Draw {
    Box::new(move |results| {
        let panel = |shown: Statistic| Panel {
            title: shown.title.to_owned(),
            items: rows
                .iter()
                .map(|row| Series {
                    intervals: Vec::new(),
                    name: row.name.clone(),
                    role: Role::Measured,
                    points: row
                        .runs
                        .iter()
                        .filter_map(|(x, run)| Some((*x as f64, (shown.of)(results.of(*run))?)))
                        .collect(),
                })
                .collect(),
        };
        Figure {
            id: String::new(),
            title: title.to_owned(),
            caption: caption.to_owned(),
            plot: Plot::Lines(LinePlot {
                x: x.clone(),
                y: Axis::slowdown("Slowdown"),
                panels: [MEAN, P99].map(panel).into(),
                marks: Vec::new(),
            }),
            table: None,
            command: String::new(),
        }
    })
}

pub(super) fn notifications(plan: &mut Plan) -> Result<Draw, Error> {
    let values: Vec<u64> = (1..=8).collect();
    let key = "fabric.edm.notifications_max";
    let rows = vec![
        row(plan, MICROBENCHMARK, 0.9, key, &values)?,
        row(plan, MEMCACHED, 0.4, key, &[1, 2, 3, 4, 6, 8])?,
    ];
    let x = Axis::of_data("Active notifications of a pair (X)", Scale::Linear, 0);
    Ok(lines(
        rows,
        x,
        "Active notifications of a pair",
        "How many messages of a node for the same destination the switch knows of at once. One \
         makes each wait for the end of the one before; a few are enough.",
    ))
}

pub(super) fn chunk(plan: &mut Plan) -> Result<Draw, Error> {
    let values = [64, 128, 256, 512, 1024];
    let key = "fabric.edm.chunk_bytes";
    let rows = vec![
        row(plan, MICROBENCHMARK, 0.9, key, &values)?,
        row(plan, MEMCACHED, 0.4, key, &values)?,
    ];
    let x = Axis::of_data("Chunk (B)", Scale::Log, 0);
    Ok(lines(
        rows,
        x,
        "Chunk size",
        "Most data bytes of one grant. Small chunks let short messages in earlier and pay for it \
         in control blocks and matchings: load counts them, so that at the same load they carry \
         less data. A message of 64 B is one chunk whatever it is.",
    ))
}
