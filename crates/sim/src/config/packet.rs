//! What a scenario says of packets, whatever the fabric.

use ethermem_units::{Bytes, Ps};

use super::Switching;

/// Layer 2 forwarding of a Tofino: parsing 87, match and action 202, packet manager 93,
/// crossbar 18 ns.
pub const L2_FORWARDING: Ps = Ps::from_ns(400);

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
