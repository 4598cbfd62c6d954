//! `[fabric.clio]`.

use ethermem_units::Ps;

use super::fabric::timeout_us;
use super::packet::{BUFFER_BYTES, buffer_or, bytes, packets, window_or};
use super::table::{Table, as_integer};
use crate::fabrics::clio::ClioConfig;
use crate::workload::InputError;

/// A page table of so many entries at every memory node is as much as a run should keep.
const PAGES_MAX: u64 = 1 << 20;

pub(super) fn read(table: Table<'_>) -> Result<ClioConfig, InputError> {
    let default = ClioConfig::default();
    let duration = |key, default: Ps, (least, most): (f64, f64)| {
        let ns = table.number(key, default.as_ns_f64(), least..=most)?;
        Ok::<Ps, InputError>(Ps::from_ns_f64(ns).expect("it is in range"))
    };
    let mut config = ClioConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        window_initial: window_or(&table, "window_requests_initial", "a bandwidth-delay product")?,
        window_max: packets(&table, "window_requests_max", default.window_max)?,
        queueing_target: timeout_us(&table, "queueing_target_us", default.queueing_target)?,
        incast: buffer_or(&table, "incast_bytes", "two round trips and queueing_target_us", 1)?,
        retry_min: timeout_us(&table, "retry_min_us", default.retry_min)?,
        retry_max: timeout_us(&table, "retry_max_us", default.retry_max)?,
        clock: duration("clock_ns", default.clock, (0.001, 1_000.0))?,
        width: bytes(&table, "width_bytes", default.width, (1, 4_096))?,
        tlb_entries: tlb_entries(&table, default.tlb_entries)?,
        processes: table.integer("processes", default.processes.into(), 1..=10_000)? as u16,
        ..default
    };
    let pages_max = PAGES_MAX / u64::from(config.processes);
    config.pages = table.integer("pages", default.pages.into(), 1..=pages_max)? as u32;
    config.jitter = duration("jitter_ns", default.jitter, (0.0, 1_000_000.0))?;
    if config.retry_max < config.retry_min {
        let us = |at: Ps| at.as_ns_f64() / 1e3;
        let problem = format!(
            "allowed are retry_min_us, {}, and more; {} is the default",
            us(config.retry_min),
            us(default.retry_max),
        );
        return Err(table.error("retry_max_us", problem));
    }
    table.finish()?;
    Ok(config)
}

fn tlb_entries(table: &Table<'_>, default: u32) -> Result<u32, InputError> {
    let read = |entries: &u64| (4..=65_536).contains(entries) && entries.is_power_of_two();
    let entries = table.read("tlb_entries", default, "powers of two, 4 to 65536", |value| {
        as_integer(value).filter(read)
    })?;
    Ok(entries.map_or(default, |entries| entries as u32))
}
