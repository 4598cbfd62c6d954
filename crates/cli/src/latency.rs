//! `ethermem latency`: the component model of the simulator, stage by stage.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use ethermem_sim::budget::{Cost, Operation, Stack, Stage, Timing, edm_stages, mac_stages};
use ethermem_sim::engine::Fabric as _;
use ethermem_sim::fabrics::edm::Edm;
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::{FabricConfig, Kind};
use ethermem_units::Bytes;
use serde::Serialize;

use crate::ddc;
use crate::failure::Failure;
use crate::output::{Format, RowFormat};
use crate::rtl::stages;
use crate::selection::link_gbps;
use crate::value::bytes_in;

/// Of the published table.
const LINK_GBPS_DEFAULT: u64 = 25;
/// What the hardware has: one rate; a message by default; the chunk of its build.
const RTL_GBPS: u64 = 25;
const RTL_BYTES: u64 = 64;
const RTL_CHUNK_BYTES: u64 = 256;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem latency --fabric edm --op read --link-gbps 25\n  \
    ethermem latency --fabric roce --op write --link-gbps 100 --format json\n  \
    ethermem latency --fabric edm --op read --from rtl --fst read.fst\n  \
    ethermem latency --fabric edm --op read --bytes 4096 --set fabric.propagation_ns=50\n  \
    ethermem latency --ddc --link-gbps 100 --switch-ns 100\n\
    \n\
    At 25 Gb/s this is Table 1 of the EDM paper. The total is that of a message's first block;\n\
    --bytes adds what the simulator takes for all of it, alone in the fabric. --ddc is Table 4 of\n\
    the study of requirements for disaggregation (OSDI 2016).")]
pub(crate) struct Arguments {
    /// Fabric, or protocol stack on standard Ethernet
    #[arg(long, value_name = "NAME", default_value = "edm")]
    fabric: Fabric,

    /// What the message does
    #[arg(long, value_name = "OP", default_value = "read")]
    op: Op,

    /// Data rate of every link in Gb/s: 10, 25, 40, 100, 200 or 400 [default: 25, with --ddc 40]
    #[arg(long, value_name = "GBPS", value_parser = link_gbps)]
    link_gbps: Option<u64>,

    /// Simulate one message of so many bytes and show what comes on top of the stages
    #[arg(long, value_name = "BYTES",
          value_parser = bytes_in(1..=Edm::MESSAGE_BYTES_MAX))]
    bytes: Option<u64>,

    /// Set a key of the scenario that says what the network is: fabric.propagation_ns=50
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// What the stages are of: the simulator's model, or the hardware as it runs (EDM, 25 Gb/s)
    #[arg(long, value_name = "SOURCE", default_value = "model")]
    from: Source,

    /// Write the waves of the message to a file, in FST: with --from rtl
    #[arg(long, value_name = "FILE")]
    fst: Option<PathBuf>,

    /// How to print the stages; csv with --ddc alone
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: RowFormat,

    /// Show what fetching a page costs in a disaggregated datacenter instead: six components, for
    /// today's hosts, RDMA, and integrated network interfaces, between racks and within one
    #[arg(long, conflicts_with_all = ["fabric", "op", "bytes", "settings", "from", "fst"])]
    ddc: bool,

    #[command(flatten)]
    budget: ddc::DdcArguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Fabric {
    /// Memory in the Ethernet PHY
    Edm,
    /// MAC and PHY only
    RawEthernet,
    /// RoCEv2 in hardware
    Roce,
    /// TCP/IP in hardware
    Tcp,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Op {
    /// Request there, data back
    Read,
    /// Data there
    Write,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Source {
    /// The budget that the simulator is made of
    Model,
    /// Cycles of the RTL, compiled and run; the first run builds it
    Rtl,
}

/// What is printed, in this order.
#[derive(Serialize)]
pub(crate) struct Budget {
    pub(crate) fabric: &'static str,
    op: &'static str,
    link_gbps: u64,
    pub(crate) stages: Vec<BudgetStage>,
    pub(crate) total_ns: f64,
    pcs_clock_ns: f64,
    scheduler_clock_ns: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<MessageTime>,
}

/// A stage, all its passes together.
#[derive(Serialize)]
pub(crate) struct BudgetStage {
    pub(crate) place: &'static str,
    pub(crate) name: &'static str,
    /// None where the stage takes the same time at every link rate.
    cycles: Option<u64>,
    pub(crate) ns: f64,
    passes: u64,
    /// Which clock the cycles are of.
    clock: Option<&'static str>,
}

/// One whole message, simulated alone.
#[derive(Serialize)]
struct MessageTime {
    bytes: u64,
    /// Serialisation of all blocks but the first, and further chunks.
    serialization_ns: f64,
    latency_ns: f64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.ddc {
        return ddc::run(&arguments.budget, arguments.link_gbps, arguments.format);
    }
    let format = match arguments.format {
        RowFormat::Table => Format::Table,
        RowFormat::Json => Format::Json,
        RowFormat::Csv => {
            let problem = "--format csv without --ddc: allowed are table, json";
            return Err(Failure::input(problem));
        }
    };
    let link_gbps = arguments.link_gbps.unwrap_or(LINK_GBPS_DEFAULT);
    let mut settings = vec![link_setting(link_gbps)];
    settings.extend(arguments.settings.iter().cloned());
    let changes = Changes { settings, trace: None };
    let config = Scenario::default_with(&changes, FABRIC_NAMES)?.fabric;
    if arguments.from == Source::Rtl {
        return from_rtl(arguments, &config, format);
    }
    if let Some(file) = &arguments.fst {
        let given = format!("--fst {}", file.display());
        return Err(Failure::input(format!("{given} with --from model: allowed is --from rtl")));
    }
    let mut budget = Budget::of(arguments.fabric, arguments.op, &config);
    if let Some(bytes) = arguments.bytes {
        budget.add_message(arguments, &config, Bytes(bytes));
    }
    format.print(&budget, Budget::table)
}

/// The RTL has one fabric, one rate, and messages of a size that its buffers hold.
fn from_rtl(arguments: &Arguments, config: &FabricConfig, format: Format) -> Result<(), Failure> {
    let link_gbps = arguments.link_gbps.unwrap_or(LINK_GBPS_DEFAULT);
    let bytes = arguments.bytes.unwrap_or(RTL_BYTES);
    if arguments.fabric != Fabric::Edm || link_gbps != RTL_GBPS {
        let given = format!("{} at {} Gb/s", arguments.fabric.name(), link_gbps);
        return Err(Failure::input(format!("--from rtl with {given}: allowed is edm at 25 Gb/s")));
    }
    if !arguments.settings.is_empty() {
        return Err(Failure::input("--from rtl with --set: its lines have no length to set"));
    }
    if bytes > RTL_CHUNK_BYTES {
        let allowed = format!("allowed are 1 to {RTL_CHUNK_BYTES}, one chunk");
        return Err(Failure::input(format!("--from rtl with --bytes {bytes}: {allowed}")));
    }
    let stages = arguments.fabric.stages(arguments.op, &Timing::of(config));
    stages::run(arguments.op.name(), bytes, &stages, arguments.fst.as_deref(), format)
}

impl Budget {
    /// The stages of a fabric in a network.
    pub(crate) fn of(fabric: Fabric, op: Op, config: &FabricConfig) -> Budget {
        let timing = Timing::of(config);
        let stages = fabric.stages(op, &timing);
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

    fn add_message(&mut self, arguments: &Arguments, config: &FabricConfig, bytes: Bytes) {
        let simulated = registry::find(self.fabric).expect("every stack of the budget is a fabric");
        let timing = Timing::of(config);
        let total = timing.total(&arguments.fabric.stages(arguments.op, &timing));
        let latency = (simulated.alone)(config, arguments.op.kind(), bytes);
        self.message = Some(MessageTime {
            bytes: bytes.0,
            serialization_ns: latency.saturating_sub(total).as_ns_f64(),
            latency_ns: latency.as_ns_f64(),
        });
    }

    fn table(&self, style: TableStyle) -> String {
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
    /// As the simulator names it, where it does.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Fabric::Edm => "edm",
            Fabric::RawEthernet => "raw-ethernet",
            Fabric::Roce => "roce",
            Fabric::Tcp => "tcp",
        }
    }

    fn stages(self, op: Op, timing: &Timing) -> Vec<Stage> {
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
    const fn name(self) -> &'static str {
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

/// The network of this link rate, everything else as scenarios have it by default.
pub(crate) fn link_setting(gbps: u64) -> Setting {
    format!("fabric.link_gbps={gbps}").parse().expect("a key and its value")
}
