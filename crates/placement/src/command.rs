//! What can be asked of a placement, and what it says of it.

use crate::{NodeId, OwnerId, Section};

/// On which nodes an owner's new sections go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// Each on the node that has most free sections; of equal ones on the lowest.
    #[default]
    Spread,
    /// Each on the lowest node that has a free section.
    Pack,
    /// Each on this node; where it has no room, as [`Policy::Spread`].
    Prefer(NodeId),
}

/// A change that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// A node joins, with so many sections.
    AddNode {
        /// The node.
        node: NodeId,
        /// Its sections.
        sections: u32,
    },
    /// A node gets no more sections; those that it has stay until they are moved.
    Drain {
        /// The node.
        node: NodeId,
    },
    /// A node leaves, and what is on it is lost. One that was drained and is empty loses nothing.
    RemoveNode {
        /// The node.
        node: NodeId,
    },
    /// An owner joins, who may have so many sections.
    AddOwner {
        /// The owner.
        owner: OwnerId,
        /// Most sections.
        quota: u32,
    },
    /// The number of sections that an owner may have changes; not below what it has.
    SetQuota {
        /// The owner.
        owner: OwnerId,
        /// Most sections.
        quota: u32,
    },
    /// An owner gets more sections: indices that it released first, then behind those that it has.
    Grow {
        /// The owner.
        owner: OwnerId,
        /// How many more.
        sections: u32,
        /// On which nodes.
        policy: Policy,
    },
    /// An owner gives back its last sections.
    Shrink {
        /// The owner.
        owner: OwnerId,
        /// How many.
        sections: u32,
    },
    /// An owner gives back one section. Its index is free, and is the next to be used.
    Release {
        /// The owner.
        owner: OwnerId,
        /// Which of its sections.
        index: u32,
    },
    /// An owner leaves, and gives back all of its sections.
    RemoveOwner {
        /// The owner.
        owner: OwnerId,
    },
    /// A section of an owner is to move to another node: a place there is reserved, and the old
    /// one stays in use.
    BeginMove {
        /// The owner.
        owner: OwnerId,
        /// Which of its sections.
        index: u32,
        /// The other node.
        to: NodeId,
    },
    /// The bytes are at the new place: it is in use from here on, and the old one is free.
    CommitMove {
        /// The owner.
        owner: OwnerId,
        /// Which of its sections.
        index: u32,
    },
    /// The move is given up: the reserved place is free.
    AbortMove {
        /// The owner.
        owner: OwnerId,
        /// Which of its sections.
        index: u32,
    },
}

/// A section of an owner that is somewhere else now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// The owner.
    pub owner: OwnerId,
    /// Which of its sections.
    pub index: u32,
    /// Where it was; `None`: it is new.
    pub from: Option<Section>,
    /// Where it is; `None`: it is gone.
    pub to: Option<Section>,
}
