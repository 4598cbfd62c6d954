//! TCP's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, bytes};
use ethermem_frames::{ConnectionConfig, RenoConfig};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// TCP's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpConfig {
    /// IP and TCP headers of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// The kind of its connections.
    pub connections: ConnectionConfig,
    /// The parameters of window, timeout and loss detection.
    pub reno: RenoConfig,
}

impl Default for TcpConfig {
    fn default() -> TcpConfig {
        TcpConfig {
            header: Bytes(40),
            buffer: Bytes(225_000),
            connections: ConnectionConfig::default(),
            reno: RenoConfig {
                window_packets_initial: 2,
                timeout_min: Ps::from_ns(200_000),
                duplicates: 3,
                doublings: 6,
            },
        }
    }
}

impl Parameters for TcpConfig {
    const TABLE: &'static str = "tcp";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<TcpConfig, InputError> {
        TcpConfig::default().changed_by(table)
    }
}

impl TcpConfig {
    /// These parameters with the changes that a table makes.
    pub(crate) fn changed_by(self, table: &Table<'_>) -> Result<TcpConfig, InputError> {
        let default = self;
        let config = TcpConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            connections: ConnectionConfig::read(table)?,
            reno: RenoConfig::read(table, &default.reno)?,
        };
        Ok(config)
    }
}
