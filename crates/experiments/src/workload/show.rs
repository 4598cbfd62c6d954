//! Sizes, tail, blocks per message and arrival rate of a workload.

use std::path::Path;

use ethermem_sim::Kind;
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::{FABRIC_NAMES, FABRICS, FabricEntry};
use ethermem_sim::run::offered;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::{
    InputError, LinkBlocks, SizeDistribution, SizeSummary, WorkloadConfig, built_in,
    built_in_names as names,
};
use serde::Serialize;

use crate::error::Error;

/// Workload to inspect.
#[derive(Clone, Debug)]
pub struct Request {
    /// Name of a built-in workload, a scenario (.toml), or a file of sizes.
    pub workload: String,
    /// Keys that override the scenario's, or those of a default one.
    pub settings: Vec<Setting>,
}

/// Properties of a workload, in printed order.
#[derive(Debug, Serialize)]
pub struct Shown {
    workload: String,
    #[serde(flatten)]
    sizes: SizeSummary,
    load: f64,
    messages_per_s: f64,
    goodput_gbps_total: f64,
    blocks: Vec<BlocksOf>,
    #[serde(skip)]
    network: Network,
}

/// Network to which the load refers.
#[derive(Debug)]
struct Network {
    nodes: u16,
    link_gbps: f64,
    fabric: String,
}

/// Mean number of blocks of a message on its links.
#[derive(Debug, Serialize)]
struct BlocksOf {
    fabric: &'static str,
    kind: &'static str,
    compute_uplink: f64,
    compute_downlink: f64,
    memory_uplink: f64,
    memory_downlink: f64,
}

impl Request {
    /// Computes the workload's properties on its network.
    ///
    /// # Errors
    ///
    /// When the workload cannot be used, or is a trace or a program.
    pub fn run(&self) -> Result<Shown, Error> {
        let scenario = self.scenario()?;
        let WorkloadConfig::Poisson(workload) = &scenario.workload else {
            let problem = "its messages are not synthetic: must be workload.kind = \"poisson\"";
            return Err(InputError::file(Path::new(&self.workload), problem).into());
        };
        let offered = offered(&scenario)?.expect("a synthetic workload asks for something");
        let blocks = FABRICS.iter().flat_map(|fabric| {
            let occur = Kind::ALL.into_iter().filter(|&kind| workload.share(kind) > 0.0);
            occur.map(|kind| blocks_of(fabric, kind, &workload.sizes_of(kind), &scenario))
        });
        Ok(Shown {
            workload: self.workload.clone(),
            sizes: SizeSummary::of(&workload.drawn_sizes()),
            load: workload.load,
            messages_per_s: offered.messages_per_s,
            goodput_gbps_total: offered.goodput_gbps_total,
            blocks: blocks.collect(),
            network: Network {
                nodes: scenario.fabric.nodes,
                link_gbps: scenario.fabric.link.as_gbps_f64(),
                fabric: scenario.fabric_kind.clone(),
            },
        })
    }

    fn scenario(&self) -> Result<Scenario, Error> {
        let is_scenario = Path::new(&self.workload).extension().is_some_and(|end| end == "toml");
        let mut changes = Changes { settings: self.settings.clone(), trace: None };
        if is_scenario {
            return Ok(Scenario::load_with(Path::new(&self.workload), &changes, FABRIC_NAMES)?);
        }
        if built_in(&self.workload).is_none() && !Path::new(&self.workload).exists() {
            let problem = format!("no such file: must be files and {}", names().join(", "));
            return Err(InputError::file(Path::new(&self.workload), problem).into());
        }
        let sizes = format!("workload.size_cdf={}", self.workload);
        changes.settings.insert(0, sizes.parse()?);
        Ok(Scenario::default_with(&changes, FABRIC_NAMES)?)
    }
}

fn blocks_of(
    fabric: &FabricEntry,
    kind: Kind,
    sizes: &SizeDistribution,
    scenario: &Scenario,
) -> BlocksOf {
    let [compute_uplink, compute_downlink, memory_uplink, memory_downlink] =
        sizes.expectation(|bytes| {
            let blocks: LinkBlocks = (fabric.blocks)(&scenario.fabric, kind, bytes);
            [
                blocks.compute_uplink,
                blocks.compute_downlink,
                blocks.memory_uplink,
                blocks.memory_downlink,
            ]
        });
    BlocksOf {
        fabric: fabric.name,
        kind: kind.name(),
        compute_uplink,
        compute_downlink,
        memory_uplink,
        memory_downlink,
    }
}

impl Shown {
    /// The workload for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        let SizeSummary {
            bytes_mean,
            bytes_p10,
            bytes_p50,
            bytes_p90,
            bytes_p99,
            bytes_max,
            variation,
            bytes_share_over_p90,
            bytes_share_over_p99,
        } = &self.sizes;
        let percent = |share: &f64| format!("{:.1} %", share * 100.0);
        let facts = [
            ("mean", format!("{bytes_mean:.1} B")),
            ("p10", format!("{bytes_p10} B")),
            ("p50", format!("{bytes_p50} B")),
            ("p90", format!("{bytes_p90} B")),
            ("p99", format!("{bytes_p99} B")),
            ("largest", format!("{bytes_max} B")),
            ("standard deviation / mean", format!("{variation:.2}")),
            ("bytes in the largest 10 %", percent(bytes_share_over_p90)),
            ("bytes in the largest 1 %", percent(bytes_share_over_p99)),
        ];
        let facts = TextTable {
            header: &[self.workload.as_str(), "bytes"],
            text_columns: &[0],
            optional_columns: &[],
            rows: facts.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect(),
        };
        let number = |value: f64| format!("{value:.2}");
        let row = |of: &BlocksOf| {
            let links =
                [of.compute_uplink, of.compute_downlink, of.memory_uplink, of.memory_downlink];
            let names = [of.fabric.to_owned(), of.kind.to_owned()];
            names.into_iter().chain(links.map(number)).collect()
        };
        let blocks = TextTable {
            header: &[
                "blocks on",
                "kind",
                "compute up",
                "compute down",
                "memory up",
                "memory down",
            ],
            text_columns: &[0, 1],
            optional_columns: &[],
            rows: self.blocks.iter().map(row).collect(),
        };
        format!(
            "{}\n{}\nAt load {} on {} nodes of {} Gb/s, {}:\n{:.4} M messages/s, \
             {:.1} Gb/s of data in all.\n",
            facts.render(style),
            blocks.render(style),
            self.load,
            self.network.nodes,
            self.network.link_gbps,
            self.network.fabric,
            self.messages_per_s / 1e6,
            self.goodput_gbps_total,
        )
    }
}
