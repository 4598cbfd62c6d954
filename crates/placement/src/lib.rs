//! Which section of which memory node is whose: a pure, deterministic map with epochs.
//!
//! Memory is given out in sections, all of one size. An owner's memory is a list of sections by
//! their index; each lies somewhere on a node. [`Placement::apply`] executes a [`Command`], all of
//! it or nothing, and says what changed. Each command that changed something makes a new
//! [`Epoch`]. Equal commands lead to equal placements, so a manager of many nodes can replicate the
//! commands; this crate holds one copy, in memory. It moves no bytes and sends nothing.
//!
//! ```
//! use ethermem_placement::{Command, NodeId, OwnerId, Placement, Policy};
//!
//! let mut placement = Placement::new();
//! placement.apply(&Command::AddNode { node: NodeId(1), sections: 8 })?;
//! placement.apply(&Command::AddOwner { owner: OwnerId(7), quota: 4 })?;
//! let grow = Command::Grow { owner: OwnerId(7), sections: 2, policy: Policy::Spread };
//! assert_eq!(placement.apply(&grow)?.len(), 2);
//! assert_eq!(placement.locate(OwnerId(7), 1).map(|section| section.node), Some(NodeId(1)));
//! # Ok::<(), ethermem_placement::PlacementError>(())
//! ```

mod command;
mod placement;

pub use command::{Change, Command, Policy};
pub use placement::{NodeState, Placement, PlacementError};

/// A node that has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u16);

/// Who has memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerId(pub u64);

/// A section of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Section {
    /// The node.
    pub node: NodeId,
    /// Which of its sections, from 0.
    pub index: u32,
}

/// Counts the changes of a placement, from 0. Who acts on an older one may act on what is no
/// longer so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u64);
