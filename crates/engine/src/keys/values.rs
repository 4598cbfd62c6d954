//! Values of many keys: lengths, times, rates, windows, nodes.

use std::fmt::Display;

use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_workload::NodeIndex;

use super::table::{Table, as_integer, as_number};
use ethermem_files::InputError;

/// Valid data rates of a link, in Gb/s.
pub const LINK_GBPS: [u64; 6] = [10, 25, 40, 100, 200, 400];

/// Bounds of a switch port's buffer. A buffer below a frame of 9,000 B would never hold one.
pub const BUFFER_BYTES: (u64, u64) = (10_000, 1_000_000_000);

/// Reads a length of `least` to `most` bytes.
///
/// # Errors
/// [`InputError`] for an invalid value.
pub fn bytes(
    table: &Table<'_>,
    key: &str,
    default: Bytes,
    (least, most): (u64, u64),
) -> Result<Bytes, InputError> {
    Ok(Bytes(table.integer(key, default.0, least..=most)?))
}

/// Reads a buffer size of at least `least` bytes, if it is present.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn buffer_or(
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

/// Reads a window, if it is present.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn window_or(table: &Table<'_>, key: &str, default: &str) -> Result<Option<u32>, InputError> {
    let packets = table.read(key, default, "1 to 1000000", |value| {
        as_integer(value).filter(|packets| (1..=1_000_000).contains(packets))
    })?;
    Ok(packets.map(|packets| packets as u32))
}

/// Reads a number of packets.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn packets(table: &Table<'_>, key: &str, default: u32) -> Result<u32, InputError> {
    Ok(table.integer(key, default.into(), 1..=1_000_000)? as u32)
}

/// Reads a timeout, to the nearest picosecond.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn timeout_us(table: &Table<'_>, key: &str, default: Ps) -> Result<Ps, InputError> {
    let timeout = timeout_or(table, key, default.as_ns_f64() / 1e3)?;
    Ok(timeout.unwrap_or(default))
}

/// Reads a timeout, to the nearest picosecond, if it is present.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn timeout_or(
    table: &Table<'_>,
    key: &str,
    default: impl Display,
) -> Result<Option<Ps>, InputError> {
    table.read(key, default, "0.001 to 1000000", |value| {
        let us = as_number(value).filter(|us| (0.001..=1e6).contains(us))?;
        Ps::from_ns_f64(us * 1e3)
    })
}

/// Reads the rate of a link, if it is present.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn rate_gbps(
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

/// Reads a delay, to the nearest picosecond; 1 ms is 200 km of fibre, more than a rack.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn delay_ns(table: &Table<'_>, key: &str, default_ns: u64) -> Result<Ps, InputError> {
    Ok(delay_or(table, key, default_ns)?.unwrap_or(Ps::from_ns(default_ns)))
}

/// Reads a delay as [`delay_ns`] does, if it is present.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn delay_or(
    table: &Table<'_>,
    key: &str,
    default: impl Display,
) -> Result<Option<Ps>, InputError> {
    table.read(key, default, "0 to 1000000", |value| {
        Ps::from_ns_f64(as_number(value).filter(|ns| (0.0..=1e6).contains(ns))?)
    })
}

/// Reads the period of a clock, to the nearest picosecond: 1 MHz to 1 THz.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn clock_ns(table: &Table<'_>, key: &str, default: &str) -> Result<Option<Ps>, InputError> {
    table.read(key, default, "0.001 to 1000", |value| {
        Ps::from_ns_f64(as_number(value).filter(|ns| (0.001..=1e3).contains(ns))?)
    })
}

/// Reads a node of a network of `nodes`.
///
/// # Errors
/// The errors of [`bytes()`].
pub fn node(table: &Table<'_>, key: &str, nodes: u16) -> Result<NodeIndex, InputError> {
    let last = u64::from(nodes) - 1;
    Ok(table.bounded(key, (0, "0"), (0, last, "nodes - 1"))? as NodeIndex)
}
