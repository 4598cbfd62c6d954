//! What a scenario says of packets, whatever the fabric.

use ethermem_files::InputError;
use ethermem_units::{Bytes, Ps};

use super::Switching;
use crate::keys::{Table, as_number, bytes, delay_ns};

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
            stack: table.read("stack_ns", "by fabric.kind", "0 to 1000000", |value| {
                Ps::from_ns_f64(as_number(value).filter(|ns| (0.0..=1e6).contains(ns))?)
            })?,
        };
        table.finish()?;
        Ok(config)
    }
}
