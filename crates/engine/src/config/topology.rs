//! How nodes are joined, and how switches treat frames.

use ethermem_files::InputError;
use ethermem_units::{BitsPerSecond, Ps};

use crate::keys::{Table, delay_ns};

/// How nodes are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One switch, a port for every node.
    SingleSwitch,
    /// Racks of nodes on a leaf switch each, every leaf joined to every spine.
    LeafSpine(LeafSpine),
}

/// A two-tier Clos network of full bisection: a leaf has as much bandwidth to the spines as its
/// nodes have to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Nodes of a rack; the last rack may have fewer.
    pub rack_nodes: u16,
    /// Spine switches, at most as many as nodes of a rack.
    pub spines: u16,
    /// One-way propagation of a link between leaf and spine.
    pub propagation: Ps,
    /// What takes a packet to its spine; `None` for the transport's own.
    pub balancing: Option<Balancing>,
}

/// How packets are spread over spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// All packets of a flow take the spine that its hash names.
    Ecmp,
    /// Packets of a node take the spines in turn.
    Spray,
    /// The same, in an order that is drawn anew after every round.
    Permute,
}

/// When a switch may send what is coming in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// When the frame is whole.
    StoreAndForward,
    /// When as much of it has come as of a frame of the least size, and no sooner than that its
    /// output never waits for its input.
    CutThrough,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    SingleSwitch,
    LeafSpine,
}

impl Topology {
    /// Reads how nodes with links of this rate are joined: `fabric.topology`, with its table.
    pub(super) fn read(fabric: &Table<'_>, link: BitsPerSecond) -> Result<Topology, InputError> {
        let names = [("single-switch", Name::SingleSwitch), ("leaf-spine", Name::LeafSpine)];
        let name = fabric.choice("topology", &names)?;
        let table = fabric.table("leaf_spine")?;
        let rack_nodes = table.integer("rack_nodes", 16, 1..=512)? as u16;
        let spines = table.integer("spines", 4, 1..=64)? as u16;
        let propagation = delay_ns(&table, "propagation_ns", 10)?;
        let balancings = [
            ("ecmp", Balancing::Ecmp),
            ("spray", Balancing::Spray),
            ("permute", Balancing::Permute),
        ];
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
                "with fabric.leaf_spine.rack_nodes = {rack_nodes} a leaf's links have no rate: \
                 allowed are at most as many spines as nodes of a rack, a block of whose links \
                 takes whole picoseconds"
            );
            return Err(table.error("spines", problem));
        }
        table.finish()?;
        Ok(Topology::LeafSpine(LeafSpine { rack_nodes, spines, propagation, balancing }))
    }
}
