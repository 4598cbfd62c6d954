//! What a scenario says of packets, whatever the fabric.

use ethermem_units::{Bytes, Ps};

use crate::budget::L2_FORWARDING;
use crate::fabrics::clio::ClioConfig;
use crate::fabrics::dctcp::DctcpConfig;
use crate::fabrics::homa::HomaConfig;
use crate::fabrics::ndp::NdpConfig;
use crate::fabrics::pfabric::PfabricConfig;
use crate::fabrics::pfc::PfcConfig;
use crate::fabrics::phost::PhostConfig;
use crate::fabrics::roce::RoceConfig;
use crate::fabrics::tcp::TcpConfig;
use crate::topology::Switching;

/// Parameters of fabrics of packets: those they share, and each one's own.
#[derive(Clone, Debug, PartialEq)]
pub struct PacketConfig {
    /// Most bytes of a frame between the Ethernet header and the FCS.
    pub mtu: Bytes,
    /// Operation, message id, length and address, in every packet with data and in every request.
    pub memory_header: Bytes,
    /// What a switch takes for a packet between its two MACs.
    pub forwarding: Ps,
    /// When a switch may send what is coming in.
    pub switching: Switching,
    /// What a host's stack takes for a packet; `None` for the transport's own default.
    pub stack: Option<Ps>,
    /// Clio's.
    pub clio: ClioConfig,
    /// DCTCP's.
    pub dctcp: DctcpConfig,
    /// Homa's.
    pub homa: HomaConfig,
    /// NDP's.
    pub ndp: NdpConfig,
    /// pFabric's.
    pub pfabric: PfabricConfig,
    /// PFC's and DCQCN's.
    pub pfc: PfcConfig,
    /// pHost's.
    pub phost: PhostConfig,
    /// RoCE's.
    pub roce: RoceConfig,
    /// TCP's.
    pub tcp: TcpConfig,
}

impl Default for PacketConfig {
    fn default() -> PacketConfig {
        PacketConfig {
            mtu: Bytes(1_500),
            memory_header: Bytes(16),
            forwarding: L2_FORWARDING,
            switching: Switching::StoreAndForward,
            stack: None,
            clio: ClioConfig::default(),
            dctcp: DctcpConfig::default(),
            homa: HomaConfig::default(),
            ndp: NdpConfig::default(),
            pfabric: PfabricConfig::default(),
            pfc: PfcConfig::default(),
            phost: PhostConfig::default(),
            roce: RoceConfig::default(),
            tcp: TcpConfig::default(),
        }
    }
}
