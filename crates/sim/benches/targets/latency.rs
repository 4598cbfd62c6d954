//! Unloaded latency: the budget against Table 1, and the simulated message against the budget.

use std::path::Path;

use ethermem_sim::budget::{Operation, Stack, Timing, edm_stages, mac_stages};
use ethermem_sim::engine::Alone;
use ethermem_sim::fabrics::edm::Edm;
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_sim::scenario::Scenario;
use ethermem_sim::{FabricConfig, Kind};
use ethermem_units::{Blocks, Bytes, Ps};
use ethermem_wire::{AddressWidth, ChunkKind};

use crate::report::{Check, Section, Target};

/// Nanoseconds of Table 1, read and write: the sums of the columns in
/// `workloads/edm-table1-published.csv`.
const PUBLISHED: [(&str, Option<Stack>, [f64; 2]); 4] = [
    ("EDM", None, [299.52, 296.96]),
    ("raw Ethernet", Some(Stack::RawEthernet), [1_114.88, 557.44]),
    ("RoCE", Some(Stack::Roce), [2_035.68, 1_017.84]),
    ("TCP", Some(Stack::Tcp), [3_779.68, 1_889.84]),
];

pub(crate) fn measure() -> Section {
    let mut section = Section::default();
    let testbed = Timing::of(&config(25));
    for (name, stack, published) in PUBLISHED {
        for (operation, ns) in [Operation::Read, Operation::Write].into_iter().zip(published) {
            let stages = match stack {
                None => edm_stages(operation, &testbed),
                Some(stack) => mac_stages(operation, stack, &testbed),
            };
            let total = testbed.total(&stages).as_ns_f64();
            let what = format!("budget, {name} {}, 25 GbE", word(operation));
            section.check(Check::exact(what, "ns", Target::Exactly(ns), total));
        }
    }
    for link_gbps in [25, 100] {
        let config = config(link_gbps);
        let timing = Timing::of(&config);
        let mut alone = Alone::<Edm>::new(&config);
        for (operation, kind) in [(Operation::Read, Kind::Read), (Operation::Write, Kind::Write)] {
            let budget = timing.total(&edm_stages(operation, &timing));
            let expected = budget + config.link.blocks_time(blocks_behind(operation));
            let simulated: Ps = alone.time(kind, Bytes(64));
            let what = format!(
                "simulated 64 B {}, {link_gbps} GbE: budget + serialisation",
                word(operation)
            );
            let target = Target::Exactly(expected.as_ns_f64());
            section.check(Check::exact(what, "ns", target, simulated.as_ns_f64()));
        }
    }
    section
}

fn config(link_gbps: u32) -> FabricConfig {
    let text = format!("[fabric]\nlink_gbps = {link_gbps}\n");
    let scenario = Scenario::parse(&text, Path::new("latency"), FABRIC_NAMES);
    scenario.expect("25 and 100 are rates of a link").fabric
}

fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Read => "read",
        Operation::Write => "write",
    }
}

/// Number of blocks behind the first one on the critical path of a 64 B message. A request is whole
/// before the switch queues it, and again before the memory node reads; data is cut through.
fn blocks_behind(operation: Operation) -> Blocks {
    let chunk = |kind| ethermem_wire::chunk_blocks(kind, Bytes(64)) - Blocks(1);
    match operation {
        Operation::Read => {
            let request = ethermem_wire::read_request_blocks(AddressWidth::Bits40) - Blocks(1);
            request + request + chunk(ChunkKind::ReadResponse)
        }
        Operation::Write => chunk(ChunkKind::PostedWrite),
    }
}
