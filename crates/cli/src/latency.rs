//! `ethermem latency`: the component model of the simulator, stage by stage.

use std::path::PathBuf;

use clap::Args;
use ethermem_experiments::latency::{
    Budget, Fabric, LINK_GBPS_DEFAULT, MESSAGE_BYTES_MAX, Op, Request,
};
use ethermem_experiments::rtl::Measurement;
use ethermem_experiments::selection::link_gbps;
use ethermem_experiments::words::bytes_in;
use ethermem_sim::scenario::Setting;

use crate::ddc;
use crate::failure::Failure;
use crate::output::{Format, RowFormat};
use crate::value::{Named, one_of};

const FABRICS: [Named<Fabric>; 4] = [
    ("edm", "Memory in the Ethernet PHY", Fabric::Edm),
    ("raw-ethernet", "MAC and PHY only", Fabric::RawEthernet),
    ("roce", "RoCEv2 in hardware", Fabric::Roce),
    ("tcp", "TCP/IP in hardware", Fabric::Tcp),
];
const OPS: [Named<Op>; 2] =
    [("read", "Request there, data back", Op::Read), ("write", "Data there", Op::Write)];
const SOURCES: [Named<Source>; 2] = [
    ("model", "The budget that the simulator is made of", Source::Model),
    ("rtl", "Cycles of the RTL, compiled and run; the first run builds it", Source::Rtl),
];

/// Source of the stages.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Model,
    Rtl,
}

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
    #[arg(long, value_name = "NAME", default_value = "edm", value_parser = one_of(&FABRICS))]
    fabric: Fabric,

    /// Operation of the message
    #[arg(long, value_name = "OP", default_value = "read", value_parser = one_of(&OPS))]
    op: Op,

    /// Data rate of every link in Gb/s: 10, 25, 40, 100, 200 or 400 [default: 25, with --ddc 40]
    #[arg(long, value_name = "GBPS", value_parser = link_gbps)]
    link_gbps: Option<u64>,

    /// Also simulate one message of this many bytes, and show the time beyond the stages
    #[arg(long, value_name = "BYTES",
          value_parser = bytes_in(1..=MESSAGE_BYTES_MAX))]
    bytes: Option<u64>,

    /// Override a key of the network's scenario: fabric.propagation_ns=50
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<Setting>,

    /// Source of the stages: the simulator's model, or the running hardware (EDM, 25 Gb/s)
    #[arg(long, value_name = "SOURCE", default_value = "model", value_parser = one_of(&SOURCES))]
    from: Source,

    /// Write the waves of the message to this file, in FST; needs --from rtl
    #[arg(long, value_name = "FILE")]
    fst: Option<PathBuf>,

    /// Format of the stages; csv only with --ddc
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: RowFormat,

    /// Show the latency of fetching a page in a disaggregated datacenter instead: six components,
    /// for today's hosts, RDMA, and integrated network interfaces, between racks and within one
    #[arg(long, conflicts_with_all = ["fabric", "op", "bytes", "settings", "from", "fst"])]
    ddc: bool,

    #[command(flatten)]
    budget: ddc::DdcArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.ddc {
        return ddc::run(&arguments.budget, arguments.link_gbps, arguments.format);
    }
    let format = match arguments.format {
        RowFormat::Table => Format::Table,
        RowFormat::Json => Format::Json,
        RowFormat::Csv => {
            let problem = "--format csv without --ddc: must be one of table, json";
            return Err(Failure::input(problem));
        }
    };
    let request = arguments.request();
    if arguments.from == Source::Rtl {
        let measured = request.measure(arguments.fst.as_deref())?;
        return format.print(&measured, Measurement::table);
    }
    let budget = request.run()?;
    if let Some(file) = &arguments.fst {
        let given = format!("--fst {}", file.display());
        return Err(Failure::input(format!("{given} with --from model: must be --from rtl")));
    }
    format.print(&budget, Budget::table)
}

impl Arguments {
    fn request(&self) -> Request {
        Request {
            fabric: self.fabric,
            op: self.op,
            link_gbps: self.link_gbps.unwrap_or(LINK_GBPS_DEFAULT),
            bytes: self.bytes,
            settings: self.settings.clone(),
        }
    }
}
