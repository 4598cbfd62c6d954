//! DCTCP's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, bytes, packets};
use ethermem_frames::{ConnectionConfig, RenoConfig};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// DCTCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DctcpConfig {
    /// IP and TCP headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// K: queue in bytes that a packet must find to be marked.
    pub ecn_threshold: Bytes,
    /// g: weight of the last window in the estimate of the marked share.
    pub gain: f64,
    /// The estimate before the first window.
    pub alpha_initial: f64,
    /// Minimum window after a cut, in packets.
    pub window_packets_min: u32,
    /// The kind of its connections.
    pub connections: ConnectionConfig,
    /// The parameters of window, timeout and loss detection.
    pub reno: RenoConfig,
}

impl Default for DctcpConfig {
    fn default() -> DctcpConfig {
        DctcpConfig {
            header: Bytes(40),
            buffer: Bytes(225_000),
            ecn_threshold: Bytes(22_500),
            gain: 1.0 / 16.0,
            alpha_initial: 1.0,
            window_packets_min: 2,
            connections: ConnectionConfig::default(),
            reno: RenoConfig {
                window_packets_initial: 10,
                timeout_min: Ps::from_ns(200_000),
                duplicates: 3,
                doublings: 6,
            },
        }
    }
}

impl Parameters for DctcpConfig {
    const TABLE: &'static str = "dctcp";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<DctcpConfig, InputError> {
        let default = DctcpConfig::default();
        let config = DctcpConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            ecn_threshold: bytes(
                table,
                "ecn_threshold_bytes",
                default.ecn_threshold,
                BUFFER_BYTES,
            )?,
            gain: table.number("gain", default.gain, 0.0..=1.0)?,
            alpha_initial: table.number("alpha_initial", default.alpha_initial, 0.0..=1.0)?,
            window_packets_min: packets(table, "window_packets_min", default.window_packets_min)?,
            connections: ConnectionConfig::read(table)?,
            reno: RenoConfig::read(table, &default.reno)?,
        };
        Ok(config)
    }
}
