//! A validated fabric configuration: what `scenario` makes of TOML, what every fabric is built from.

use ethermem_edm::EdmConfig;
use ethermem_units::{BitsPerSecond, Ps};

/// The part of a scenario that describes the network.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Nodes, one switch port each: 2 to 512.
    pub nodes: u16,
    /// Rate of every link.
    pub link: BitsPerSecond,
    /// One-way propagation of one link.
    pub propagation: Ps,
    /// PMA, PMD and transceiver at one end of a link (19 ns each in EDM, Table 1).
    pub transceiver: Ps,
    /// From the last request block at the memory node to the first data byte of its memory.
    pub memory_access: Ps,
    /// Period of the PCS clock; one block a cycle by default.
    pub pcs_clock: Ps,
    /// EDM's own parameters.
    pub edm: EdmConfig,
    /// Ethernet frames that share the links.
    pub background: Background,
}

/// Ethernet frames on the same links: Poisson arrivals at every uplink and every switch egress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// Share of a link's block slots, 0.0 to 1.0; with the memory load at most 1.
    pub load: f64,
    /// Frame size with FCS: 64 to 9018 B.
    pub frame_bytes: u32,
}
