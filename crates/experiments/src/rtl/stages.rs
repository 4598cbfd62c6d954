//! Table 1 of the EDM paper from the running hardware, beside its budget.

use std::path::Path;

use ethermem_sim::budget::{Cost, Stage};
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_units::Ps;
use serde::Serialize;

use super::flow::{Flow, Measured, waves_file};
use crate::error::Error;

/// Clock period at 25 Gb/s.
const PERIOD: Ps = Ps(2560);

/// A part of the path: its name in the RTL's measurements, and the corresponding stages of the
/// budget.
struct Part {
    place: &'static str,
    name: &'static str,
    measured: &'static [&'static str],
    budget: &'static [(&'static str, &'static str)],
}

const PCS: &[(&str, &str)] = &[("compute", "PCS"), ("switch", "PCS"), ("memory", "PCS")];
const PCS_MEASURED: &[&str] = &["pcs_1", "pcs_2", "pcs_3", "pcs_4"];

const READ: &[Part] = &[
    Part {
        place: "compute",
        name: "generate RREQ",
        measured: &["generate_request"],
        budget: &[("compute", "generate RREQ")],
    },
    Part {
        place: "switch",
        name: "queue, match, release RREQ",
        measured: &["switch_release"],
        budget: &[
            ("switch", "identify"),
            ("switch", "notification queue"),
            ("switch", "matching"),
            ("switch", "release RREQ"),
        ],
    },
    Part {
        place: "memory",
        name: "receive RREQ",
        measured: &["receive_request"],
        budget: &[("memory", "receive RREQ")],
    },
    Part {
        place: "memory",
        name: "to transmit clock, generate RRES",
        measured: &["generate_response"],
        budget: &[("memory", "grant queue"), ("memory", "generate RRES")],
    },
    Part {
        place: "switch",
        name: "forward RRES",
        measured: &["switch_forward"],
        budget: &[("switch", "forward RRES")],
    },
    Part {
        place: "compute",
        name: "receive RRES",
        measured: &["receive_response"],
        budget: &[("compute", "receive RRES")],
    },
    Part { place: "all", name: "PCS", measured: PCS_MEASURED, budget: PCS },
];

const WRITE: &[Part] = &[
    Part {
        place: "compute",
        name: "generate /N/",
        measured: &["generate_notification"],
        budget: &[("compute", "generate /N/")],
    },
    Part {
        place: "switch",
        name: "queue, match, generate /G/",
        measured: &["switch_grant"],
        budget: &[
            ("switch", "identify"),
            ("switch", "notification queue"),
            ("switch", "matching"),
            ("switch", "generate /G/"),
        ],
    },
    Part {
        place: "compute",
        name: "receive /G/",
        measured: &["receive_grant"],
        budget: &[("compute", "receive /G/")],
    },
    Part {
        place: "compute",
        name: "grant queue",
        measured: &["grant_queue"],
        budget: &[("compute", "grant queue")],
    },
    Part {
        place: "compute",
        name: "generate WREQ",
        measured: &["generate_write"],
        budget: &[("compute", "generate WREQ")],
    },
    Part {
        place: "switch",
        name: "forward WREQ",
        measured: &["switch_forward"],
        budget: &[("switch", "forward WREQ")],
    },
    Part {
        place: "memory",
        name: "receive WREQ",
        measured: &["receive_write"],
        budget: &[("memory", "receive WREQ")],
    },
    Part { place: "all", name: "PCS", measured: PCS_MEASURED, budget: PCS },
];

/// A message on the hardware, beside its budget.
#[derive(Debug, Serialize)]
pub struct Measurement {
    op: &'static str,
    bytes: u64,
    stages: Vec<Line>,
    budget_cycles: u64,
    rtl_cycles: u64,
    budget_ns: f64,
    rtl_ns: f64,
    /// Number of blocks of the message that carries the data.
    blocks: u64,
}

#[derive(Debug, Serialize)]
struct Line {
    place: &'static str,
    name: &'static str,
    budget_cycles: u64,
    rtl_cycles: u64,
}

/// Measures one message of `bytes`; `stages` is its budget, `fst` a file for the waves.
pub(crate) fn run(
    op: &'static str,
    bytes: u64,
    stages: &[Stage],
    fst: Option<&Path>,
) -> Result<Measurement, Error> {
    let flow = Flow::find(None)?;
    let waves = waves_file(fst)?;
    let measured = flow.run(&["stages", op, &bytes.to_string()], "", waves.as_deref())?;
    let parts = if op == "write" { WRITE } else { READ };
    let lines: Result<Vec<Line>, Error> =
        parts.iter().map(|part| part.line(&measured, stages)).collect();
    let lines = lines?;
    let budget_cycles = lines.iter().map(|line| line.budget_cycles).sum();
    let rtl_cycles = lines.iter().map(|line| line.rtl_cycles).sum();
    Ok(Measurement {
        op,
        bytes,
        stages: lines,
        budget_cycles,
        rtl_cycles,
        budget_ns: ns(budget_cycles),
        rtl_ns: ns(rtl_cycles),
        blocks: measured.get("blocks")?,
    })
}

/// Converts cycles to ns.
pub(crate) fn ns(cycles: u64) -> f64 {
    (PERIOD * cycles).as_ns_f64()
}

impl Part {
    fn line(&self, measured: &Measured, stages: &[Stage]) -> Result<Line, Error> {
        let cycles: Result<Vec<u64>, Error> =
            self.measured.iter().map(|name| measured.get(name)).collect();
        Ok(Line {
            place: self.place,
            name: self.name,
            budget_cycles: stages.iter().filter(|stage| self.has(stage)).map(cycles_of).sum(),
            rtl_cycles: cycles?.iter().sum(),
        })
    }

    fn has(&self, stage: &Stage) -> bool {
        self.budget.contains(&(stage.place.name(), stage.name))
    }
}

fn cycles_of(stage: &Stage) -> u64 {
    match stage.cost {
        Cost::Cycles(cycles) | Cost::SchedulerCycles(cycles) => cycles.0 * stage.passes,
        Cost::Fixed(_) => 0,
    }
}

impl Measurement {
    /// The stages for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        let row = |place: &str, name: &str, budget: u64, rtl: u64| {
            let off = i128::from(rtl) - i128::from(budget);
            let off = if off == 0 { "0".to_owned() } else { format!("{off:+}") };
            vec![place.to_owned(), name.to_owned(), budget.to_string(), rtl.to_string(), off]
        };
        let mut rows: Vec<Vec<String>> = self
            .stages
            .iter()
            .map(|line| row(line.place, line.name, line.budget_cycles, line.rtl_cycles))
            .collect();
        rows.push(row("", "total", self.budget_cycles, self.rtl_cycles));
        let header = ["place", "stage", "budget", "RTL", "difference"];
        let table =
            TextTable { header: &header, text_columns: &[0, 1], optional_columns: &[], rows };
        let Measurement { op, bytes, blocks, budget_ns, rtl_ns, .. } = self;
        format!(
            "edm {op} of {bytes} B in {blocks} blocks, cycles of 2.56 ns: budget {budget_ns:.2} \
             ns, RTL {rtl_ns:.2} ns\n{}",
            table.render(style)
        )
    }
}

#[cfg(test)]
mod tests {
    use ethermem_sim::budget::{Operation, Timing, edm_stages};
    use ethermem_sim::registry::FABRIC_NAMES;
    use ethermem_sim::scenario::{Changes, Scenario};

    use super::*;
    use crate::latency::link_setting;

    #[test]
    fn the_parts_are_the_whole_budget_and_no_stage_is_in_two() {
        let changes = Changes { settings: vec![link_setting(25)], trace: None };
        let config = Scenario::default_with(&changes, FABRIC_NAMES).unwrap().fabric;
        let timing = Timing::of(&config);
        for (parts, operation, cycles) in
            [(READ, Operation::Read, 42), (WRITE, Operation::Write, 41)]
        {
            let stages = edm_stages(operation, &timing);
            let of = |part: &Part| -> u64 {
                stages.iter().filter(|stage| part.has(stage)).map(cycles_of).sum()
            };
            assert_eq!(parts.iter().map(of).sum::<u64>(), cycles);
        }
    }
}
