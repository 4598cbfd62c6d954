//! Unloaded latency, stage by stage: Table 1 of the EDM paper.
//!
//! The simulator's own delays are taken from this component model. A stage is counted in cycles of
//! the PCS clock, which scales with the link rate, or in fixed nanoseconds. The budget is for one
//! block; serialisation of the blocks behind it is added and reported separately.

use ethermem_edm::budget as edm;
use ethermem_engine::config::FabricConfig;
use ethermem_units::{Clock, Cycles, Ps};

use crate::edm::EdmParameters;

pub use ethermem_engine::config::L2_FORWARDING;
pub use ethermem_engine::topology::{MAC, STANDARD_PCS};

/// Time of RoCEv2 in hardware: one pass through one host's stack.
pub const ROCE_STACK: Ps = Ps(230_200);
/// Time of TCP/IP in hardware: one pass through one host's stack.
pub const TCP_STACK: Ps = Ps(666_200);

/// The place of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The compute node.
    Compute,
    /// The switch.
    Switch,
    /// The memory node.
    Memory,
    /// Between the nodes and the switch: PMA, PMD, transceivers, the medium.
    Link,
}

impl Place {
    /// The name in tables and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Place::Compute => "compute",
            Place::Switch => "switch",
            Place::Memory => "memory",
            Place::Link => "link",
        }
    }
}

/// The cost of one pass of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Cycles of the PCS clock.
    Cycles(Cycles),
    /// Cycles of the scheduler's clock.
    SchedulerCycles(Cycles),
    /// A time that is equal at every link rate.
    Fixed(Ps),
}

/// A stage that a message passes `passes` times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stage {
    /// The place of the stage.
    pub place: Place,
    /// The name of the stage.
    pub name: &'static str,
    /// Number of passes.
    pub passes: u64,
    /// The cost of one pass.
    pub cost: Cost,
}

/// The operations of Table 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A read: RREQ to the memory node, RRES back.
    Read,
    /// A write: the data to the memory node.
    Write,
}

/// A protocol stack on standard Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stack {
    /// MAC and PHY only.
    RawEthernet,
    /// RoCEv2.
    Roce,
    /// TCP/IP.
    Tcp,
}

/// The clocks and fixed delays that turn stages into time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The PCS clock.
    pub pcs: Clock,
    /// The scheduler's clock.
    pub scheduler: Clock,
    /// PMA, PMD and transceiver at one end of a link.
    pub transceiver: Ps,
    /// One-way propagation of one link.
    pub propagation: Ps,
}

impl Timing {
    /// The timing of a fabric.
    #[must_use]
    pub fn of(config: &FabricConfig) -> Timing {
        Timing {
            pcs: Clock { period: config.pcs_clock },
            scheduler: Clock {
                period: config.of::<EdmParameters>().scheduler_clock.unwrap_or(config.pcs_clock),
            },
            transceiver: config.transceiver,
            propagation: config.propagation,
        }
    }

    /// Time of all passes of a stage.
    #[must_use]
    pub fn stage(&self, stage: &Stage) -> Ps {
        let once = match stage.cost {
            Cost::Cycles(cycles) => self.pcs.duration(cycles),
            Cost::SchedulerCycles(cycles) => self.scheduler.duration(cycles),
            Cost::Fixed(time) => time,
        };
        once * stage.passes
    }

    /// Time of all stages.
    #[must_use]
    pub fn total(&self, stages: &[Stage]) -> Ps {
        stages.iter().map(|stage| self.stage(stage)).sum()
    }
}

fn stage(place: Place, name: &'static str, passes: u64, cost: Cost) -> Stage {
    Stage { place, name, passes, cost }
}

fn cycles(place: Place, name: &'static str, count: Cycles) -> Stage {
    stage(place, name, 1, Cost::Cycles(count))
}

fn link_stages(timing: &Timing, hops: u64) -> [Stage; 2] {
    [
        stage(Place::Link, "PMA, PMD, transceiver", 2 * hops, Cost::Fixed(timing.transceiver)),
        stage(Place::Link, "propagation", hops, Cost::Fixed(timing.propagation)),
    ]
}

/// The stages of EDM: 42 cycles for a read, 41 for a write, and four hops in either case.
#[must_use]
pub fn edm_stages(operation: Operation, timing: &Timing) -> Vec<Stage> {
    use Place::{Compute, Memory, Switch};
    let pcs = |place, passes| stage(place, "PCS", passes, Cost::Cycles(edm::PCS));
    let switch = |first, last| {
        [
            cycles(Switch, "identify", edm::IDENTIFY),
            cycles(Switch, "notification queue", edm::INSERT),
            stage(Switch, "matching", 1, Cost::SchedulerCycles(edm::MATCH)),
            cycles(Switch, first, edm::GENERATE_GRANT),
            cycles(Switch, last, edm::FORWARD),
            pcs(Switch, 4),
        ]
    };
    let mut stages = Vec::new();
    match operation {
        Operation::Read => {
            stages.push(cycles(Compute, "generate RREQ", edm::GENERATE_REQUEST));
            stages.push(cycles(Compute, "receive RRES", edm::RECEIVE_DATA));
            stages.push(pcs(Compute, 2));
            stages.extend(switch("release RREQ", "forward RRES"));
            stages.push(cycles(Memory, "receive RREQ", edm::RECEIVE_REQUEST));
            stages.push(cycles(Memory, "grant queue", edm::GRANT_QUEUE));
            stages.push(cycles(Memory, "generate RRES", edm::GENERATE_DATA));
            stages.push(pcs(Memory, 2));
        }
        Operation::Write => {
            stages.push(cycles(Compute, "generate /N/", edm::GENERATE_REQUEST));
            stages.push(cycles(Compute, "receive /G/", edm::RECEIVE_GRANT));
            stages.push(cycles(Compute, "grant queue", edm::GRANT_QUEUE));
            stages.push(cycles(Compute, "generate WREQ", edm::GENERATE_DATA));
            stages.push(pcs(Compute, 3));
            stages.extend(switch("generate /G/", "forward WREQ"));
            stages.push(cycles(Memory, "receive WREQ", edm::RECEIVE_DATA));
            stages.push(pcs(Memory, 1));
        }
    }
    stages.extend(link_stages(timing, 4));
    stages
}

/// The stages of a stack on standard Ethernet through a layer 2 switch: two crossings for a read,
/// one for a write.
#[must_use]
pub fn mac_stages(operation: Operation, stack: Stack, timing: &Timing) -> Vec<Stage> {
    use Place::{Compute, Memory, Switch};
    let crossings = match operation {
        Operation::Read => 2,
        Operation::Write => 1,
    };
    let software = match stack {
        Stack::RawEthernet => Ps::ZERO,
        Stack::Roce => ROCE_STACK,
        Stack::Tcp => TCP_STACK,
    };
    let mac = |place, passes| stage(place, "MAC", passes, Cost::Cycles(MAC));
    let pcs = |place, passes| stage(place, "PCS", passes, Cost::Cycles(STANDARD_PCS));
    let mut stages = Vec::new();
    for place in [Compute, Switch, Memory] {
        if place == Switch {
            let forwarding = Cost::Fixed(L2_FORWARDING);
            stages.push(stage(place, "layer 2 forwarding", crossings, forwarding));
        } else {
            stages.push(stage(place, "protocol stack", crossings, Cost::Fixed(software)));
        }
        let ports = if place == Switch { 2 * crossings } else { crossings };
        stages.push(mac(place, ports));
        stages.push(pcs(place, ports));
    }
    stages.extend(link_stages(timing, 2 * crossings));
    stages
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The testbed: 25 GbE, 19 ns transceivers, 10 ns per hop.
    fn testbed() -> Timing {
        let pcs = Clock { period: Ps(2_560) };
        Timing { pcs, scheduler: pcs, transceiver: Ps::from_ns(19), propagation: Ps::from_ns(10) }
    }

    /// Totals by place (compute, switch, memory, transceiver, propagation) of the published table.
    fn published(column: &str) -> [f64; 5] {
        let table = include_str!("../../../workloads/edm-table1-published.csv");
        let mut lines = table.lines().filter(|line| !line.starts_with('#'));
        let header: Vec<_> = lines.next().expect("a header").split(',').collect();
        let at = header.iter().position(|name| *name == column).expect("a column");
        let mut sums = [0.0; 5];
        for line in lines {
            let fields: Vec<_> = line.split(',').collect();
            let row = ["compute", "switch", "memory", "pma", "propagation"]
                .iter()
                .position(|place| fields[0].starts_with(place))
                .expect("a known stage");
            sums[row] += fields[at].parse::<f64>().expect("a number");
        }
        sums
    }

    fn by_place(stages: &[Stage]) -> [f64; 5] {
        let timing = testbed();
        let mut sums = [0.0; 5];
        for stage in stages {
            let row = match (stage.place, stage.name) {
                (Place::Compute, _) => 0,
                (Place::Switch, _) => 1,
                (Place::Memory, _) => 2,
                (Place::Link, "propagation") => 4,
                (Place::Link, _) => 3,
            };
            sums[row] += timing.stage(stage).as_ns_f64();
        }
        sums
    }

    #[test]
    fn every_place_takes_what_the_paper_publishes() {
        for (operation, suffix) in [(Operation::Read, "read_ns"), (Operation::Write, "write_ns")] {
            let timing = testbed();
            for (name, stages) in [
                ("edm", edm_stages(operation, &timing)),
                ("raw_ethernet", mac_stages(operation, Stack::RawEthernet, &timing)),
                ("roce", mac_stages(operation, Stack::Roce, &timing)),
                ("tcp", mac_stages(operation, Stack::Tcp, &timing)),
            ] {
                let ours = by_place(&stages);
                let theirs = published(&format!("{name}_{suffix}"));
                for (ours, theirs) in ours.iter().zip(theirs) {
                    assert!((ours - theirs).abs() < 1e-6, "{name} {suffix}: {ours} {theirs}");
                }
            }
        }
    }

    #[test]
    fn edm_takes_42_and_41_cycles_of_logic() {
        let timing = testbed();
        for (operation, cycles, total) in
            [(Operation::Read, 42, 299_520), (Operation::Write, 41, 296_960)]
        {
            let stages = edm_stages(operation, &timing);
            let logic: u64 = stages
                .iter()
                .map(|stage| match stage.cost {
                    Cost::Cycles(cycles) | Cost::SchedulerCycles(cycles) => cycles.0 * stage.passes,
                    Cost::Fixed(_) => 0,
                })
                .sum();
            assert_eq!(logic, cycles);
            assert_eq!(timing.total(&stages), Ps(total));
        }
    }
}
