//! The parameters of packets in a scenario, common to all fabrics.

use ethermem_files::InputError;
use ethermem_units::{Bytes, Ps};

use super::Switching;
use crate::keys::{Table, bytes, delay_ns, delay_or};

/// Layer 2 forwarding of a Tofino: parsing 87, match and action 202, packet manager 93,
/// crossbar 18 ns.
pub const L2_FORWARDING: Ps = Ps::from_ns(400);

/// The parameters that all packet fabrics share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacketConfig {
    /// Maximum bytes of a frame between the Ethernet header and the FCS.
    pub mtu: Bytes,
    /// Bytes of operation, message id, length and address, in every packet with data and in every
    /// request.
    pub memory_header: Bytes,
    /// Time of a switch for a packet between its two MACs.
    pub forwarding: Ps,
    /// The time at which a switch may begin to send an incoming frame.
    pub switching: Switching,
    /// Time of a host's stack for a packet; `None` for the transport's own default.
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

impl PacketConfig {
    /// Reads `fabric.packet`.
    pub(super) fn read(fabric: &Table<'_>) -> Result<PacketConfig, InputError> {
        let default = PacketConfig::default();
        let table = fabric.table("packet")?;
        let switchings = [
            ("store-and-forward", Switching::StoreAndForward),
            ("cut-through", Switching::CutThrough),
        ];
        let config = PacketConfig {
            mtu: bytes(&table, "mtu_bytes", default.mtu, (256, 9_000))?,
            memory_header: bytes(&table, "memory_header_bytes", default.memory_header, (0, 64))?,
            forwarding: delay_ns(&table, "forwarding_ns", 400)?,
            switching: table.choice("switching", &switchings)?,
            stack: delay_or(&table, "stack_ns", "by fabric.kind")?,
        };
        table.finish()?;
        Ok(config)
    }
}
