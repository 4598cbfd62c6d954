//! The topology of the network, and the way in which switches forward frames.

use ethermem_files::InputError;
use ethermem_units::{BitsPerSecond, Ps};

use crate::keys::{Table, delay_ns};

/// The topology that joins the nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// One switch with a port for every node.
    SingleSwitch,
    /// Racks of nodes, each on a leaf switch; every leaf is joined to every spine.
    LeafSpine(LeafSpine),
}

/// A two-tier Clos network. By default it has full bisection: a leaf has as much bandwidth to the
/// spines as its nodes have to the leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeafSpine {
    /// Number of nodes of a rack; the last rack may have fewer.
    pub rack_nodes: u16,
    /// Number of spine switches: at most the nodes of a rack.
    pub spines: u16,
    /// One-way propagation of a link between leaf and spine.
    pub propagation: Ps,
    /// The balancing of packets over spines; `None` for the transport's own.
    pub balancing: Option<Balancing>,
    /// Rate of a link between leaf and spine; `None` for full bisection.
    pub link: Option<BitsPerSecond>,
}

/// The way in which packets are spread over spines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Balancing {
    /// All packets of a flow take the spine of the flow's hash.
    Ecmp,
    /// Packets of a node take the spines in turn.
    Spray,
    /// Packets of a node take the spines in a random order, which is drawn again after every round.
    Permute,
}

/// The time at which a switch may begin to send an incoming frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switching {
    /// Once the frame is whole.
    StoreAndForward,
    /// Once as much of it has arrived as a frame of minimum size has, but late enough that its
    /// output never waits for its input.
    CutThrough,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    SingleSwitch,
    LeafSpine,
}

impl Topology {
    /// Reads the topology of nodes with links of this rate: `fabric.topology`, with its table.
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
        // A leaf's links to the spines carry the bandwidth of its nodes' links, and their blocks
        // take whole picoseconds.
        let slots = link.block_time().0 * u64::from(spines);
        if spines > rack_nodes || !slots.is_multiple_of(rack_nodes.into()) {
            let problem = format!(
                "with fabric.leaf_spine.rack_nodes = {rack_nodes} a leaf's links have no rate: \
                 must be at most as many spines as nodes of a rack, a block of whose links \
                 takes whole picoseconds"
            );
            return Err(table.error("spines", problem));
        }
        table.finish()?;
        let link = None;
        Ok(Topology::LeafSpine(LeafSpine { rack_nodes, spines, propagation, balancing, link }))
    }
}
