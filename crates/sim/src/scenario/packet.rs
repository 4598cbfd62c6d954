//! `fabric.topology` with its table, and `fabric.packet`.

use ethermem_units::{BitsPerSecond, Ps};

use crate::keys::{Table, as_number, bytes, delay_ns};
use crate::packet::PacketConfig;
use crate::topology::{Balancing, LeafSpine, Switching, Topology};
use crate::workload::InputError;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    SingleSwitch,
    LeafSpine,
}

/// How nodes with links of this rate are joined.
pub(super) fn topology(fabric: &Table<'_>, link: BitsPerSecond) -> Result<Topology, InputError> {
    let names = [("single-switch", Name::SingleSwitch), ("leaf-spine", Name::LeafSpine)];
    let name = fabric.choice("topology", &names)?;
    let table = fabric.table("leaf_spine")?;
    let rack_nodes = table.integer("rack_nodes", 16, 1..=512)? as u16;
    let spines = table.integer("spines", 4, 1..=64)? as u16;
    let propagation = delay_ns(&table, "propagation_ns", 10)?;
    let balancings =
        [("ecmp", Balancing::Ecmp), ("spray", Balancing::Spray), ("permute", Balancing::Permute)];
    let balancing = table.choice_or("balancing", "by fabric.kind", &balancings)?;
    if name == Name::SingleSwitch {
        table.finish()?;
        return Ok(Topology::SingleSwitch);
    }
    // A leaf's links to the spines carry what its nodes' links do, and their blocks take whole
    // picoseconds.
    let slots = link.block_time().0 * u64::from(spines);
    if spines > rack_nodes || !slots.is_multiple_of(rack_nodes.into()) {
        let problem = format!(
            "with fabric.leaf_spine.rack_nodes = {rack_nodes} a leaf's links have no rate: allowed \
             are at most as many spines as nodes of a rack, a block of whose links takes whole \
             picoseconds"
        );
        return Err(table.error("spines", problem));
    }
    table.finish()?;
    Ok(Topology::LeafSpine(LeafSpine { rack_nodes, spines, propagation, balancing }))
}

pub(super) fn read(fabric: &Table<'_>) -> Result<PacketConfig, InputError> {
    let default = PacketConfig::default();
    let table = fabric.table("packet")?;
    let switchings =
        [("store-and-forward", Switching::StoreAndForward), ("cut-through", Switching::CutThrough)];
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
