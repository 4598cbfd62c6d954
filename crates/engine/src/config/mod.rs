//! A validated fabric configuration: `scenario` reads it from TOML, and every fabric is built from
//! it.

mod packet;
mod parameters;
mod read;
mod topology;

use ethermem_units::{BitsPerSecond, Ps};

pub use packet::{L2_FORWARDING, PacketConfig};
pub use parameters::Reader;
pub use parameters::{AllParameters, Parameters};
pub use topology::{Balancing, LeafSpine, Switching, Topology};

/// Maximum number of nodes of any network: what a CXL fabric has ports for (DFabric, section 2.1).
pub const NODES_MAX: u16 = 4_096;

/// The part of a scenario that describes the network.
#[derive(Clone, Debug, PartialEq)]
pub struct FabricConfig {
    /// Number of nodes, each with a switch port: 2 to [`NODES_MAX`], and to what the fabric allows.
    pub nodes: u16,
    /// The topology that joins the nodes.
    pub topology: Topology,
    /// Rate of every link of a node.
    pub link: BitsPerSecond,
    /// One-way propagation of one link.
    pub propagation: Ps,
    /// Delay of PMA, PMD and transceiver at one end of a link (19 ns each in EDM, Table 1).
    pub transceiver: Ps,
    /// Time from the last request block at the memory node to the first data byte of its memory.
    pub memory_access: Ps,
    /// Period of the PCS clock; by default one block per cycle.
    pub pcs_clock: Ps,
    /// The parameters that packet fabrics share.
    pub packet: PacketConfig,
    /// The Ethernet frames that share the links.
    pub background: Background,
    /// The parameters of each fabric.
    pub parameters: AllParameters,
}

impl FabricConfig {
    /// The parameters of the fabric with this parameter type.
    ///
    /// # Panics
    /// If no fabric of the registry has read them.
    #[must_use]
    pub fn of<P: Parameters>(&self) -> &P {
        self.parameters.of()
    }

    /// This configuration without what varies from message to message. The denominator of slowdowns
    /// is measured on it.
    #[must_use]
    pub fn quiet(&self) -> FabricConfig {
        let mut quiet = self.clone();
        quiet.background.load = 0.0;
        quiet.parameters.quiet();
        quiet
    }
}

/// Ethernet frames that share the links: Poisson arrivals at every uplink and every switch egress.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Background {
    /// Share of a link's block slots, 0.0 to 1.0; with the memory load at most 1.
    pub load: f64,
    /// Frame size with FCS: 64 to 9018 B.
    pub frame_bytes: u32,
    /// Which goes first on links where memory travels in frames as well.
    pub arbitration: FrameArbitration,
}

/// How memory that travels in frames shares a link with other frames. Fabrics that put memory into
/// the PHY have an arbitration of their own, and cut a frame at any block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameArbitration {
    /// In turns of as many blocks, whole frames: deficit round robin (Shreedhar, Varghese, 1995).
    #[default]
    Fair,
    /// Memory first, once the frame in flight has ended: strict priority (IEEE 802.1Q, 8.6.8.1).
    Strict,
    /// Memory first, and the frame in flight is preempted (IEEE 802.1Qbu and 802.3br).
    Preemptive,
}

/// Rate of one lane of a link in Gb/s. Faster Ethernet bundles lanes (section 4.1), and the PCS
/// clock is a lane's.
fn lane_gbps(link_gbps: u64) -> u64 {
    match link_gbps {
        40 => 10,
        100 => 25,
        200 | 400 => 50,
        single => single,
    }
}

/// The default PCS clock of a link: one 64-bit block of a lane per cycle, 2.56 ns at 25 and at 100
/// Gb/s. EDM's simulations at 100 Gb/s also keep the testbed's latencies (section 4.3).
#[must_use]
pub fn pcs_clock(link: BitsPerSecond) -> Ps {
    let lane = BitsPerSecond::from_gbps(lane_gbps(link.as_gbps_f64() as u64));
    lane.map_or(link.block_time(), BitsPerSecond::block_time)
}
