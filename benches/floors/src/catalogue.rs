//! What is measured, and beside which floor.

use crate::probes::Probe;
use crate::probes::node::{NodeProbe, OneOperation};
use crate::probes::pool::{PoolOperation, PoolProbe};
use crate::probes::program::{FI_RMA, RING, Run};
use crate::probes::relay::Loss;
use crate::probes::store::{OneConnection, RedisBenchmark, Store, Verb};
use crate::probes::udp::Exchange;

/// A line of the table.
pub(crate) struct Case {
    pub(crate) name: String,
    /// The name of the floor that has the same bytes.
    pub(crate) floor: Option<String>,
    /// Samples of a round, as a share of those asked for: where one is many operations.
    pub(crate) samples_divisor: u32,
    pub(crate) probe: Box<dyn Probe>,
}

const WINDOW: u16 = 64;
/// Reads that are one operation, of which so many are under way that the window is full.
const GATHERED: u16 = 32;
/// Loss on the path to a node that loses datagrams.
const LOSS: Loss = Loss { ppm: 10_000, seed: 1 };
/// Operations of a sample of `fi_rma` with a window: its `BATCH`.
const FI_BATCH: u64 = 128;

/// Floors first.
pub(crate) fn all(interface: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    let shapes = [(64, 64), (64, 4096), (4096, 64)];
    let udp = |(request_bytes, response_bytes), window| {
        let probe = Exchange { request_bytes, response_bytes, window };
        case(udp_name((request_bytes, response_bytes), window), None, probe)
    };
    cases.extend(shapes.map(|shape| udp(shape, 1)));
    cases.extend([(64, 64), (64, 4096)].map(|shape| udp(shape, WINDOW).with_batches(100)));
    cases.extend(shapes.map(|(request, response)| {
        let before = vec![interface.to_owned(), request.to_string(), response.to_string()];
        let probe = Run { program: &RING, before, window: None, batch: 1 };
        let floor = Some(udp_name((request, response), 1));
        case(ring_name((request, response)), floor, probe)
    }));
    let node = |name: &str, shape, operation: OneOperation| {
        let probe = NodeProbe { operation, encrypted: false };
        case(format!("ethermem node, {name}"), Some(udp_name(shape, 1)), probe)
    };
    let encrypted = |name: &str, shape, operation: OneOperation| {
        let probe = NodeProbe { operation, encrypted: true };
        case(format!("ethermem node, {name}, encrypted"), Some(udp_name(shape, 1)), probe)
    };
    cases.extend([
        node("read 64 B", (64, 64), OneOperation::Read(64)),
        node("read 4096 B", (64, 4096), OneOperation::Read(4096)),
        node("write 64 B", (64, 64), OneOperation::Write(64)),
        node("fetch-and-add", (64, 64), OneOperation::FetchAndAdd),
        encrypted("read 64 B", (64, 64), OneOperation::Read(64)),
        encrypted("read 4096 B", (64, 4096), OneOperation::Read(4096)),
        encrypted("write 64 B", (64, 64), OneOperation::Write(64)),
    ]);
    cases.extend(pools());
    for provider in ["tcp;ofi_rxm", "udp;ofi_rxd"] {
        cases.extend(libfabric(provider));
    }
    cases.extend(stores());
    cases
}

fn udp_name((request, response): (u16, u16), window: u16) -> String {
    match window {
        1 => format!("F: udp, {request} -> {response} B"),
        _ => format!("F: udp, {request} -> {response} B, window {window}"),
    }
}

fn ring_name((request, response): (u16, u16)) -> String {
    format!("R: ring, {request} -> {response} B")
}

fn case(name: String, floor: Option<String>, probe: impl Probe + 'static) -> Case {
    Case { name, floor, samples_divisor: 1, probe: Box::new(probe) }
}

impl Case {
    fn with_batches(mut self, divisor: u32) -> Case {
        self.samples_divisor = divisor;
        self
    }
}

/// Beside the floor of the same bytes.
fn pools() -> Vec<Case> {
    let clear = |operation| PoolProbe {
        operation,
        encrypted: false,
        datagram_bytes: None,
        loss: None,
        ring: false,
    };
    let sealed = |operation| PoolProbe { encrypted: true, ..clear(operation) };
    let named = |name: &str, probe: PoolProbe| {
        let encrypted = if probe.encrypted { ", encrypted" } else { "" };
        let datagrams = probe.datagram_bytes.map(|bytes| format!(", datagrams of {bytes} B"));
        let over = if probe.ring { " over ring" } else { "" };
        format!("ethermem pool{over}, {name}{}{encrypted}", datagrams.unwrap_or_default())
    };
    let one = |name: &str, shape, probe: PoolProbe| {
        let floor = if probe.ring { ring_name(shape) } else { udp_name(shape, 1) };
        case(named(name, probe), Some(floor), probe)
    };
    let ring = |probe| PoolProbe { ring: true, ..probe };
    let reads = |bytes| PoolOperation::Reads { bytes, window: WINDOW, places: 1 };
    let gathers = |bytes| PoolOperation::Reads { bytes, window: WINDOW, places: GATHERED };
    let many = |bytes: u16, probe: PoolProbe| {
        let by = match probe.operation {
            PoolOperation::Reads { places: GATHERED, .. } => format!(" by gathers of {GATHERED}"),
            _ => String::new(),
        };
        let name = named(&format!("read {bytes} B, window {WINDOW}{by}"), probe);
        case(name, Some(udp_name((64, bytes), WINDOW)), probe).with_batches(100)
    };
    let lossy = || {
        let loss = Some(LOSS);
        let name = format!(
            "ethermem pool, read 64 B, {} % lost each way (seed {})",
            f64::from(LOSS.ppm) / 1e4,
            LOSS.seed
        );
        case(name, None, PoolProbe { loss, ..clear(PoolOperation::Read(64)) })
    };
    let ethernet = |operation| PoolProbe { datagram_bytes: Some(1472), ..clear(operation) };
    vec![
        one("read 64 B", (64, 64), clear(PoolOperation::Read(64))),
        one("read 4096 B", (64, 4096), clear(PoolOperation::Read(4096))),
        one("write 64 B", (64, 64), clear(PoolOperation::Write(64))),
        one("write 4096 B", (4096, 64), clear(PoolOperation::Write(4096))),
        one("compare-and-swap", (64, 64), clear(PoolOperation::CompareAndSwap)),
        one("fetch-and-add", (64, 64), clear(PoolOperation::FetchAndAdd)),
        one("lock", (64, 64), clear(PoolOperation::Lock)),
        one("read 64 B", (64, 64), sealed(PoolOperation::Read(64))),
        one("read 4096 B", (64, 4096), sealed(PoolOperation::Read(4096))),
        one("write 64 B", (64, 64), sealed(PoolOperation::Write(64))),
        many(64, clear(reads(64))),
        many(4096, clear(reads(4096))),
        many(64, clear(gathers(64))),
        many(4096, clear(gathers(4096))),
        many(64, ethernet(reads(64))),
        many(4096, ethernet(reads(4096))),
        many(64, sealed(reads(64))),
        many(4096, sealed(reads(4096))),
        lossy(),
        one("read 64 B", (64, 64), ring(clear(PoolOperation::Read(64)))),
        one("read 4096 B", (64, 4096), ring(clear(PoolOperation::Read(4096)))),
        one("write 4096 B", (4096, 64), ring(clear(PoolOperation::Write(4096)))),
        one("read 64 B", (64, 64), ring(sealed(PoolOperation::Read(64)))),
        many(64, ring(clear(reads(64)))),
        many(4096, ring(clear(reads(4096)))),
        many(64, ring(clear(gathers(64)))),
        many(4096, ring(clear(gathers(4096)))),
    ]
}

fn libfabric(provider: &'static str) -> Vec<Case> {
    let run = |verb: &str, bytes: u16, window: u32| {
        let before = vec![provider.to_owned(), verb.to_owned(), bytes.to_string()];
        let batch = if window > 1 { FI_BATCH } else { 1 };
        Run { program: &FI_RMA, before, window: Some(window), batch }
    };
    let one = |verb: &str, bytes, shape| {
        let name = format!("libfabric {provider}, {verb} {bytes} B");
        case(name, Some(udp_name(shape, 1)), run(verb, bytes, 1)).with_batches(4)
    };
    let many = |bytes| {
        let name = format!("libfabric {provider}, read {bytes} B, window {WINDOW}");
        let floor = Some(udp_name((64, bytes), WINDOW));
        case(name, floor, run("read", bytes, WINDOW.into())).with_batches(200)
    };
    vec![
        one("read", 64, (64, 64)),
        one("read", 4096, (64, 4096)),
        one("write", 64, (64, 64)),
        many(64),
        many(4096),
    ]
}

fn stores() -> Vec<Case> {
    let one = |store, verb, value_bytes: u16, one_cpu| {
        let name = match store {
            Store::Redis => "redis",
            Store::Memcached => "memcached",
        };
        let (verb_name, shape) = match verb {
            Verb::Get => ("GET", (64, value_bytes)),
            Verb::Set => ("SET", (value_bytes, 64)),
        };
        let cpus = if one_cpu { "one CPU" } else { "two CPUs" };
        let name = format!("{name} {verb_name} {value_bytes} B, {cpus}");
        let probe = OneConnection { store, verb, value_bytes: value_bytes.into(), one_cpu };
        case(name, Some(udp_name(shape, 1)), probe).with_batches(4)
    };
    let pipelined = |value_bytes: u16, pipeline: u32| {
        let name = format!("redis-benchmark GET {value_bytes} B, pipeline {pipeline}");
        let floor = Some(udp_name((64, value_bytes), WINDOW));
        case(name, floor, RedisBenchmark { value_bytes: value_bytes.into(), pipeline })
    };
    vec![
        one(Store::Redis, Verb::Get, 64, true),
        one(Store::Redis, Verb::Get, 4096, true),
        one(Store::Redis, Verb::Set, 64, true),
        one(Store::Redis, Verb::Get, 64, false),
        one(Store::Memcached, Verb::Get, 64, true),
        one(Store::Memcached, Verb::Get, 4096, true),
        one(Store::Memcached, Verb::Set, 64, true),
        one(Store::Memcached, Verb::Get, 64, false),
        pipelined(64, 16),
        pipelined(4096, 16),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_floor_is_measured_before_what_stands_beside_it() {
        let cases = all("lo");
        for (at, case) in cases.iter().enumerate() {
            let named = |other: &Case| other.name == case.name;
            assert_eq!(cases.iter().position(named), Some(at), "{} is there twice", case.name);
            if let Some(floor) = &case.floor {
                assert!(cases[..at].iter().any(|other| other.name == *floor), "{}", case.name);
            }
        }
    }
}
