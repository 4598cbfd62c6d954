//! Parameters of racks with a ToR.

use ethermem_engine::FabricConfig;
use ethermem_engine::config::Parameters;
use ethermem_engine::keys::{Table, delay_ns};
use ethermem_frames::RenoConfig;
use ethermem_units::{Bytes, Ps};
use ethermem_workload::InputError;

use crate::dfabric::check_racks;
use crate::tcp::TcpConfig;

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
    /// TCP, and the buffers of its switches.
    pub tcp: TcpConfig,
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
        let default = TcpConfig::default();
        let default = TcpConfig {
            buffer: Bytes(262_144),
            reno: RenoConfig { window_packets_initial: 10, ..default.reno },
            ..default
        };
        Ok(TorRackConfig {
            racks: table.integer("racks", 2, 1..=64)? as u16,
            uplinks: table
                .integer_or_auto("uplinks", 1..=UPLINKS_MAX.into())?
                .map(|uplinks| uplinks as u16),
            core: delay_ns(table, "core_ns", 0)?,
            tcp: default.changed_by(table)?,
        })
    }

    fn check(&self, config: &FabricConfig) -> Result<(), (&'static str, String)> {
        check_racks(self.racks, config.nodes)
    }
}
