//! The simulator's component model, stage by stage.

use std::path::Path;

use ethermem_sim::budget::{Cost, Operation, Place, Stack, Stage, Timing, edm_stages, mac_stages};
use ethermem_sim::engine::Fabric as _;
use ethermem_sim::fabrics::edm::Edm;
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::{self, FABRIC_NAMES, FabricEntry};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::{FabricConfig, Kind};
use ethermem_units::{Bytes, Ps};
use serde::Serialize;

use crate::error::Error;
use crate::rtl::{Measurement, stages};

/// Link rate of the published table in Gb/s.
pub const LINK_GBPS_DEFAULT: u64 = 25;

/// The hardware's fixed values: rate, default message length, and the chunk of its build.
const RTL_GBPS: u64 = 25;
const RTL_BYTES: u64 = 64;
const RTL_CHUNK_BYTES: u64 = 256;
/// Length in bytes of the longest message that can be simulated.
pub const MESSAGE_BYTES_MAX: u64 = Edm::MESSAGE_BYTES_MAX;

/// One message in an unloaded network.
#[derive(Clone, Debug)]
pub struct Request {
    /// Fabric that carries it.
    pub fabric: Fabric,
    /// Operation of the message.
    pub op: Op,
    /// Data rate of every link in Gb/s.
    pub link_gbps: u64,
    /// Length in bytes of a message that is simulated alone in addition to the stages.
    pub bytes: Option<u64>,
    /// Keys that override the default scenario.
    pub settings: Vec<Setting>,
}

/// Fabrics, and protocol stacks on standard Ethernet, with known stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fabric {
    /// EDM: memory in the Ethernet PHY.
    Edm,
    /// Raw Ethernet: only MAC and PHY.
    RawEthernet,
    /// RoCEv2 in hardware.
    Roce,
    /// TCP/IP in hardware.
    Tcp,
}

/// Operation of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// The request goes to the memory node, data comes back.
    Read,
    /// Data goes to the memory node.
    Write,
}

impl Request {
    /// The stages of the message, and its simulated latency if a length is given.
    ///
    /// # Errors
    ///
    /// When the settings make no scenario.
    pub fn run(&self) -> Result<Budget, Error> {
        let config = self.config()?;
        let mut budget = Budget::of(self.fabric, self.op, &config);
        if let Some(bytes) = self.bytes {
            budget.add_message(self, &config, Bytes(bytes));
        }
        Ok(budget)
    }

    /// The stages as the compiled RTL runs them, which has one fabric, one rate, and messages of a
    /// length that its buffers hold. `fst` is a file for the waves.
    ///
    /// # Errors
    ///
    /// When the hardware lacks what is requested, or does not run.
    pub fn measure(&self, fst: Option<&Path>) -> Result<Measurement, Error> {
        let config = self.config()?;
        let refused = |line: String| Err(Error::Request(format!("--from rtl with {line}")));
        let bytes = self.bytes.unwrap_or(RTL_BYTES);
        if self.fabric != Fabric::Edm || self.link_gbps != RTL_GBPS {
            let given = format!("{} at {} Gb/s", self.fabric.name(), self.link_gbps);
            return refused(format!("{given}: must be edm at 25 Gb/s"));
        }
        if !self.settings.is_empty() {
            return refused("--set: its lines have no length to set".to_owned());
        }
        if bytes > RTL_CHUNK_BYTES {
            let allowed = format!("must be 1 to {RTL_CHUNK_BYTES}, one chunk");
            return refused(format!("--bytes {bytes}: {allowed}"));
        }
        let stages = self.fabric.stages(self.op, &Timing::of(&config));
        stages::run(self.op.name(), bytes, &stages, fst)
    }

    /// Network of the request, with the defaults of scenarios.
    fn config(&self) -> Result<FabricConfig, Error> {
        if let Some((key, problem)) = self.settings.iter().find_map(refused) {
            return Err(Error::Request(format!("--set {key}: {problem}")));
        }
        let kind = format!("fabric.kind={}", self.fabric.name());
        let mut settings = vec![link_setting(self.link_gbps), kind.parse().expect("a setting")];
        settings.extend(self.settings.iter().cloned());
        let changes = Changes { settings, trace: None };
        let scenario = Scenario::default_with(&changes, FABRIC_NAMES)?;
        self.simulated().check(&scenario)?;
        Ok(scenario.fabric)
    }

    fn simulated(&self) -> &'static FabricEntry {
        registry::find(self.fabric.name()).expect("every stack of the budget is a fabric")
    }
}

/// The key of a setting that the stages do not depend on, or that another argument sets, and what
/// it must be.
fn refused(setting: &Setting) -> Option<(&str, &'static str)> {
    let problem = match setting.key() {
        "fabric.kind" => "--fabric says it: must be another key",
        "fabric.link_gbps" => "--link-gbps says it: must be another key",
        "fabric.topology" => "the stages are those of one switch: must be another key",
        key if key.starts_with("fabric.leaf_spine.") => {
            "the stages are those of one switch: must be another key"
        }
        key if !key.starts_with("fabric.") => {
            "must be a key of [fabric], such as fabric.propagation_ns"
        }
        _ => return None,
    };
    Some((setting.key(), problem))
}

/// Latency of a message by stage, in printed order.
#[derive(Clone, Debug, Serialize)]
pub struct Budget {
    /// Name of the fabric.
    pub fabric: &'static str,
    /// `read` or `write`.
    pub op: &'static str,
    /// Data rate of every link in Gb/s.
    pub link_gbps: u64,
    /// Every stage, in order.
    pub stages: Vec<BudgetStage>,
    /// Sum of the stages in ns: the latency of the message's first block.
    pub total_ns: f64,
    /// Period of the PCS clock in ns.
    pub pcs_clock_ns: f64,
    /// Period of the scheduler's clock in ns.
    pub scheduler_clock_ns: f64,
    /// The simulated message, if a length was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageTime>,
}

/// A stage, with all its passes together.
#[derive(Clone, Debug, Serialize)]
pub struct BudgetStage {
    /// Place of the stage: a node, the switch, a link.
    pub place: &'static str,
    /// Name of the stage.
    pub name: &'static str,
    /// Clock cycles; `None` if the stage takes the same time at every link rate.
    pub cycles: Option<u64>,
    /// Time of the stage in ns.
    pub ns: f64,
    /// Number of times that the message passes the stage.
    pub passes: u64,
    /// Name of the clock of the cycles.
    pub clock: Option<&'static str>,
}

/// One whole message, simulated alone.
#[derive(Clone, Debug, Serialize)]
pub struct MessageTime {
    /// Length of the message in bytes.
    pub bytes: u64,
    /// Serialization of all blocks but the first, and of further chunks, in ns.
    pub serialization_ns: f64,
    /// Time from the request to the last byte in ns.
    pub latency_ns: f64,
}

impl Budget {
    /// The stages of a fabric in a network.
    pub(crate) fn of(fabric: Fabric, op: Op, config: &FabricConfig) -> Budget {
        let timing = Timing::of(config);
        let stages = fabric.stages_in(op, config, &timing);
        Budget {
            fabric: fabric.name(),
            op: op.name(),
            link_gbps: config.link.as_gbps_f64() as u64,
            stages: stages.iter().map(|stage| BudgetStage::of(stage, &timing)).collect(),
            total_ns: timing.total(&stages).as_ns_f64(),
            pcs_clock_ns: timing.pcs.period.as_ns_f64(),
            scheduler_clock_ns: timing.scheduler.period.as_ns_f64(),
            message: None,
        }
    }

    fn add_message(&mut self, request: &Request, config: &FabricConfig, bytes: Bytes) {
        let timing = Timing::of(config);
        let total = timing.total(&request.fabric.stages_in(request.op, config, &timing));
        let latency = (request.simulated().alone)(config, request.op.kind(), bytes);
        self.message = Some(MessageTime {
            bytes: bytes.0,
            serialization_ns: latency.saturating_sub(total).as_ns_f64(),
            latency_ns: latency.as_ns_f64(),
        });
    }

    /// The stages for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        let header = ["place", "stage", "passes", "cycles", "clock", "ns"];
        let mut rows: Vec<Vec<String>> = self.stages.iter().map(BudgetStage::row).collect();
        let mut total = |name: &str, ns: f64| {
            let row = [String::new(), name.to_owned()].into_iter();
            rows.push(row.chain(vec![String::new(); 3]).chain([format!("{ns:.2}")]).collect());
        };
        total("total", self.total_ns);
        if let Some(message) = &self.message {
            total(&format!("all of {} B on the links", message.bytes), message.serialization_ns);
            total("total, simulated alone", message.latency_ns);
        }
        let Budget { fabric, op, link_gbps, pcs_clock_ns, scheduler_clock_ns, .. } = self;
        let text_columns = &[0, 1, 4];
        let table = TextTable { header: &header, text_columns, optional_columns: &[2], rows };
        let table = table.render(style);
        format!(
            "{fabric} {op} at {link_gbps} Gb/s: PCS clock {pcs_clock_ns} ns, scheduler clock \
             {scheduler_clock_ns} ns\n{table}"
        )
    }
}

impl BudgetStage {
    fn of(stage: &Stage, timing: &Timing) -> BudgetStage {
        let (cycles, clock) = match stage.cost {
            Cost::Cycles(cycles) => (Some(cycles.0 * stage.passes), Some("pcs")),
            Cost::SchedulerCycles(cycles) => (Some(cycles.0 * stage.passes), Some("scheduler")),
            Cost::Fixed(_) => (None, None),
        };
        BudgetStage {
            place: stage.place.name(),
            name: stage.name,
            cycles,
            ns: timing.stage(stage).as_ns_f64(),
            passes: stage.passes,
            clock,
        }
    }

    fn row(&self) -> Vec<String> {
        vec![
            self.place.to_owned(),
            self.name.to_owned(),
            self.passes.to_string(),
            self.cycles.map_or_else(|| "-".to_owned(), |cycles| cycles.to_string()),
            self.clock.unwrap_or("-").to_owned(),
            format!("{:.2}", self.ns),
        ]
    }
}

impl Fabric {
    /// Name of the fabric in the simulator.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Fabric::Edm => "edm",
            Fabric::RawEthernet => "raw-ethernet",
            Fabric::Roce => "roce",
            Fabric::Tcp => "tcp",
        }
    }

    /// The stages with the times that a network says beside those of Table 1: of its switches and
    /// hosts, and of memory.
    fn stages_in(self, op: Op, config: &FabricConfig, timing: &Timing) -> Vec<Stage> {
        let mut stages = self.stages(op, timing);
        for stage in &mut stages {
            match (stage.name, config.packet.stack) {
                ("layer 2 forwarding", _) => stage.cost = Cost::Fixed(config.packet.forwarding),
                ("protocol stack", Some(stack)) => stage.cost = Cost::Fixed(stack),
                _ => {}
            }
        }
        if op == Op::Read && config.memory_access > Ps::ZERO {
            let cost = Cost::Fixed(config.memory_access);
            stages.push(Stage { place: Place::Memory, name: "memory access", passes: 1, cost });
        }
        stages
    }

    pub(crate) fn stages(self, op: Op, timing: &Timing) -> Vec<Stage> {
        let operation = match op {
            Op::Read => Operation::Read,
            Op::Write => Operation::Write,
        };
        match self {
            Fabric::Edm => edm_stages(operation, timing),
            Fabric::RawEthernet => mac_stages(operation, Stack::RawEthernet, timing),
            Fabric::Roce => mac_stages(operation, Stack::Roce, timing),
            Fabric::Tcp => mac_stages(operation, Stack::Tcp, timing),
        }
    }
}

impl Op {
    /// `read` or `write`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Op::Read => "read",
            Op::Write => "write",
        }
    }

    const fn kind(self) -> Kind {
        match self {
            Op::Read => Kind::Read,
            Op::Write => Kind::Write,
        }
    }
}

/// Setting for this link rate; everything else has the defaults of scenarios.
pub(crate) fn link_setting(gbps: u64) -> Setting {
    format!("fabric.link_gbps={gbps}").parse().expect("a key and its value")
}
