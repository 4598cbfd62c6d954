//! RoCE's parameters.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, bytes, packets, timeout_us};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

/// RoCE's parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoceConfig {
    /// IP, UDP, BTH and ICRC of a packet.
    pub header: Bytes,
    /// Buffer of a switch port.
    pub buffer: Bytes,
    /// Time after the last packet without an answer until a retry.
    pub timeout: Ps,
    /// Number of packets per acknowledgement; the last packet of a message is always acknowledged.
    pub ack_packets: u32,
}

impl Default for RoceConfig {
    fn default() -> RoceConfig {
        RoceConfig {
            header: Bytes(44),
            buffer: Bytes(225_000),
            timeout: Ps::from_ns(500_000),
            ack_packets: 256,
        }
    }
}

impl Parameters for RoceConfig {
    const TABLE: &'static str = "roce";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<RoceConfig, InputError> {
        let default = RoceConfig::default();
        let config = RoceConfig {
            header: bytes(table, "header_bytes", default.header, (0, 128))?,
            buffer: bytes(table, "buffer_bytes", default.buffer, BUFFER_BYTES)?,
            timeout: timeout_us(table, "timeout_us", default.timeout)?,
            ack_packets: packets(table, "ack_packets", default.ack_packets)?,
        };
        Ok(config)
    }
}
