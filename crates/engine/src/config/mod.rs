//! A validated fabric configuration: `scenario` makes it of TOML, every fabric is built from it.

mod packet;
mod parameters;
mod read;
mod topology;

use ethermem_units::{BitsPerSecond, Ps};

pub use packet::{L2_FORWARDING, PacketConfig};
pub use parameters::Reader;
pub use parameters::{AllParameters, Parameters};
pub use topology::{Balancing, LeafSpine, Switching, Topology};

/// The part of a scenario that describes the network.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Nodes, a switch port each: 2 to 512.
    pub nodes: u16,
    /// How they are joined.
    pub topology: Topology,
    /// Rate of every link of a node.
    pub link: BitsPerSecond,
    /// One-way propagation of one link.
    pub propagation: Ps,
    /// PMA, PMD and transceiver at one end of a link (19 ns each in EDM, Table 1).
    pub transceiver: Ps,
    /// From the last request block at the memory node to the first data byte of its memory.
    pub memory_access: Ps,
    /// Period of the PCS clock; one block a cycle by default.
    pub pcs_clock: Ps,
    /// What fabrics of packets share.
    pub packet: PacketConfig,
    /// Ethernet frames that share the links.
    pub background: Background,
    /// The parameters of each fabric.
    pub parameters: AllParameters,
}

impl FabricConfig {
    /// A fabric's own parameters.
    ///
    /// # Panics
    /// When no fabric of the registry has read them.
    #[must_use]
    pub fn of<P: Parameters>(&self) -> &P {
        self.parameters.of()
    }

    /// The same fabric without what varies from message to message: what a message is slowed down
    /// against.
    #[must_use]
    pub fn quiet(&self) -> FabricConfig {
        let mut quiet = self.clone();
        quiet.background.load = 0.0;
        quiet.parameters.quiet();
        quiet
    }
}

/// Ethernet frames on the same links: Poisson arrivals at every uplink and every switch egress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// Share of a link's block slots, 0.0 to 1.0; with the memory load at most 1.
    pub load: f64,
    /// Frame size with FCS: 64 to 9018 B.
    pub frame_bytes: u32,
}

/// Rate of one lane of a link: faster Ethernet bundles lanes (section 4.1), and the PCS clock is a
/// lane's.
fn lane_gbps(link_gbps: u64) -> u64 {
    match link_gbps {
        40 => 10,
        100 => 25,
        200 | 400 => 50,
        single => single,
    }
}

/// The default PCS clock of a link: one 64-bit block of a lane a cycle, 2.56 ns at 25 and at
/// 100 Gb/s. EDM's simulations at 100 Gb/s keep the testbed's latencies the same way
/// (section 4.3).
#[must_use]
pub fn pcs_clock(link: BitsPerSecond) -> Ps {
    let lane = BitsPerSecond::from_gbps(lane_gbps(link.as_gbps_f64() as u64));
    lane.map_or(link.block_time(), BitsPerSecond::block_time)
}
