//! Parameters of racks with a ToR.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{BUFFER_BYTES, Table, bytes, delay_ns};
use ethermem_frames::{ConnectionConfig, RenoConfig};
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

use crate::dfabric::check_racks;

/// Parameters of `fabric.kind = "tor-rack"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TorRackConfig {
    /// Racks over which the nodes are divided.
    pub racks: u16,
    /// Uplinks of a ToR, each with a NIC's rate; `None`: one for each node.
    pub uplinks: Option<u16>,
    /// Time through the network between the racks, beside the standard parts; a half of it is on
    /// either side of the switches there.
    pub core: Ps,
    /// Buffer of a port of a switch.
    pub buffer: Bytes,
    /// IP and TCP headers of a packet.
    pub header: Bytes,
    /// The kind of its connections.
    pub connections: ConnectionConfig,
    /// The parameters of window, timeout and loss detection.
    pub reno: RenoConfig,
}

/// Uplinks of a ToR at most.
const UPLINKS_MAX: u16 = 64;

impl TorRackConfig {
    /// Uplinks of a ToR, by default as many as nodes.
    pub(super) fn uplinks_of(&self, nodes: u16) -> u16 {
        self.uplinks.unwrap_or(nodes.div_ceil(self.racks).min(UPLINKS_MAX))
    }
}

impl Parameters for TorRackConfig {
    const TABLE: &'static str = "tor_rack";

    fn read(table: &Table<'_>, _config: &FabricConfig) -> Result<TorRackConfig, InputError> {
        let reno = RenoConfig {
            window_packets_initial: 10,
            timeout_min: Ps::from_ns(200_000),
            duplicates: 3,
            doublings: 6,
        };
        Ok(TorRackConfig {
            racks: table.integer("racks", 2, 1..=64)? as u16,
            uplinks: table
                .integer_or_auto("uplinks", 1..=UPLINKS_MAX.into())?
                .map(|uplinks| uplinks as u16),
            core: delay_ns(table, "core_ns", 0)?,
            buffer: bytes(table, "buffer_bytes", Bytes(262_144), BUFFER_BYTES)?,
            header: bytes(table, "header_bytes", Bytes(40), (0, 128))?,
            connections: ConnectionConfig::read(table)?,
            reno: RenoConfig::read(table, &reno)?,
        })
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        check_racks(self.racks, config.nodes)
    }
}
