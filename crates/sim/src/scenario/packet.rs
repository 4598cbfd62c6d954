//! `fabric.topology` with its table, and the tables of fabrics of packets.

use ethermem_units::{BitsPerSecond, Bytes, Ps};

use super::fabric::{delay_ns, timeout_us};
use super::receiver_driven;
use super::table::{Table, as_integer, as_number};
use crate::config::FabricConfig;
use crate::fabrics::dctcp::DctcpConfig;
use crate::fabrics::ndp::{NdpConfig, PullOrder};
use crate::fabrics::pfabric::PfabricConfig;
use crate::fabrics::pfc::{PfcConfig, Thresholds};
use crate::fabrics::roce::RoceConfig;
use crate::fabrics::tcp::TcpConfig;
use crate::packet::{DOUBLINGS_MAX, PacketConfig, RenoConfig};
use crate::topology::{Balancing, LeafSpine, Switching, Topology};
use crate::workload::InputError;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    SingleSwitch,
    LeafSpine,
}

/// How nodes with links of this rate are joined.
pub(super) fn topology(fabric: &Table<'_>, link: BitsPerSecond) -> Result<Topology, InputError> {
    let names = [("single-switch", Name::SingleSwitch), ("leaf-spine", Name::LeafSpine)];
    let name = fabric.choice("topology", &names)?;
    let table = fabric.table("leaf_spine")?;
    let rack_nodes = table.integer("rack_nodes", 16, 1..=512)? as u16;
    let spines = table.integer("spines", 4, 1..=64)? as u16;
    let propagation = delay_ns(&table, "propagation_ns", 10)?;
    let balancings =
        [("ecmp", Balancing::Ecmp), ("spray", Balancing::Spray), ("permute", Balancing::Permute)];
    let balancing = table.choice_or("balancing", "by fabric.kind", &balancings)?;
    if name == Name::SingleSwitch {
        table.finish()?;
        return Ok(Topology::SingleSwitch);
    }
    // A leaf's links to the spines carry what its nodes' links do, and their blocks take whole
    // picoseconds.
    let slots = link.block_time().0 * u64::from(spines);
    if spines > rack_nodes || !slots.is_multiple_of(rack_nodes.into()) {
        let problem = format!(
            "with fabric.leaf_spine.rack_nodes = {rack_nodes} a leaf's links have no rate: allowed \
             are at most as many spines as nodes of a rack, a block of whose links takes whole \
             picoseconds"
        );
        return Err(table.error("spines", problem));
    }
    table.finish()?;
    Ok(Topology::LeafSpine(LeafSpine { rack_nodes, spines, propagation, balancing }))
}

pub(super) fn read(fabric: &Table<'_>) -> Result<PacketConfig, InputError> {
    let default = PacketConfig::default();
    let table = fabric.table("packet")?;
    let switchings =
        [("store-and-forward", Switching::StoreAndForward), ("cut-through", Switching::CutThrough)];
    let config = PacketConfig {
        mtu: bytes(&table, "mtu_bytes", default.mtu, (256, 9_000))?,
        memory_header: bytes(&table, "memory_header_bytes", default.memory_header, (0, 64))?,
        forwarding: delay_ns(&table, "forwarding_ns", 400)?,
        switching: table.choice("switching", &switchings)?,
        stack: table.read("stack_ns", "by fabric.kind", "0 to 1000000", |value| {
            Ps::from_ns_f64(as_number(value).filter(|ns| (0.0..=1e6).contains(ns))?)
        })?,
        clio: super::clio::read(fabric.table("clio")?)?,
        dctcp: dctcp(fabric.table("dctcp")?)?,
        homa: receiver_driven::homa(fabric.table("homa")?)?,
        ndp: ndp(fabric.table("ndp")?)?,
        pfabric: pfabric(fabric.table("pfabric")?)?,
        pfc: pfc(fabric.table("pfc")?)?,
        phost: receiver_driven::phost(fabric.table("phost")?)?,
        roce: roce(fabric.table("roce")?)?,
        tcp: tcp(fabric.table("tcp")?)?,
    };
    table.finish()?;
    Ok(config)
}

fn dctcp(table: Table<'_>) -> Result<DctcpConfig, InputError> {
    let default = DctcpConfig::default();
    let config = DctcpConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        ecn_threshold: bytes(&table, "ecn_threshold_bytes", default.ecn_threshold, BUFFER_BYTES)?,
        gain: table.number("gain", default.gain, 0.0..=1.0)?,
        alpha_initial: table.number("alpha_initial", default.alpha_initial, 0.0..=1.0)?,
        window_packets_min: packets(&table, "window_packets_min", default.window_packets_min)?,
        reno: reno(&table, &default.reno)?,
    };
    table.finish()?;
    Ok(config)
}

fn ndp(table: Table<'_>) -> Result<NdpConfig, InputError> {
    let default = NdpConfig::default();
    let window = "a bandwidth-delay product and queue_packets";
    let orders = [("fair", PullOrder::Fair), ("fewest-missing", PullOrder::FewestMissing)];
    let per_data = default.headers_per_data.into();
    let config = NdpConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        queue_packets: table.integer("queue_packets", default.queue_packets.into(), 1..=10_000)?
            as u32,
        header_queue: buffer_or(&table, "header_queue_bytes", "the room of queue_packets", 1_000)?,
        headers_per_data: table.integer("headers_per_data", per_data, 1..=1_000)? as u32,
        trim_arriving: table.number("trim_arriving_fraction", default.trim_arriving, 0.0..=1.0)?,
        window_packets_initial: window_or(&table, "window_packets_initial", window)?,
        pull_order: table.choice("pull_order", &orders)?,
        timeout: timeout_us(&table, "rto_us", default.timeout)?,
    };
    table.finish()?;
    Ok(config)
}

fn pfabric(table: Table<'_>) -> Result<PfabricConfig, InputError> {
    let default = PfabricConfig::default();
    let header = bytes(&table, "header_bytes", default.header, (0, 128))?;
    let buffer_default = "2 bandwidth-delay products";
    let buffer = buffer_or(&table, "buffer_bytes", buffer_default, BUFFER_BYTES.0)?;
    let window = |key, default| window_or(&table, key, default);
    let config = PfabricConfig {
        header,
        buffer,
        window_packets_initial: window("window_packets_initial", "a bandwidth-delay product")?,
        window_packets_max: window("window_packets_max", "1.25 of the initial one")?,
        timeout: table.read("rto_us", "3 round trips", "0.001 to 1000000", |value| {
            let us = as_number(value).filter(|us| (0.001..=1e6).contains(us))?;
            Ps::from_ns_f64(us * 1e3)
        })?,
        probe_after: table.integer("probe_after", default.probe_after.into(), 1..=1_000)? as u32,
        acknowledgements_first: table
            .flag("acknowledgements_first", default.acknowledgements_first)?,
    };
    table.finish()?;
    Ok(config)
}

fn pfc(table: Table<'_>) -> Result<PfcConfig, InputError> {
    let default = PfcConfig::default();
    let bytes_or = |key, at_40_gbps: &str, (least, most): (u64, u64)| {
        let allowed = format!("{least} to {most}");
        let read = |bytes: &u64| (least..=most).contains(bytes);
        let given = table.read(key, at_40_gbps, &allowed, |value| as_integer(value).filter(read));
        given.map(|bytes| bytes.map(Bytes))
    };
    let mbps = |key, default| {
        let read = |mbps: &f64| (0.001..=1e6).contains(mbps);
        table.read(key, default, "0.001 to 1000000", |value| as_number(value).filter(read))
    };
    let stages = default.recovery_stages.into();
    let header = bytes(&table, "header_bytes", default.header, (0, 128))?;
    let names = [("static", Thresholds::Static), ("dynamic", Thresholds::Dynamic)];
    let thresholds = table.choice("thresholds", &names)?;
    for (keys, of, name) in [
        (&["xoff_bytes", "xon_bytes"][..], Thresholds::Static, "static"),
        (&["alpha", "buffer_bytes", "xon_offset_bytes"], Thresholds::Dynamic, "dynamic"),
    ] {
        for key in keys {
            table.only(key, &format!("with thresholds = \"{name}\""), thresholds == of)?;
        }
    }
    let config = PfcConfig {
        header,
        thresholds,
        xoff: bytes_or("xoff_bytes", "24470 at 40 Gb/s", (0, 1_000_000_000))?,
        xon: bytes_or("xon_bytes", "two full frames under xoff_bytes", (0, 1_000_000_000))?,
        xon_offset: bytes_or("xon_offset_bytes", "two full frames", (0, 1_000_000_000))?,
        alpha: table.number("alpha", default.alpha, 0.001..=1_000.0)?,
        buffer: bytes_or("buffer_bytes", "375000 a port at 40 Gb/s", (1, 1_000_000_000_000))?,
        headroom: bytes_or("headroom_bytes", "what the link needs", (0, 1_000_000_000))?,
        ecn_min: bytes_or("ecn_min_bytes", "5000 at 40 Gb/s", (0, 1_000_000_000))?,
        ecn_max: bytes_or("ecn_max_bytes", "200000 at 40 Gb/s", (0, 1_000_000_000))?,
        ecn_chance: table.number("ecn_chance_max", default.ecn_chance, 0.0..=1.0)?,
        cnp_interval: timeout_us(&table, "cnp_interval_us", default.cnp_interval)?,
        gain: table.number("gain", default.gain, 0.0..=1.0)?,
        alpha_initial: table.number("alpha_initial", default.alpha_initial, 0.0..=1.0)?,
        alpha_timer: timeout_us(&table, "alpha_timer_us", default.alpha_timer)?,
        increase_timer: timeout_us(&table, "increase_timer_us", default.increase_timer)?,
        byte_counter: bytes_or(
            "byte_counter_bytes",
            "10000000 at 40 Gb/s",
            (1_000, 1_000_000_000_000),
        )?,
        recovery_stages: table.integer("recovery_stages", stages, 1..=1_000)? as u32,
        additive_mbps: mbps("additive_mbps", "40 at 40 Gb/s")?,
        hyper_mbps: mbps("hyper_mbps", "400 at 40 Gb/s")?,
        rate_min_mbps: mbps("rate_min_mbps", "40 at 40 Gb/s")?,
    };
    table.finish()?;
    Ok(config)
}

/// Refuses buffers that are too small for the headroom of a network's links.
pub(super) fn check_buffers(fabric: &Table<'_>, config: &FabricConfig) -> Result<(), InputError> {
    let Err(problem) = PfcConfig::check_buffers(config) else { return Ok(()) };
    Err(fabric.table("pfc")?.error("buffer_bytes", problem))
}

fn tcp(table: Table<'_>) -> Result<TcpConfig, InputError> {
    let default = TcpConfig::default();
    let config = TcpConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        reno: reno(&table, &default.reno)?,
    };
    table.finish()?;
    Ok(config)
}

fn roce(table: Table<'_>) -> Result<RoceConfig, InputError> {
    let default = RoceConfig::default();
    let config = RoceConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        timeout: timeout_us(&table, "timeout_us", default.timeout)?,
        ack_packets: packets(&table, "ack_packets", default.ack_packets)?,
    };
    table.finish()?;
    Ok(config)
}

/// A switch port's buffer: from less than a frame of 9,000 B, which is then never kept, no sense.
pub(super) const BUFFER_BYTES: (u64, u64) = (10_000, 1_000_000_000);

fn reno(table: &Table<'_>, default: &RenoConfig) -> Result<RenoConfig, InputError> {
    let initial = default.window_packets_initial;
    Ok(RenoConfig {
        window_packets_initial: packets(table, "window_packets_initial", initial)?,
        timeout_min: timeout_us(table, "rto_min_us", default.timeout_min)?,
        duplicates: table.integer("duplicate_acks", default.duplicates.into(), 1..=1_000)? as u32,
        doublings: table.integer(
            "rto_doublings",
            default.doublings.into(),
            0..=DOUBLINGS_MAX.into(),
        )? as u32,
    })
}

pub(super) fn bytes(
    table: &Table<'_>,
    key: &str,
    default: Bytes,
    (least, most): (u64, u64),
) -> Result<Bytes, InputError> {
    Ok(Bytes(table.integer(key, default.0, least..=most)?))
}

/// A buffer of `least` bytes or more, when it is there.
pub(super) fn buffer_or(
    table: &Table<'_>,
    key: &str,
    default: &str,
    least: u64,
) -> Result<Option<Bytes>, InputError> {
    let most = BUFFER_BYTES.1;
    let buffer = table.read(key, default, &format!("{least} to {most}"), |value| {
        as_integer(value).filter(|bytes| (least..=most).contains(bytes))
    })?;
    Ok(buffer.map(Bytes))
}

/// A window, when it is there.
pub(super) fn window_or(
    table: &Table<'_>,
    key: &str,
    default: &str,
) -> Result<Option<u32>, InputError> {
    let packets = table.read(key, default, "1 to 1000000", |value| {
        as_integer(value).filter(|packets| (1..=1_000_000).contains(packets))
    })?;
    Ok(packets.map(|packets| packets as u32))
}

pub(super) fn packets(table: &Table<'_>, key: &str, default: u32) -> Result<u32, InputError> {
    Ok(table.integer(key, default.into(), 1..=1_000_000)? as u32)
}
