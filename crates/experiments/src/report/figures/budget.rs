//! The latency budget of an unloaded message.

use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_sim::report::{Figure, Panel, Plot, Segment, StackedBar, StackedPlot};
use ethermem_sim::scenario::{Changes, Scenario};

use super::Draw;
use crate::error::Error;
use crate::latency::{Budget, Fabric, Op, link_setting};
use crate::report::plan::Plan;

/// Fabrics of the figure; EDM, which is shown in more detail, is the first.
const FABRICS: [Fabric; 4] = [Fabric::Edm, Fabric::RawEthernet, Fabric::Roce, Fabric::Tcp];
/// Link rate of the testbed in Gb/s.
const LINK_GBPS: u64 = 25;

pub(super) fn stages(_: &mut Plan) -> Result<Draw, Error> {
    let changes = Changes { settings: vec![link_setting(LINK_GBPS)], trace: None };
    let config = Scenario::default_with(&changes, FABRIC_NAMES)?.fabric;
    let budgets = |op| FABRICS.map(|fabric| Budget::of(fabric, op, &config));
    let (reads, writes) = (budgets(Op::Read), budgets(Op::Write));
    Ok(Box::new(move |_| {
        let mut segments: Vec<Segment> = Vec::new();
        for stage in reads.iter().chain(&writes).flat_map(|budget| &budget.stages) {
            let segment = segment(stage.place, stage.name);
            if !segments.contains(&segment) {
                segments.push(segment);
            }
        }
        segments.sort_by_key(|segment| LAYERS.iter().position(|layer| *layer == segment.layer));
        let bar = |name: &str, budget: &Budget| StackedBar {
            name: name.to_owned(),
            values: segments.iter().map(|segment| length(budget, segment)).collect(),
        };
        let panel = |title: &str, budgets: &[Budget]| Panel {
            title: title.to_owned(),
            items: budgets.iter().map(|budget| bar(budget.fabric, budget)).collect(),
        };
        let close = Panel {
            title: "EDM, closer".to_owned(),
            items: vec![bar("edm read", &reads[0]), bar("edm write", &writes[0])],
        };
        Figure {
            id: String::new(),
            title: "Where the nanoseconds go".to_owned(),
            caption: format!(
                "One message alone at {LINK_GBPS} Gb/s, to its first block, stage by stage: the \
                 simulator's own delays, and Table 1 of the EDM paper."
            ),
            plot: Plot::StackedBars(StackedPlot {
                x_label: "Latency (ns)".to_owned(),
                decimals: 2,
                segments: segments.clone(),
                panels: vec![panel("Read", &reads), panel("Write", &writes), close],
                shared_axis: false,
            }),
            table: None,
            command: String::new(),
        }
    }))
}

/// Groups of stages, from the application to the medium.
const LAYERS: [&str; 6] =
    ["protocol stack", "EDM logic", "layer 2 forwarding", "MAC", "PCS", "link"];

fn segment(place: &str, name: &str) -> Segment {
    let layer = match (place, name) {
        ("link", _) => "link",
        (_, "MAC" | "PCS" | "protocol stack" | "layer 2 forwarding") => name,
        _ => "EDM logic",
    };
    Segment { name: format!("{place}: {name}"), layer: layer.to_owned() }
}

fn length(budget: &Budget, wanted: &Segment) -> f64 {
    let here = budget.stages.iter().filter(|stage| segment(stage.place, stage.name) == *wanted);
    here.map(|stage| stage.ns).sum()
}
