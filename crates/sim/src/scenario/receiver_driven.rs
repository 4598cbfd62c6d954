//! The tables of receiver-driven fabrics of packets.

use super::fabric::timeout_us;
use super::packet::{BUFFER_BYTES, bytes};
use super::table::{Table, as_integer};
use crate::fabrics::homa::HomaConfig;
use crate::fabrics::phost::PhostConfig;
use crate::workload::InputError;
use ethermem_units::Bytes;

pub(super) fn homa(table: Table<'_>) -> Result<HomaConfig, InputError> {
    let default = HomaConfig::default();
    let count = |key, default: &str, (least, most): (u64, u64)| {
        let read = |count: &u64| (least..=most).contains(count);
        let allowed = format!("{least} to {most}");
        table.read(key, default, &allowed, |value| as_integer(value).filter(read))
    };
    let choice = |key, default: u32| -> Result<u32, InputError> {
        Ok(table.integer(key, default.into(), 1..=1_000_000)? as u32)
    };
    let config = HomaConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        priorities: table.integer("priorities", default.priorities.into(), 1..=64)? as u32,
        unscheduled_priorities: count(
            "unscheduled_priorities",
            "by their share of bytes",
            (1, 63),
        )?
        .map(|count| count as u32),
        unscheduled: count("unscheduled_bytes", "a bandwidth-delay product", (1, 1_000_000_000))?
            .map(Bytes),
        overcommitment: count("overcommitment", "one a scheduled priority", (1, 512))?
            .map(|count| count as u32),
        resend: timeout_us(&table, "resend_us", default.resend)?,
        first_choice_messages: choice("first_choice_messages", default.first_choice_messages)?,
        choice_messages: choice("choice_messages", default.choice_messages)?,
    };
    table.finish()?;
    Ok(config)
}

pub(super) fn phost(table: Table<'_>) -> Result<PhostConfig, InputError> {
    let default = PhostConfig::default();
    let packets = |key, default: u32| -> Result<u32, InputError> {
        Ok(table.integer(key, default.into(), 0..=1_000_000)? as u32)
    };
    let config = PhostConfig {
        header: bytes(&table, "header_bytes", default.header, (0, 128))?,
        buffer: bytes(&table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
        free_packets: packets("free_packets", default.free_packets)?,
        short_packets: packets("short_packets", default.short_packets)?,
        token_lifetime_packets: table.number(
            "token_lifetime_packets",
            default.token_lifetime_packets,
            0.0..=1e6,
        )?,
        tokens_unused_max: table
            .read("tokens_unused_max", "a bandwidth-delay product", "1 to 1000000", |value| {
                as_integer(value).filter(|tokens| (1..=1_000_000).contains(tokens))
            })?
            .map(|tokens| tokens as u32),
        downgrade_packets: table.number(
            "downgrade_packets",
            default.downgrade_packets,
            0.0..=1e6,
        )?,
        downgrade_ends_with_data: table
            .flag("downgrade_ends_with_data", default.downgrade_ends_with_data)?,
        timeout: timeout_us(&table, "timeout_us", default.timeout)?,
        timeout_growth: table.number("timeout_growth", default.timeout_growth, 1.0..=16.0)?,
        free_wait_packets: table.number(
            "free_wait_packets",
            default.free_wait_packets,
            0.0..=1e6,
        )?,
    };
    table.finish()?;
    Ok(config)
}
