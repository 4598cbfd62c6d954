//! Parameters of `sim:` URLs: those of the pool, and keys of a scenario.

use ethermem_sim::SourceError;
use ethermem_sim::registry::{FABRIC_NAMES, find};
use ethermem_sim::run::offered;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::WorkloadConfig;

use super::SimConfig;
use crate::open_error::OpenError;
use crate::scheme::Url;

/// The key that the URL's place stands for.
const FABRIC: &str = "fabric.kind";
/// Default memory of all memory nodes together, in bytes.
const MEMORY_BYTES: u64 = 64 << 30;
/// DRAM access time of EDM's evaluation, which its latencies leave out (section 4.2.2).
const MEMORY_ACCESS: &str = "fabric.memory_access_ns=82";
/// Duration of background traffic in seconds: longer than any simulation, and within the limit of a
/// workload's duration.
const BACKGROUND_S: f64 = 36.0 * 3600.0;
/// Tables of a scenario whose keys may be given without the table's name, in search order.
const TABLES: [&str; 3] = ["fabric", "workload", "run"];

/// Reads a URL.
pub(super) fn config(url: &Url<'_>) -> Result<SimConfig, OpenError> {
    let unknown_fabric = || OpenError::UnknownFabric {
        fabric: url.place.to_owned(),
        allowed: FABRIC_NAMES.join(", "),
    };
    let fabric = find(url.place).ok_or_else(unknown_fabric)?;
    let parameters = url.parameters()?;
    let keys: Vec<String> = Scenario::keys(FABRIC_NAMES).into_iter().map(|key| key.name).collect();
    let mut settings = vec![setting("", &format!("{FABRIC}={}", fabric.name))?];
    settings.push(setting("", MEMORY_ACCESS)?);
    let mut background = false;
    for (name, value) in &parameters.others {
        let unknown = || OpenError::UnknownParameter {
            name: name.clone(),
            allowed: names(&keys, fabric.name, url),
        };
        let key = key(name, fabric.name, &keys).ok_or_else(unknown)?;
        if key == FABRIC && value != fabric.name {
            let problem = format!("`{value}`: the place says `{}`", fabric.name);
            return Err(OpenError::BadParameter { name: name.clone(), problem });
        }
        background |= key == "workload.load";
        settings.push(setting(name, &format!("{key}={value}"))?);
    }
    let changes = Changes { settings, trace: None };
    let mut scenario = Scenario::default_with(&changes, FABRIC_NAMES).map_err(|error| {
        let problem = error.to_string();
        OpenError::NotAllowed { problem: problem.trim_start_matches("--set: ").to_owned() }
    })?;
    if background {
        go_on(&mut scenario)?;
    }
    let nodes = scenario.fabric.nodes;
    let memory_nodes = parameters.number("memory_nodes").map(|nodes| nodes as u16);
    let memory_nodes = memory_nodes.unwrap_or(nodes / 2);
    if memory_nodes >= nodes {
        let problem = format!("{memory_nodes}: must be 1 to {} of {nodes} nodes", nodes - 1);
        return Err(OpenError::BadParameter { name: "memory_nodes".to_owned(), problem });
    }
    let memory_bytes = parameters.number("memory_bytes");
    let memory_bytes = memory_bytes.unwrap_or(MEMORY_BYTES / u64::from(memory_nodes));
    Ok(SimConfig { fabric, scenario, background, memory_nodes, memory_bytes })
}

/// Lets the workload run as long as a workload may.
fn go_on(scenario: &mut Scenario) -> Result<(), OpenError> {
    let not_allowed = |error: SourceError| OpenError::NotAllowed { problem: error.to_string() };
    let offered = offered(scenario).map_err(not_allowed)?;
    if let (WorkloadConfig::Poisson(poisson), Some(offered)) = (&mut scenario.workload, offered) {
        poisson.messages = (offered.messages_per_s * BACKGROUND_S) as u64;
    }
    Ok(())
}

/// The scenario key of a parameter. It may have its table's name or, for the network, the fabric,
/// the workload and the run, lack it.
fn key(name: &str, fabric: &str, keys: &[String]) -> Option<String> {
    let whole = std::iter::once(name.to_owned());
    let own = std::iter::once(format!("fabric.{}.{name}", table_of(fabric)));
    let short = TABLES.iter().map(|table| format!("{table}.{name}"));
    whole.chain(short).chain(own).find(|candidate| keys.contains(candidate))
}

/// The table of a fabric's own keys.
fn table_of(fabric: &str) -> String {
    fabric.replace('-', "_")
}

/// The parameters that may be given, each in its shortest form.
fn names(keys: &[String], fabric: &str, url: &Url<'_>) -> String {
    let own = format!("fabric.{}.", table_of(fabric));
    let short = |key: &String| {
        let tables = TABLES.iter().filter_map(|table| key.strip_prefix(table)?.strip_prefix('.'));
        let rest = key.strip_prefix(&own).or_else(|| tables.into_iter().next());
        rest.filter(|rest| !rest.contains('.')).map(str::to_owned)
    };
    let mut names: Vec<String> = keys.iter().filter_map(short).collect();
    names.extend(url.scheme.parameters.iter().map(|parameter| parameter.name.to_owned()));
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}

fn setting(name: &str, text: &str) -> Result<Setting, OpenError> {
    text.parse().map_err(|error: ethermem_sim::scenario::SettingError| OpenError::BadParameter {
        name: name.to_owned(),
        problem: error.to_string(),
    })
}

#[cfg(test)]
mod tests;
