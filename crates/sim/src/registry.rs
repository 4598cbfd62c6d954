//! The registry of fabrics, which scenarios and commands use.

use ethermem_units::{Bytes, Ps};

use crate::FabricConfig;
use crate::config::Reader;
use crate::engine::{Alone, Denominator, Fabric, Live, live};
use crate::fabrics::{
    clio, cxl, cxl_ethernet, dcpim, dctcp, dfabric, edm, edm_artifact, fastpass, homa, ideal, ird,
    ndp, output_queued, pfabric, pfc, phost, raw_ethernet, roce, tcp, tor_rack,
};
use crate::metrics::RunResult;
use crate::run::{RunFailure, RunOptions, messages, run_on};
use crate::scenario::Scenario;
use crate::topology::Topology;
use crate::workload::{LinkBlocks, WorkloadConfig};
use crate::{Kind, MessageSource, SourceError};

/// A fabric in the registry.
pub struct FabricEntry {
    /// The value of `fabric.kind` in a scenario.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The blocks of a message: see [`Fabric::blocks`].
    pub blocks: fn(&FabricConfig, Kind, Bytes) -> LinkBlocks,
    /// The time of a message from submission to completion with nothing else in the fabric.
    pub alone: fn(&FabricConfig, Kind, Bytes) -> Ps,
    /// Maximum data bytes of a message: see [`Fabric::MESSAGE_BYTES_MAX`].
    pub message_bytes_max: u64,
    /// True if it is a bound to which designs are compared, and not a design.
    pub is_bound: bool,
    leaf_spine: bool,
    /// Maximum number of nodes.
    pub nodes_max: u16,
    /// The reader of its parameters; `None` if it has none of its own.
    pub(crate) parameters: Option<Reader>,
    /// Makes the denominators of its slowdowns.
    pub(crate) denominator: fn(&FabricConfig) -> Box<dyn Denominator>,
    pub(crate) run: fn(&Scenario, RunOptions<'_>) -> Result<RunResult, RunFailure>,
    live: LiveOf,
}

/// Builds a fabric that is driven message by message.
type LiveOf =
    fn(&FabricConfig, u64, Option<Box<dyn MessageSource>>) -> Result<Box<dyn Live>, SourceError>;

impl FabricEntry {
    /// A fabric with its name and a description in one line.
    #[must_use]
    pub const fn new<F: Fabric>(name: &'static str, summary: &'static str) -> FabricEntry {
        FabricEntry {
            name,
            summary,
            blocks: F::blocks,
            alone: alone::<F>,
            message_bytes_max: F::MESSAGE_BYTES_MAX,
            is_bound: false,
            leaf_spine: F::LEAF_SPINE,
            nodes_max: F::NODES_MAX,
            parameters: Reader::of::<F::Parameters>(),
            denominator: denominator::<F>,
            run: run_on::<F>,
            live: live::<F>,
        }
    }

    /// A bound with its name and a description in one line.
    #[must_use]
    pub const fn bound<F: Fabric>(name: &'static str, summary: &'static str) -> FabricEntry {
        FabricEntry { is_bound: true, ..FabricEntry::new::<F>(name, summary) }
    }

    /// Checks that the fabric can run a scenario, as far as it is known without its messages.
    ///
    /// # Errors
    /// [`SourceError`] that names the topology on which it runs, its nodes, or the messages that it
    /// moves.
    pub fn check(&self, scenario: &Scenario) -> Result<(), SourceError> {
        if scenario.fabric.topology != Topology::SingleSwitch && !self.leaf_spine {
            let name = self.name;
            let problem =
                format!("fabric {name} runs on fabric.topology = \"single-switch\" alone");
            return Err(SourceError(problem));
        }
        if scenario.fabric.nodes > self.nodes_max {
            let (name, most, nodes) = (self.name, self.nodes_max, scenario.fabric.nodes);
            return Err(SourceError(format!(
                "fabric {name} has at most {most} nodes, not {nodes}"
            )));
        }
        match &scenario.workload {
            WorkloadConfig::Poisson(config) => self.check_bytes(config.sizes.quantile(1.0)),
            // A trace is checked as it is read. The messages of a program are cut.
            WorkloadConfig::Trace(_)
            | WorkloadConfig::ExecutionTrace(_)
            | WorkloadConfig::Program(_) => Ok(()),
        }
    }

    /// The idle fabric of a scenario, to be driven message by message. If requested, the scenario's
    /// workload runs in it as well.
    ///
    /// # Errors
    /// The errors of [`FabricEntry::check`], and an error when the workload cannot be opened.
    pub fn live(
        &self,
        scenario: &Scenario,
        background: bool,
    ) -> Result<Box<dyn Live>, SourceError> {
        self.check(scenario)?;
        let background = if background { Some(messages(scenario)?) } else { None };
        (self.live)(&scenario.fabric, scenario.run.seed, background)
    }

    /// Checks that the fabric moves this many bytes in one message.
    pub(crate) fn check_bytes(&self, bytes: Bytes) -> Result<(), SourceError> {
        if bytes.0 <= self.message_bytes_max {
            return Ok(());
        }
        let (name, most, bytes) = (self.name, self.message_bytes_max, bytes.0);
        let problem =
            format!("fabric {name} moves at most {most} B in a message, and one has {bytes}");
        Err(SourceError(problem))
    }
}

fn denominator<F: Fabric>(config: &FabricConfig) -> Box<dyn Denominator> {
    Box::new(Alone::<F>::new(config))
}

fn alone<F: Fabric>(config: &FabricConfig, kind: Kind, bytes: Bytes) -> Ps {
    Alone::<F>::new(config).time(kind, bytes)
}

/// Every fabric, the default first.
pub const FABRICS: &[FabricEntry] = &[
    FabricEntry::new::<edm::Edm>("edm", "memory in the PHY, grants from a scheduler in the switch"),
    FabricEntry::new::<raw_ethernet::RawEthernet>(
        "raw-ethernet",
        "MAC frames, store-and-forward L2 switch",
    ),
    FabricEntry::new::<ird::Ird>(
        "ird",
        "idealised receiver-driven: credits by SRPT, paced by the receiver",
    ),
    FabricEntry::new::<edm_artifact::EdmArtifact>(
        "edm-artifact",
        "EDM as its artifact simulates it: a chunk of a message at a time",
    ),
    FabricEntry::new::<fastpass::Fastpass>(
        "fastpass",
        "an arbiter on its own link allocates timeslots",
    ),
    FabricEntry::new::<cxl::Cxl>(
        "cxl",
        "flits and credits from hop to hop, one queue a switch port",
    ),
    FabricEntry::new::<cxl_ethernet::CxlEthernet>(
        "cxl-ethernet",
        "CXL over Ethernet: loads and stores of lines in frames, a PFC frame is a signal",
    ),
    FabricEntry::new::<dfabric::Dfabric>(
        "dfabric",
        "racks on a memory fabric of CXL, joined by a pool of NICs",
    ),
    FabricEntry::new::<tor_rack::TorRack>(
        "tor-rack",
        "racks of nodes with a NIC each, a ToR switch, and TCP",
    ),
    FabricEntry::new::<clio::Clio>(
        "clio",
        "requests without connections, windows by delay, a memory node with its own page table",
    ),
    FabricEntry::new::<dctcp::Dctcp>(
        "dctcp",
        "TCP that cuts its window by the share of marked packets",
    ),
    FabricEntry::new::<pfabric::Pfabric>("pfabric", "switches send and keep what has least to go"),
    FabricEntry::new::<homa::Homa>("homa", "receivers grant, and choose the priorities of data"),
    FabricEntry::new::<ndp::Ndp>(
        "ndp",
        "switches trim packets to headers, receivers pull what comes next",
    ),
    FabricEntry::new::<pfc::Pfc>(
        "pfc",
        "lossless: links are paused, senders cut their rates by marks",
    ),
    FabricEntry::new::<phost::Phost>("phost", "receivers give tokens to what has least to go"),
    FabricEntry::new::<dcpim::Dcpim>(
        "dcpim",
        "hosts match senders to receivers in rounds, long flows are sent within the match",
    ),
    FabricEntry::new::<roce::Roce>("roce", "RoCEv2's stack, go-back-N over switches that drop"),
    FabricEntry::new::<tcp::Tcp>(
        "tcp",
        "NewReno with an initial window of two, a stack in hardware",
    ),
    FabricEntry::bound::<output_queued::OutputQueued>(
        "output-queued",
        "bound: EDM's path, nobody schedules",
    ),
    FabricEntry::bound::<ideal::Ideal>("ideal", "bound: every message alone on its path"),
];

/// The names of all fabrics, the default first.
pub const FABRIC_NAMES: &[&str] = &{
    let mut names = [""; FABRICS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FABRICS[at].name;
        at += 1;
    }
    names
};

/// The fabric with a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static FabricEntry> {
    FABRICS.iter().find(|fabric| fabric.name == name)
}
