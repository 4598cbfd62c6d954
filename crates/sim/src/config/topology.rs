//! How nodes are joined, and how switches treat frames.

use ethermem_units::Ps;

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
