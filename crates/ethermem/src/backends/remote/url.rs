//! Parameters of `udp:`, `ring:` and `node:` URLs.

use std::path::Path;
use std::time::Duration;

use ethermem_udp::seal::KeyFile;
use ethermem_udp::{INTERFACES_MAX, NoRingPlace};
use ethermem_units::Bytes;
use ethermem_wire::clio::TenantId;

use super::{RemoteConfig, Way};
use crate::open_error::OpenError;
use crate::scheme::{Parameters, Url};

/// Reads a URL of `node:`.
pub(super) fn node(url: &Url<'_>) -> Result<RemoteConfig, OpenError> {
    let host = host("node", url)?.to_owned();
    let parameters = url.parameters()?;
    let bad = |error: NoRingPlace| OpenError::BadParameter {
        name: "ring".to_owned(),
        problem: error.to_string(),
    };
    let ring = parameters.text("ring").map(|place| place.parse().map_err(bad)).transpose()?;
    remote(&parameters, Way::Quicker { host, ring })
}

/// Reads a URL of `udp:`.
pub(super) fn udp(url: &Url<'_>) -> Result<RemoteConfig, OpenError> {
    let host = host("udp", url)?.to_owned();
    let parameters = url.parameters()?;
    let via = parameters.text("via").map(interfaces).transpose()?.unwrap_or_default();
    Ok(RemoteConfig { via, ..remote(&parameters, Way::Udp(host))? })
}

/// Names of interfaces, with commas between them. That they exist is checked when they are used.
fn interfaces(text: &str) -> Result<Vec<String>, OpenError> {
    let names: Vec<&str> = text.split(',').collect();
    let twice = (1..names.len()).find(|&at| names[..at].contains(&names[at]));
    let problem = if names.contains(&"") {
        "must be names of interfaces with commas between".to_owned()
    } else if names.len() > INTERFACES_MAX {
        format!("{} interfaces: must be 1 to {INTERFACES_MAX}", names.len())
    } else if let Some(at) = twice {
        format!("`{}` is given twice", names[at])
    } else {
        return Ok(names.into_iter().map(str::to_owned).collect());
    };
    let problem = format!("`{text}`: {problem}");
    Err(OpenError::BadParameter { name: "via".to_owned(), problem })
}

/// Reads a URL of `ring:`.
pub(super) fn ring(url: &Url<'_>) -> Result<RemoteConfig, OpenError> {
    let place = authority(url).and_then(|place| place.parse().ok());
    let no_place = || OpenError::NoRing { found: url.place.to_owned() };
    let place = place.ok_or_else(no_place)?;
    remote(&url.parameters()?, Way::Ring(place))
}

/// `HOST:PORT`, behind `scheme://`.
fn host<'u>(scheme: &'static str, url: &Url<'u>) -> Result<&'u str, OpenError> {
    let is_host = |host: &str| match host.strip_prefix('[') {
        Some(v6) => v6.strip_suffix(']').is_some_and(|v6| v6.contains(':')),
        // An unbracketed IPv6 address leaves open where its port begins.
        None => !host.is_empty() && !host.contains(':'),
    };
    let is_node = |node: &&str| {
        let port = node.rsplit_once(':').filter(|(host, _)| is_host(host));
        port.is_some_and(|(_, port)| port.parse::<u16>().is_ok_and(|port| port > 0))
    };
    let no_node = || OpenError::NoNode { scheme, found: url.place.to_owned() };
    authority(url).filter(is_node).ok_or_else(no_node)
}

/// The text behind `scheme://`.
fn authority<'u>(url: &Url<'u>) -> Option<&'u str> {
    url.place.strip_prefix("//").map(|node| node.strip_suffix('/').unwrap_or(node))
}

fn remote(parameters: &Parameters<'_>, way: Way) -> Result<RemoteConfig, OpenError> {
    let number = |name| parameters.number(name).unwrap_or_default();
    let given = parameters.number("tenant").map(|tenant| TenantId(tenant as u16));
    let key = parameters.text("key").map(|file| KeyFile::read(Path::new(file))).transpose();
    let key = key.map_err(|error| not_allowed(format!("parameter `key`: {error}")))?;
    // A node in clear knows one tenant, and answers no other.
    let tenant = key.as_ref().map_or(TenantId(0), |key| key.tenant);
    if let Some(TenantId(given)) = given.filter(|given| *given != tenant) {
        let problem = match key {
            Some(_) => format!("the key allows {} alone", tenant.0),
            None => "must be 0 without a key".to_owned(),
        };
        return Err(not_allowed(format!("parameter `tenant`: `{given}`: {problem}")));
    }
    Ok(RemoteConfig {
        way,
        via: Vec::new(),
        tenant,
        key: key.map(|file| file.key),
        datagram_bytes_max: parameters.number("datagram_bytes").map(|bytes| bytes as usize),
        window: number("window") as u32,
        incast_window: Bytes(number("incast_bytes")),
        give_up_after: Duration::from_millis(number("timeout_ms")),
        poll_for: Duration::from_micros(number("poll_us")),
    })
}

fn not_allowed(problem: String) -> OpenError {
    OpenError::NotAllowed { problem }
}

#[cfg(test)]
mod tests;
