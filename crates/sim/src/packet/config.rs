//! What a scenario says of packets, whatever the fabric.

use ethermem_units::{Bytes, Ps};

use crate::budget::L2_FORWARDING;
use crate::topology::Switching;

/// The parameters that all fabrics of packets share.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

impl Default for PacketConfig {
    fn default() -> PacketConfig {
        PacketConfig {
            mtu: Bytes(1_500),
            memory_header: Bytes(16),
            forwarding: L2_FORWARDING,
            switching: Switching::StoreAndForward,
            stack: None,
        }
    }
}
