//! The tables `fabric`, `fabric.edm` and `background`; those of packets are in `packet`.

use std::ops::RangeInclusive;

use ethermem_edm::{Arbitration, EdmConfig, Order, Policy};
use ethermem_units::{BitsPerSecond, Bytes, Ps};

use super::credits;
use super::packet;
use super::table::{Table, as_integer, as_number};
use crate::config::{Background, FabricConfig, pcs_clock, scheduler_clock};
use crate::workload::InputError;

/// Data rates that a link may have, in Gb/s.
pub const LINK_GBPS: [u64; 6] = [10, 25, 40, 100, 200, 400];
const DEFAULT_LINK: BitsPerSecond = match BitsPerSecond::from_gbps(100) {
    Ok(rate) => rate,
    Err(_) => panic!("100 Gb/s is an Ethernet rate"),
};
const CHUNK_BYTES: RangeInclusive<u64> = 64..=1024;
const EGRESS_WINDOW_BLOCKS: RangeInclusive<u64> = 130..=1_000_000;

/// The kind and the configuration of the fabric; `fabrics` are the kinds there are, the default
/// one first.
pub(super) fn read(
    root: &Table<'_>,
    fabrics: &[&str],
) -> Result<(String, FabricConfig), InputError> {
    let table = root.table("fabric")?;
    let kinds: Vec<(&str, &str)> = fabrics.iter().map(|&name| (name, name)).collect();
    let kind = table.choice("kind", &kinds)?.to_owned();
    let nodes = table.integer("nodes", 144, 2..=512)? as u16;
    let link = link_rate(&table)?;
    let config = FabricConfig {
        nodes,
        link,
        propagation: delay_ns(&table, "propagation_ns", 10)?,
        transceiver: delay_ns(&table, "transceiver_ns", 19)?,
        memory_access: delay_ns(&table, "memory_access_ns", 0)?,
        pcs_clock: clock_ns(&table, "pcs_clock_ns", "64 bits at the lane rate of link_gbps")?
            .unwrap_or_else(|| pcs_clock(link)),
        edm: edm(table.table("edm")?, link)?,
        edm_artifact: credits::edm_artifact(table.table("edm_artifact")?)?,
        ird: credits::ird(table.table("ird")?)?,
        cxl: credits::cxl(table.table("cxl")?)?,
        fastpass: credits::fastpass(table.table("fastpass")?, nodes)?,
        topology: packet::topology(&table, link)?,
        packet: packet::read(&table)?,
        background: background(root.table("background")?)?,
    };
    packet::check_buffers(&table, &config)?;
    table.finish()?;
    Ok((kind, config))
}

fn edm(table: Table<'_>, link: BitsPerSecond) -> Result<EdmConfig, InputError> {
    let default = EdmConfig::default();
    let chunk = table.read(
        "chunk_bytes",
        default.chunk.0,
        &format!("multiples of 64 from {} to {}", CHUNK_BYTES.start(), CHUNK_BYTES.end()),
        |value| as_integer(value).filter(|b| CHUNK_BYTES.contains(b) && b.is_multiple_of(64)),
    )?;
    let config = EdmConfig {
        chunk: chunk.map_or(default.chunk, Bytes),
        notifications_max: table.integer(
            "notifications_max",
            u64::from(default.notifications_max),
            1..=8,
        )? as u8,
        policy: table.choice(
            "policy",
            &[
                ("srpt", Policy::Srpt),
                ("srpt-published", Policy::SrptPublished),
                ("srpt-classes", Policy::SrptClasses),
                ("fcfs", Policy::Fcfs),
                ("auto", Policy::Auto),
            ],
        )?,
        order: table.choice(
            "order",
            &[("pair", Order::Pair), ("strict", Order::Strict), ("relaxed", Order::Relaxed)],
        )?,
        arbitration: table.choice(
            "arbitration",
            &[("fair", Arbitration::Fair), ("strict", Arbitration::Strict)],
        )?,
        batching: table.flag("batching", default.batching)?,
        read_timeout: timeout_us(&table, "read_timeout_us", default.read_timeout)?,
        scheduler_clock: clock_ns(&table, "scheduler_clock_ns", "0.333, up to 25 Gb/s 2.56")?
            .or(Some(scheduler_clock(link))),
        lookahead_iterations: table.integer(
            "lookahead_iterations",
            u64::from(default.lookahead_iterations),
            1..=8,
        )? as u8,
        ahead_blocks: table.integer("ahead_blocks", u64::from(default.ahead_blocks), 0..=256)?
            as u32,
        egress_window_blocks: egress_window(&table)?,
    };
    table.finish()?;
    Ok(config)
}

/// At least the blocks of the longest chunk.
fn egress_window(table: &Table<'_>) -> Result<Option<u32>, InputError> {
    let (least, most) = EGRESS_WINDOW_BLOCKS.into_inner();
    let allowed = format!("{least} to {most}");
    let window =
        table.read("egress_window_blocks", "a round trip and 1024", &allowed, |value| {
            as_integer(value).filter(|blocks| EGRESS_WINDOW_BLOCKS.contains(blocks))
        })?;
    Ok(window.map(|blocks| blocks as u32))
}

/// A timeout to the nearest picosecond.
pub(super) fn timeout_us(table: &Table<'_>, key: &str, default: Ps) -> Result<Ps, InputError> {
    let default_us = default.as_ns_f64() / 1e3;
    let timeout = table.read(key, default_us, "0.001 to 1000000", |value| {
        let us = as_number(value).filter(|us| (0.001..=1e6).contains(us))?;
        Ps::from_ns_f64(us * 1e3)
    })?;
    Ok(timeout.unwrap_or(default))
}

fn background(table: Table<'_>) -> Result<Background, InputError> {
    let background = Background {
        load: table.number("load", 0.0, 0.0..=1.0)?,
        frame_bytes: table.integer("frame_bytes", 1518, 64..=9018)? as u32,
    };
    table.finish()?;
    Ok(background)
}

fn link_rate(table: &Table<'_>) -> Result<BitsPerSecond, InputError> {
    Ok(rate_gbps(table, "link_gbps", "100")?.unwrap_or(DEFAULT_LINK))
}

/// The rate of a link, when it is there.
pub(super) fn rate_gbps(
    table: &Table<'_>,
    key: &str,
    default: &str,
) -> Result<Option<BitsPerSecond>, InputError> {
    let names = LINK_GBPS.map(|gbps| gbps.to_string()).join(", ");
    let gbps = table.read(key, default, &names, |value| {
        as_integer(value).filter(|gbps| LINK_GBPS.contains(gbps))
    })?;
    let rate = gbps.map(BitsPerSecond::from_gbps).transpose();
    Ok(rate.expect("a block of every Ethernet rate takes whole picoseconds"))
}

/// A delay to the nearest picosecond; 1 ms is 200 km of fibre, no rack.
pub(super) fn delay_ns(table: &Table<'_>, key: &str, default_ns: u64) -> Result<Ps, InputError> {
    let delay = table.read(key, default_ns, "0 to 1000000", |value| {
        Ps::from_ns_f64(as_number(value).filter(|ns| (0.0..=1e6).contains(ns))?)
    })?;
    Ok(delay.unwrap_or(Ps::from_ns(default_ns)))
}

/// The period of a clock, to the nearest picosecond: 1 MHz to 1 THz.
fn clock_ns(table: &Table<'_>, key: &str, default: &str) -> Result<Option<Ps>, InputError> {
    table.read(key, default, "0.001 to 1000", |value| {
        Ps::from_ns_f64(as_number(value).filter(|ns| (0.001..=1e3).contains(ns))?)
    })
}
