//! The registry of fabrics: what scenarios and commands know of each.

use ethermem_units::{Bytes, Ps};

use crate::FabricConfig;
use crate::config::Reader;
use crate::engine::{Alone, Fabric, Live, live};
use crate::fabrics::{
    clio, cxl, dcpim, dctcp, edm, edm_artifact, fastpass, homa, ideal, ird, ndp, output_queued,
    pfabric, pfc, phost, raw_ethernet, roce, tcp,
};
use crate::metrics::RunResult;
use crate::run::{RunFailure, RunOptions, messages, run_on};
use crate::scenario::Scenario;
use crate::topology::Topology;
use crate::workload::{LinkBlocks, WorkloadConfig};
use crate::{Kind, MessageSource, SourceError};

/// A fabric as scenarios and commands know it.
pub struct FabricEntry {
    /// `fabric.kind` of a scenario.
    pub name: &'static str,
    /// What it is, in a line.
    pub summary: &'static str,
    /// See [`Fabric::blocks`].
    pub blocks: fn(&FabricConfig, Kind, Bytes) -> LinkBlocks,
    /// How long a message takes from submission to completion with nothing else in the fabric.
    pub alone: fn(&FabricConfig, Kind, Bytes) -> Ps,
    /// See [`Fabric::MESSAGE_BYTES_MAX`].
    pub message_bytes_max: u64,
    /// Whether it is what designs are held against, and none itself.
    pub is_bound: bool,
    leaf_spine: bool,
    /// How its parameters are read; `None` where it has none of its own.
    pub(crate) parameters: Option<Reader>,
    pub(crate) run: fn(&Scenario, RunOptions<'_>) -> Result<RunResult, RunFailure>,
    live: LiveOf,
}

/// Makes a fabric that is used message by message.
type LiveOf =
    fn(&FabricConfig, u64, Option<Box<dyn MessageSource>>) -> Result<Box<dyn Live>, SourceError>;

impl FabricEntry {
    /// A fabric under its name, with what it is in a line.
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
            parameters: Reader::of::<F::Parameters>(),
            run: run_on::<F>,
            live: live::<F>,
        }
    }

    /// A bound under its name, with what it is in a line.
    #[must_use]
    pub const fn bound<F: Fabric>(name: &'static str, summary: &'static str) -> FabricEntry {
        FabricEntry { is_bound: true, ..FabricEntry::new::<F>(name, summary) }
    }

    /// Whether the fabric runs a scenario, as far as that is known without its messages.
    ///
    /// # Errors
    /// [`SourceError`] that says on which topology it runs, or what messages it moves.
    pub fn check(&self, scenario: &Scenario) -> Result<(), SourceError> {
        if scenario.fabric.topology != Topology::SingleSwitch && !self.leaf_spine {
            let name = self.name;
            let problem =
                format!("fabric {name} runs on fabric.topology = \"single-switch\" alone");
            return Err(SourceError(problem));
        }
        match &scenario.workload {
            WorkloadConfig::Poisson(config) => self.check_bytes(config.sizes.quantile(1.0)),
            WorkloadConfig::Trace(_) => Ok(()),
        }
    }

    /// The fabric of a scenario, idle, to be used message by message; the scenario's workload goes
    /// on in it beside, if that is asked for.
    ///
    /// # Errors
    /// As [`FabricEntry::check`], and when the workload cannot be opened.
    pub fn live(
        &self,
        scenario: &Scenario,
        background: bool,
    ) -> Result<Box<dyn Live>, SourceError> {
        self.check(scenario)?;
        let background = if background { Some(messages(scenario)?) } else { None };
        (self.live)(&scenario.fabric, scenario.run.seed, background)
    }

    /// Whether the fabric moves so many bytes in one message.
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

/// The fabric of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static FabricEntry> {
    FABRICS.iter().find(|fabric| fabric.name == name)
}
