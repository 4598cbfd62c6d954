//! The study's network, for every fabric.

use std::path::Path;

use ethermem_sim::keys::refuse_own;
use ethermem_sim::registry::{FABRIC_NAMES, FabricEntry};
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::{InputError, TraceConfig, TraceFormat};

use crate::Scope;
use crate::replay::Plan;

/// Keys that the plan sets.
const OWN: [&str; 5] =
    ["fabric.kind", "fabric.nodes", "fabric.link_gbps", "fabric.leaf_spine.rack_nodes", "run.seed"];
const TEXT: &str = include_str!("../../../scenarios/study-clos.toml");
/// Name in errors.
const NAME: &str = "scenarios/study-clos.toml";
/// Propagation delay in a single-switch fabric that spans a datacenter: 4 m and 40 m at 5 ns a
/// metre, the distance from a node to a spine.
const DATACENTER_PROPAGATION_NS: u64 = 220;

/// The scenario that runs the messages in `messages`, a Parquet trace, on a fabric. It uses the
/// study's network. A fabric that supports only one switch has all nodes on that, at equal
/// distances, and with its own PHY. Settings of the plan come last. The notice says which network
/// was used.
///
/// # Errors
/// [`InputError`] for a setting that is unknown or not allowed.
pub fn network(
    plan: &Plan,
    fabric: &FabricEntry,
    messages: &Path,
) -> Result<(Scenario, Option<String>), InputError> {
    refuse_own(&plan.settings, &OWN)?;
    let trace = TraceConfig { path: messages.to_owned(), format: TraceFormat::Parquet };
    let read = |own: &[String]| {
        let mut settings: Vec<Setting> = own.iter().map(|text| setting(text)).collect();
        settings.extend(plan.settings.iter().cloned());
        let changes = Changes { settings, trace: Some(trace.clone()) };
        Scenario::parse_with(TEXT, Path::new(NAME), &changes, FABRIC_NAMES)
    };
    let mut own = vec![
        format!("fabric.kind={}", fabric.name),
        format!("fabric.nodes={}", plan.nodes),
        format!("fabric.link_gbps={}", plan.link_gbps),
        format!("fabric.leaf_spine.rack_nodes={}", plan.rack_nodes),
        format!("run.seed={}", plan.seed),
    ];
    let clos = read(&own)?;
    if fabric.check(&clos).is_ok() {
        return Ok((clos, None));
    }
    own.extend(["fabric.topology=single-switch", "fabric.transceiver_ns="].map(str::to_owned));
    own.push("fabric.pcs_clock_ns=".to_owned());
    if plan.scope == Scope::Datacenter {
        own.push(format!("fabric.propagation_ns={DATACENTER_PROPAGATION_NS}"));
    }
    let single = read(&own)?;
    let name = fabric.name;
    let notice = format!("{name} runs on one switch with all {} nodes, not on a Clos", plan.nodes);
    Ok((single, Some(notice)))
}

fn setting(text: &str) -> Setting {
    text.parse().expect("a key and its value")
}
