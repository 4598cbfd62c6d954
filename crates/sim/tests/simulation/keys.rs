//! Every fabric with its own keys drawn from what the reference allows: a run ends, with every
//! message whole and none faster than alone, whatever a user sets.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;

use ethermem_sim::config::Topology;
use ethermem_sim::keys::Key;
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::WorkloadConfig;
use ethermem_sim::{Kind, registry};
use ethermem_units::Bytes;
use proptest::prelude::*;

use crate::invariants::{check, dfabric_floor, drawn};
use crate::programs;
use crate::support::{LINK_GBPS, run_scenario, scenario};

/// Messages of a run.
const MESSAGES: u64 = 200;
/// Keys that all fabrics share.
const SHARED: [&str; 6] = [
    "fabric.packet.",
    "fabric.transceiver_ns",
    "fabric.propagation_ns",
    "fabric.memory_access_ns",
    "fabric.pcs_clock_ns",
    "fabric.link_gbps",
];
/// Keys that lose messages by design.
const NOT_DRAWN: [&str; 4] = [
    "fabric.edm.read_timeout_us",
    "fabric.cxl_ethernet.give_up_us",
    "fabric.cxl_ethernet.loss_ppm",
    "fabric.dfabric.loss_ppm",
];

/// The values of a key, as the reference states them.
#[derive(Clone, Debug, PartialEq)]
enum Domain {
    /// One of these texts.
    OneOf(Vec<String>),
    /// A multiple of a step, or 0 if that is allowed, too.
    Whole { range: RangeInclusive<u64>, step: u64 },
    /// A power of two, or 0 if that is allowed, too.
    PowerOfTwo { range: RangeInclusive<u64>, zero: bool },
    /// Any number.
    Real(RangeInclusive<f64>),
}

impl Domain {
    /// The domain of a column "allowed".
    fn of(allowed: &str, is_whole: bool) -> Domain {
        let automatic = allowed.strip_prefix("\"auto\", ");
        // What a fabric chooses by itself is a number of something.
        let (allowed, is_whole) = (automatic.unwrap_or(allowed), is_whole || automatic.is_some());
        let (zero, rest) = match allowed.strip_prefix("0, ") {
            Some(rest) if rest.contains(" to ") => (true, rest),
            _ => (false, allowed),
        };
        let Some((first, last)) = rest.rsplit_once(" to ") else {
            return Domain::OneOf(allowed.split(", ").map(str::to_owned).collect());
        };
        // What depends on another key is drawn from what that key's default allows.
        let last = match last {
            "fifo_entries" => "512",
            "nodes - 1" => "1",
            last => last,
        };
        let low = first.rsplit(' ').next().expect("a number");
        let whole = || match (low.parse(), last.parse()) {
            (Ok(low), Ok(high)) => low..=high,
            _ => panic!("not a range: {allowed}"),
        };
        if allowed.contains("power") {
            return Domain::PowerOfTwo { range: whole(), zero };
        }
        if let Some(multiple) = rest.strip_prefix("a multiple of ") {
            let step = multiple.split(' ').next().and_then(|step| step.parse().ok());
            return Domain::Whole { range: whole(), step: step.expect("a step") };
        }
        if is_whole || zero {
            return Domain::Whole { range: whole(), step: 1 };
        }
        match (low.parse(), last.parse()) {
            (Ok(low), Ok(high)) => Domain::Real(low..=high),
            _ => panic!("not a range: {allowed}"),
        }
    }

    /// Without the values at which a run takes long, because it simulates long: a timer shorter
    /// than a round trip repeats what is on its way; a slow memory is asked again and again. And
    /// without buffers that the burst of one message overflows: its losses may cost it more alone
    /// than in company, which has made its window smaller.
    fn without_extremes(self, key: &str) -> Domain {
        let key = key.rsplit('.').next().unwrap_or(key);
        match self {
            Domain::Real(range) => {
                let (low, high) = (*range.start(), *range.end());
                Domain::Real(match key {
                    key if key.ends_with("_us") => low.max(100.0)..=high.min(2_000.0),
                    key if key.ends_with("clock_ns") => low..=high.min(50.0),
                    key if key.ends_with("_ns") => low..=high.min(5_000.0),
                    "device_gbps" | "local_gbps" => 1.0..=high,
                    _ => low..=high,
                })
            }
            Domain::Whole { range, step } => {
                let (low, high) = (*range.start(), *range.end());
                let low = match key {
                    "buffer_bytes" | "port_bytes" => low.max(100_000),
                    "queue_packets" => low.max(8),
                    _ => low,
                };
                Domain::Whole { range: low..=high, step }
            }
            other => other,
        }
    }

    /// A value: an eighth each are the least and the greatest, the others are spread over orders of
    /// magnitude.
    fn value(&self, draw: u64) -> String {
        let unit = (draw >> 11) as f64 / (1_u64 << 53) as f64;
        let edge = draw % 8;
        match self {
            Domain::OneOf(choices) => choices[(unit * choices.len() as f64) as usize].clone(),
            Domain::Whole { range, step } => {
                let (low, high) = (*range.start(), *range.end());
                let spread = ((high - low) as f64 + 1.0).powf(unit) - 1.0;
                let value = match edge {
                    0 => low,
                    1 => high,
                    _ => high.min(low + spread as u64),
                };
                (value / step * step).to_string()
            }
            Domain::PowerOfTwo { zero: true, .. } if edge == 0 => "0".to_owned(),
            Domain::PowerOfTwo { range, .. } => {
                let (low, high) = (range.start().ilog2(), range.end().ilog2());
                let shift = low + (f64::from(high - low + 1) * unit) as u32;
                (1_u64 << shift).to_string()
            }
            Domain::Real(range) => {
                let (low, high) = (*range.start(), *range.end());
                let floor = low.max(high * 1e-6);
                let value = match edge {
                    0 => low,
                    1 => high,
                    _ => floor * (high / floor).powf(unit),
                };
                // Values are read to the picosecond or to the third place.
                format!("{:.3}", value.clamp(low, high))
            }
        }
    }
}

/// Names of keys, and their values.
type Keys = Vec<(String, Domain)>;

/// The keys of a fabric, and the shared ones.
fn keys_of(fabric: &str) -> (Keys, Keys) {
    let own = format!("fabric.{}.", fabric.replace('-', "_"));
    let all = Scenario::keys(&[fabric]);
    let drawn = |name: &str| !NOT_DRAWN.contains(&name);
    let domain = |key: &Key| {
        let domain = Domain::of(&key.allowed, key.is_whole).without_extremes(&key.name);
        (key.name.clone(), domain)
    };
    let of = |wanted: &dyn Fn(&str) -> bool| {
        let keys = all.iter().filter(|key| drawn(&key.name) && wanted(&key.name));
        keys.map(domain).collect::<Keys>()
    };
    let is_shared = |name: &str| SHARED.iter().any(|shared| name.starts_with(shared));
    (of(&|name| name.starts_with(&own)), of(&is_shared))
}

/// A fabric, and its table with drawn keys, without the number of nodes.
fn fabrics() -> impl Strategy<Value = (&'static str, String)> {
    let fabric = prop::sample::select(registry::FABRIC_NAMES);
    let keys = prop::collection::vec((any::<bool>(), any::<u16>(), any::<u64>()), 1..=4);
    let network = (prop::sample::select(&LINK_GBPS[..]), 0..=5_u16, any::<u16>());
    (fabric, keys, network).prop_map(|(fabric, keys, (gbps, rack, spines))| {
        let (own, shared) = keys_of(fabric);
        let mut set = BTreeMap::from([("fabric.link_gbps", gbps.to_string())]);
        for &(is_shared, at, draw) in &keys {
            let of = if is_shared || own.is_empty() { &shared } else { &own };
            let (name, domain) = &of[usize::from(at) % of.len()];
            set.insert(name, domain.value(draw));
        }
        if rack > 0 {
            set.insert("fabric.topology", "\"leaf-spine\"".to_owned());
            set.insert("fabric.leaf_spine.rack_nodes", rack.to_string());
            set.insert("fabric.leaf_spine.spines", (1 + spines % rack).to_string());
        }
        // An access is not given up.
        if fabric == "cxl-ethernet" {
            set.insert("fabric.cxl_ethernet.give_up_us", "1000000".to_owned());
        }
        let lines = set.iter().map(|(key, value)| format!("{key} = {value}\n"));
        (fabric, format!("fabric.kind = \"{fabric}\"\n{}", lines.collect::<String>()))
    })
}

/// A fabric, and a scenario for it.
fn scenarios() -> impl Strategy<Value = (&'static str, String)> {
    let background = prop_oneof![2 => Just(0), 1 => 1..=25_u32];
    let pattern = prop::sample::select(&["all-to-all", "incast", "permutation"][..]);
    let bytes = prop_oneof![1..=64_u64, 1..=1_500_u64, 1_400..=6_000_u64, 1..=100_000_u64];
    let workload = (pattern, bytes, 5..=74_u32, 0..=4_u32, 1..1_000_000_u64);
    (fabrics(), 2..=12_u16, background, workload).prop_map(
        |((fabric, keys), nodes, background, (pattern, bytes, load, reads, seed))| {
            let text = format!(
                "{keys}fabric.nodes = {nodes}\nbackground.load = 0.{background:02}\n[workload]\n\
                 pattern = \"{pattern}\"\nload = 0.{load:02}\nmessage_bytes = {bytes}\n\
                 read_fraction = {}\nmessages = {MESSAGES}\n[run]\n\
                 seed = {seed}\nwarmup_fraction = 0\ncooldown_fraction = 0\n",
                f64::from(reads) / 4.0,
            );
            (fabric, text)
        },
    )
}

/// The scenario of a text, on one switch where the fabric has no other; `None` where keys do not
/// fit together, which is refused.
fn fitting(fabric: &str, text: &str) -> Option<Scenario> {
    let mut scenario = Scenario::parse(text, Path::new("keys.toml"), &[fabric]).ok()?;
    if registry::find(fabric).expect("of the registry").check(&scenario).is_err() {
        scenario.fabric.topology = Topology::SingleSwitch;
    }
    Some(scenario)
}

/// The least slowdown on a fabric of the messages of a scenario, which have one size.
fn floor(scenario: &Scenario, fabric: &str) -> f64 {
    let entry = registry::find(fabric).expect("of the registry");
    let config = &scenario.fabric;
    let WorkloadConfig::Poisson(poisson) = &scenario.workload else { unreachable!("synthetic") };
    if entry.is_bound {
        // It is held against the scenario's own fabric, and may be faster.
        return 0.0;
    }
    if fabric == "dfabric" {
        return dfabric_floor(scenario);
    }
    let bytes = poisson.sizes.mean_bytes() as u64;
    let mut least: f64 = 1.0;
    for kind in [Kind::Read, Kind::Write] {
        let alone = |bytes| (entry.alone)(config, kind, Bytes(bytes)).0 as f64;
        let mut left = alone(bytes);
        // On spines, the last packet, which is shorter, may overtake the one before it.
        if matches!(config.topology, Topology::LeafSpine(_)) {
            left = left.min(alone(bytes.saturating_sub(config.packet.mtu.0).max(1)));
        }
        // A packet in company may carry an acknowledgement that goes alone, and first, alone.
        if matches!(fabric, "tcp" | "dctcp" | "tor-rack") {
            let acknowledgement = Bytes(128 + 84).to_blocks();
            left -= (config.link.block_time() * acknowledgement.0 * 4).0 as f64;
        }
        least = least.min(left / alone(bytes));
    }
    least
}

#[test]
fn domains_are_what_the_reference_says() {
    let whole = |range, step| Domain::Whole { range, step };
    for (allowed, is_whole, expected) in [
        ("0 to 128", true, whole(0..=128, 1)),
        ("0.001 to 1000", false, Domain::Real(0.001..=1_000.0)),
        ("a multiple of 64 from 64 to 1024", true, whole(64..=1_024, 64)),
        ("\"auto\", 1 to 512", false, whole(1..=512, 1)),
        ("0, 1000 to 1000000000", false, whole(1_000..=1_000_000_000, 1)),
        ("powers of two from 2 to 4096", false, {
            Domain::PowerOfTwo { range: 2..=4_096, zero: false }
        }),
        ("0, or a power of two from 256 to 1024", false, {
            Domain::PowerOfTwo { range: 256..=1_024, zero: true }
        }),
        ("a power of two, 4 to 65536", false, {
            Domain::PowerOfTwo { range: 4..=65_536, zero: false }
        }),
        ("68, 256", false, Domain::OneOf(vec!["68".to_owned(), "256".to_owned()])),
    ] {
        assert_eq!(Domain::of(allowed, is_whole), expected, "{allowed}");
    }
    // Every key of every fabric has a domain.
    for fabric in registry::FABRIC_NAMES {
        let (own, shared) = keys_of(fabric);
        assert!(shared.len() > 5, "{fabric}: {} keys", own.len());
    }
}

#[test]
fn a_time_alone_depends_neither_on_earlier_ones_nor_on_luck() {
    for (fabric, keys, bytes) in [
        ("clio", "clio.clock_ns = 491.745", 40_000),
        ("clio", "packet.stack_ns = 1000000", 40_000),
        ("tcp", "packet.mtu_bytes = 268\ntcp.ack_delay_us = 1000000", 40_000),
        ("dctcp", "dctcp.ack_delay_us = 5000", 40_000),
        ("tor-rack", "tor_rack.ack_delay_us = 3350", 40_000),
        ("cxl-ethernet", "cxl_ethernet.fifo_threshold = 0", 40_000),
        ("roce", "topology = \"leaf-spine\"\nleaf_spine.balancing = \"spray\"", 4_800),
    ] {
        let scenario = scenario(&format!(
            "[fabric]\nkind = \"{fabric}\"\nnodes = 4\n{keys}\nleaf_spine.rack_nodes = 2\n\
             leaf_spine.spines = 2\n[workload]\nload = 0.3\nmessage_bytes = {bytes}\n\
             messages = {MESSAGES}\n[run]\nwarmup_fraction = 0\ncooldown_fraction = 0"
        ));
        let result = check(&scenario, fabric, &drawn(&scenario));
        let least = result.kinds.all.slowdown_min.expect("measured");
        let floor = floor(&scenario, fabric);
        assert!(least >= floor, "{fabric} with {keys}: slowdown {least}, and {floor} at least");
    }
}

#[test]
fn a_rack_without_references_waits_for_one() {
    // Devices are ten thousand times too slow: 131,072 received packets wait for their loads.
    let scenario = scenario(
        "[fabric]\nnodes = 4\npacket.memory_header_bytes = 0\n[fabric.dfabric]\n\
         device_gbps = 0.01\nbuffer_bytes = 1024\n[workload]\npattern = \"incast\"\nload = 0.06\n\
         message_bytes = 40000\nread_fraction = 0.75\nmessages = 50",
    );
    let result = run_scenario(&scenario, "dfabric", None);
    assert_eq!((result.messages_finished, result.messages_lost), (50, 0));
}

proptest! {
    #![proptest_config(crate::property::cases(192))]

    #[test]
    fn a_fabric_finishes_every_message_whatever_its_keys((fabric, text) in scenarios()) {
        // Keys that do not fit together are refused, which is tested with each of them.
        let Some(scenario) = fitting(fabric, &text) else { return Ok(()) };
        let result = check(&scenario, fabric, &drawn(&scenario));
        let least = result.kinds.all.slowdown_min.expect("measured");
        let floor = floor(&scenario, fabric);
        prop_assert!(least >= floor, "slowdown {least}, and {floor} at least");
    }

    #[test]
    fn a_program_ends_whatever_the_keys_of_its_fabric(
        (fabric, keys) in fabrics(),
        (nodes, program) in programs::programs(),
        seed in any::<u32>(),
    ) {
        let text = format!(
            "{keys}fabric.nodes = {nodes}\n[workload]\nkind = \"program\"\n[workload.program]\n\
             {program}\n[run]\nseed = {seed}\n"
        );
        let Some(scenario) = fitting(fabric, &text) else { return Ok(()) };
        programs::check(&scenario, &programs::graph(&scenario), fabric);
    }
}
