//! pHost's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, as_integer, bytes, timeout_us};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// pHost's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PhostConfig {
    /// IP and transport headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Maximum packets of a flow that is sent without tokens.
    pub free_packets: u32,
    /// Maximum packets of a flow whose packets go before others in the network.
    pub short_packets: u32,
    /// Lifetime of a token after its arrival, in times of a full packet.
    pub token_lifetime_packets: f64,
    /// Maximum unused tokens of a flow; `None` for a number that fills the path.
    pub tokens_unused_max: Option<u32>,
    /// Time for which a flow with the maximum gets no more, in times of a full packet.
    pub downgrade_packets: f64,
    /// If true, the flow gets more as soon as it has used some. If false, it must wait for its next
    /// turn or the end of that time.
    pub downgrade_ends_with_data: bool,
    /// Time from the last token of a flow to new tokens for missing packets. Also the time after
    /// which a source without any answer announces the flow again.
    pub timeout: Ps,
    /// Factor by which it waits longer for each further answer.
    pub timeout_growth: f64,
    /// Time from the first packet of a flow that is sent at once to tokens for its missing packets,
    /// in times of all its packets.
    pub free_wait_packets: f64,
}

impl Default for PhostConfig {
    fn default() -> PhostConfig {
        PhostConfig {
            header: Bytes(40),
            buffer: Bytes(2_000_000),
            free_packets: 8,
            short_packets: 8,
            token_lifetime_packets: 1.5,
            tokens_unused_max: None,
            downgrade_packets: 25.0,
            downgrade_ends_with_data: true,
            timeout: Ps::from_ns(9_500),
            timeout_growth: 2.0,
            free_wait_packets: 2.0,
        }
    }
}

impl Parameters for PhostConfig {
    const TABLE: &'static str = "phost";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<PhostConfig, InputError> {
        let default = PhostConfig::default();
        let packets = |key, default: u32| -> Result<u32, InputError> {
            Ok(table.integer(key, default.into(), 0..=1_000_000)? as u32)
        };
        let config = PhostConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
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
            timeout: timeout_us(table, "timeout_us", default.timeout)?,
            timeout_growth: table.number("timeout_growth", default.timeout_growth, 1.0..=16.0)?,
            free_wait_packets: table.number(
                "free_wait_packets",
                default.free_wait_packets,
                0.0..=1e6,
            )?,
        };
        Ok(config)
    }
}
