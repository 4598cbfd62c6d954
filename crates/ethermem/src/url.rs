//! What a URL asks for.

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use ethermem_sim::SourceError;
use ethermem_sim::registry::{FABRIC_NAMES, find};
use ethermem_sim::run::offered;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::WorkloadConfig;
use ethermem_udp::NoRingPlace;
use ethermem_udp::seal::KeyFile;
use ethermem_units::Bytes;
use ethermem_wire::clio::TenantId;

use crate::error::OpenError;
use crate::world::{RemoteConfig, SimConfig, Way};

/// How pools are named.
const SCHEMES: &str = "local:, sim:FABRIC, node://HOST:PORT, udp://HOST:PORT, ring://INTERFACE, \
                       ring://INTERFACE/MAC";
/// The place of a simulated pool says it.
const FABRIC: &str = "fabric.kind";
/// Bytes of all memory nodes together, unless said.
const MEMORY_BYTES: u64 = 64 << 30;
/// The DRAM of EDM's evaluation, which its latencies leave out (section 4.2.2).
const MEMORY_ACCESS: &str = "fabric.memory_access_ns=82";
/// How long background traffic goes on: longer than anybody simulates, and within what a workload
/// may take.
const BACKGROUND_S: f64 = 36.0 * 3600.0;
/// Of a memory node, unless said.
const WINDOW: u32 = 256;
const INCAST_WINDOW: Bytes = Bytes(4 << 20);
const GIVE_UP_AFTER: Duration = Duration::from_secs(2);
const POLL_FOR: Duration = Duration::from_millis(1);
const REMOTE_PARAMETERS: &str =
    "datagram_bytes, incast_bytes, key, poll_us, tenant, timeout_ms, window";
const NODE_PARAMETERS: &str =
    "datagram_bytes, incast_bytes, key, poll_us, ring, tenant, timeout_ms, window";
/// Tables of a scenario whose keys may be given without them, in the order of the search.
const TABLES: [&str; 3] = ["fabric", "workload", "run"];

/// A pool that a URL names.
pub(crate) enum Place {
    Local { memory_bytes: u64 },
    Sim(Box<SimConfig>),
    Remote(RemoteConfig),
}

/// `scheme:place?name=value&...`, its parts.
struct Parts<'u> {
    place: &'u str,
    parameters: Vec<(String, String)>,
}

/// Reads a URL.
pub(crate) fn parse(url: &str) -> Result<Place, OpenError> {
    let no_scheme = || OpenError::NoScheme { url: url.to_owned(), allowed: SCHEMES };
    let (scheme, rest) = url.split_once(':').ok_or_else(no_scheme)?;
    let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
    let parameters = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
    let parts = Parts { place, parameters };
    match scheme {
        "local" => local(&parts),
        "node" => node(parts).map(Place::Remote),
        "udp" => udp(&parts).map(Place::Remote),
        "ring" => ring(&parts).map(Place::Remote),
        "sim" => sim(&parts).map(|config| Place::Sim(Box::new(config))),
        _ => Err(OpenError::UnknownScheme { scheme: scheme.to_owned(), allowed: SCHEMES }),
    }
}

fn local(parts: &Parts<'_>) -> Result<Place, OpenError> {
    if !parts.place.is_empty() {
        return Err(OpenError::Place { scheme: "local", found: parts.place.to_owned() });
    }
    let mut memory_bytes = MEMORY_BYTES;
    for (name, value) in &parts.parameters {
        match name.as_str() {
            "memory_bytes" => memory_bytes = number(name, value, u64::MAX)?,
            _ => return Err(unknown(name, "memory_bytes".to_owned())),
        }
    }
    Ok(Place::Local { memory_bytes })
}

fn node(parts: Parts<'_>) -> Result<RemoteConfig, OpenError> {
    let host = host("node", &parts)?.to_owned();
    let is_ring = |(name, _): &(String, String)| name == "ring";
    let (rings, parameters) = parts.parameters.into_iter().partition(is_ring);
    let rings: Vec<(String, String)> = rings;
    let place = |(name, value): &(String, String)| {
        let bad = |error: NoRingPlace| (name.clone(), error.to_string());
        let place = value.parse().map_err(bad);
        place.map_err(|(name, problem)| OpenError::BadParameter { name, problem })
    };
    let ring = rings.last().map(place).transpose()?;
    remote(&Parts { parameters, ..parts }, Way::Quicker { host, ring })
}

fn udp(parts: &Parts<'_>) -> Result<RemoteConfig, OpenError> {
    remote(parts, Way::Udp(host("udp", parts)?.to_owned()))
}

/// `HOST:PORT`, behind `scheme://`.
fn host<'u>(scheme: &'static str, parts: &Parts<'u>) -> Result<&'u str, OpenError> {
    let is_host = |host: &str| match host.strip_prefix('[') {
        Some(v6) => v6.strip_suffix(']').is_some_and(|v6| v6.contains(':')),
        // Where the address ends and the port begins could not be told.
        None => !host.is_empty() && !host.contains(':'),
    };
    let is_node = |node: &&str| {
        let port = node.rsplit_once(':').filter(|(host, _)| is_host(host));
        port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
    };
    let no_node = || OpenError::NoNode { scheme, found: parts.place.to_owned() };
    authority(parts).filter(is_node).ok_or_else(no_node)
}

fn ring(parts: &Parts<'_>) -> Result<RemoteConfig, OpenError> {
    let place = authority(parts).and_then(|place| place.parse().ok());
    let no_place = || OpenError::NoRing { found: parts.place.to_owned() };
    remote(parts, Way::Ring(place.ok_or_else(no_place)?))
}

/// What stands behind `scheme://`.
fn authority<'u>(parts: &Parts<'u>) -> Option<&'u str> {
    parts.place.strip_prefix("//").map(|node| node.strip_suffix('/').unwrap_or(node))
}

fn remote(parts: &Parts<'_>, way: Way) -> Result<RemoteConfig, OpenError> {
    let allowed =
        if matches!(way, Way::Quicker { .. }) { NODE_PARAMETERS } else { REMOTE_PARAMETERS };
    let mut config = RemoteConfig {
        way,
        tenant: TenantId(0),
        key: None,
        datagram_bytes_max: None,
        window: WINDOW,
        incast_window: INCAST_WINDOW,
        give_up_after: GIVE_UP_AFTER,
        poll_for: POLL_FOR,
    };
    let mut tenant = None;
    for (name, value) in &parts.parameters {
        match name.as_str() {
            "key" => {
                let file = KeyFile::read(Path::new(value));
                let file =
                    file.map_err(|error| not_allowed(format!("parameter `key`: {error}")))?;
                (config.tenant, config.key) = (file.tenant, Some(file.key));
            }
            "datagram_bytes" => {
                config.datagram_bytes_max = Some(between(name, value, 256..=65_507)? as usize);
            }
            "incast_bytes" => {
                config.incast_window = Bytes(between(name, value, 65_536..=1 << 40)?);
            }
            "poll_us" => {
                config.poll_for = Duration::from_micros(between(name, value, 0..=60_000_000)?);
            }
            "tenant" => tenant = Some(TenantId(between(name, value, 0..=65_535)? as u16)),
            // The node remembers requests for five seconds, and none is tried for longer.
            "timeout_ms" => {
                config.give_up_after = Duration::from_millis(between(name, value, 10..=4_500)?);
            }
            "window" => config.window = between(name, value, 1..=65_535)? as u32,
            _ => return Err(unknown(name, allowed.to_owned())),
        }
    }
    match (tenant, config.key) {
        (Some(tenant), Some(_)) if tenant != config.tenant => {
            let (found, allowed) = (tenant.0, config.tenant.0);
            let problem = format!("parameter `tenant`: `{found}`: the key allows {allowed} alone");
            return Err(not_allowed(problem));
        }
        (Some(tenant), _) => config.tenant = tenant,
        (None, _) => {}
    }
    Ok(config)
}

fn not_allowed(problem: String) -> OpenError {
    OpenError::NotAllowed { problem }
}

fn sim(parts: &Parts<'_>) -> Result<SimConfig, OpenError> {
    let unknown_fabric = || OpenError::UnknownFabric {
        fabric: parts.place.to_owned(),
        allowed: FABRIC_NAMES.join(", "),
    };
    let fabric = find(parts.place).ok_or_else(unknown_fabric)?;
    let keys: Vec<String> = Scenario::keys(FABRIC_NAMES).into_iter().map(|key| key.name).collect();
    let mut settings = vec![setting("", &format!("{FABRIC}={}", fabric.name))?];
    settings.push(setting("", MEMORY_ACCESS)?);
    let (mut memory_nodes, mut memory_bytes, mut background) = (None, None, false);
    for (name, value) in &parts.parameters {
        match name.as_str() {
            "memory_nodes" => memory_nodes = Some(number(name, value, 511)? as u16),
            "memory_bytes" => memory_bytes = Some(number(name, value, u64::MAX)?),
            _ => {
                let key = key(name, fabric.name, &keys)
                    .ok_or_else(|| unknown(name, names(&keys, fabric.name)))?;
                if key == FABRIC && value != fabric.name {
                    let problem = format!("`{value}`: the place says `{}`", fabric.name);
                    return Err(OpenError::BadParameter { name: name.clone(), problem });
                }
                background |= key == "workload.load";
                settings.push(setting(name, &format!("{key}={value}"))?);
            }
        }
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
    let memory_nodes = memory_nodes.unwrap_or(nodes / 2);
    if memory_nodes >= nodes {
        let problem = format!("{memory_nodes}: allowed are 1 to {} of {nodes} nodes", nodes - 1);
        return Err(OpenError::BadParameter { name: "memory_nodes".to_owned(), problem });
    }
    let memory_bytes = memory_bytes.unwrap_or(MEMORY_BYTES / u64::from(memory_nodes));
    Ok(SimConfig { fabric, scenario, background, memory_nodes, memory_bytes })
}

/// Lets the workload go on for as long as a workload may.
fn go_on(scenario: &mut Scenario) -> Result<(), OpenError> {
    let not_allowed = |error: SourceError| OpenError::NotAllowed { problem: error.to_string() };
    let offered = offered(scenario).map_err(not_allowed)?;
    if let (WorkloadConfig::Poisson(poisson), Some(offered)) = (&mut scenario.workload, offered) {
        poisson.messages = (offered.messages_per_s * BACKGROUND_S) as u64;
    }
    Ok(())
}

/// The key of a scenario that a parameter means: with its table or, of the network, the fabric,
/// the workload and the run, without.
fn key(name: &str, fabric: &str, keys: &[String]) -> Option<String> {
    let whole = std::iter::once(name.to_owned());
    let own = std::iter::once(format!("fabric.{fabric}.{name}"));
    let short = TABLES.iter().map(|table| format!("{table}.{name}"));
    whole.chain(short).chain(own).find(|candidate| keys.contains(candidate))
}

/// What may be given, as short as it may be.
fn names(keys: &[String], fabric: &str) -> String {
    let own = format!("fabric.{fabric}.");
    let short = |key: &String| {
        let tables = TABLES.iter().filter_map(|table| key.strip_prefix(table)?.strip_prefix('.'));
        let rest = key.strip_prefix(&own).or_else(|| tables.into_iter().next());
        rest.filter(|rest| !rest.contains('.')).map(str::to_owned)
    };
    let mut names: Vec<String> = keys.iter().filter_map(short).collect();
    names.extend(["memory_nodes".to_owned(), "memory_bytes".to_owned()]);
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

fn number(name: &str, value: &str, most: u64) -> Result<u64, OpenError> {
    between(name, value, 1..=most)
}

fn between(name: &str, value: &str, allowed: RangeInclusive<u64>) -> Result<u64, OpenError> {
    let found = value.parse().ok().filter(|number| allowed.contains(number));
    found.ok_or_else(|| OpenError::BadParameter {
        name: name.to_owned(),
        problem: format!("`{value}`: allowed are {} to {}", allowed.start(), allowed.end()),
    })
}

fn unknown(name: &str, allowed: String) -> OpenError {
    OpenError::UnknownParameter { name: name.to_owned(), allowed }
}

#[cfg(test)]
mod tests;
