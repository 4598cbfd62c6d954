//! The map itself.

use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use crate::{Change, Command, Epoch, NodeId, OwnerId, Policy, Section};

/// True if a node gets sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NodeState {
    /// It does.
    Up,
    /// It does not, and is to become empty.
    Draining,
}

/// Why a command was refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlacementError {
    /// The node is there already.
    #[error("node {0} is there already")]
    NodeExists(u16),
    /// There is no such node.
    #[error("node {0} is not there")]
    NoSuchNode(u16),
    /// The node gets no sections.
    #[error("node {0} is draining: must be another one")]
    Draining(u16),
    /// The owner is there already.
    #[error("owner {0} is there already")]
    OwnerExists(u64),
    /// There is no such owner.
    #[error("owner {0} is not there")]
    NoSuchOwner(u64),
    /// The owner would have more than it may.
    #[error("owner {owner}: {wanted} sections: must be at most {quota}")]
    OverQuota {
        /// The owner.
        owner: u64,
        /// What it would have.
        wanted: u64,
        /// What it may have.
        quota: u32,
    },
    /// The owner has fewer sections, or no such one.
    #[error("owner {owner}: {asked} sections: has {has}")]
    NotSoMany {
        /// The owner.
        owner: u64,
        /// What was asked for.
        asked: u32,
        /// What it has.
        has: u32,
    },
    /// The owner has more than the new quota.
    #[error("owner {owner}: quota {quota}: must be at least {has}, which it has")]
    QuotaInUse {
        /// The owner.
        owner: u64,
        /// The new quota.
        quota: u32,
        /// What it has.
        has: u32,
    },
    /// No node has room.
    #[error("{wanted} sections: {free} are free")]
    NoRoom {
        /// What was asked for.
        wanted: u32,
        /// What the nodes have.
        free: u64,
    },
    /// The section is being moved: commit or abort that first.
    #[error("section {index} of owner {owner} is being moved")]
    Moving {
        /// The owner.
        owner: u64,
        /// The section.
        index: u32,
    },
    /// The section is not being moved.
    #[error("section {index} of owner {owner} is not being moved")]
    NotMoving {
        /// The owner.
        owner: u64,
        /// The section.
        index: u32,
    },
    /// The section was lost with its node; there is nothing to move.
    #[error("section {index} of owner {owner} was lost with its node")]
    Lost {
        /// The owner.
        owner: u64,
        /// The section.
        index: u32,
    },
    /// The owner released the section; its index is free.
    #[error("section {index} of owner {owner} was released")]
    Released {
        /// The owner.
        owner: u64,
        /// The section.
        index: u32,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct MemoryNode {
    state: NodeState,
    /// Who has each section; a place that is reserved for a move is its owner's, too.
    sections: Vec<Option<OwnerId>>,
    free: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Residence {
    /// `None`: lost with its node.
    at: Option<Section>,
    moving_to: Option<Section>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    quota: u32,
    places: Vec<Residence>,
    /// Indices that are free for the next sections.
    released: BTreeSet<u32>,
}

impl Owner {
    /// Gives a section the lowest index that is free.
    fn place(&mut self, section: Section) -> u32 {
        let place = Residence { at: Some(section), moving_to: None };
        let Some(index) = self.released.pop_first() else {
            self.places.push(place);
            return self.places.len() as u32 - 1;
        };
        self.places[index as usize] = place;
        index
    }

    fn sections(&self) -> u32 {
        (self.places.len() - self.released.len()) as u32
    }
}

/// Which section of which node is whose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    epoch: Epoch,
    nodes: BTreeMap<NodeId, MemoryNode>,
    owners: BTreeMap<OwnerId, Owner>,
}

type Applied = Result<Vec<Change>, PlacementError>;

impl Placement {
    /// A placement without nodes and owners.
    #[must_use]
    pub fn new() -> Placement {
        Placement::default()
    }

    /// The number of commands that were applied.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Where a section of an owner is; `None` if it has none of this index, or has lost it.
    #[must_use]
    pub fn locate(&self, owner: OwnerId, index: u32) -> Option<Section> {
        self.owners.get(&owner)?.places.get(index as usize)?.at
    }

    /// Number of indices of an owner, including those of lost and of released sections.
    #[must_use]
    pub fn sections_of(&self, owner: OwnerId) -> Option<u32> {
        self.owners.get(&owner).map(|owner| owner.places.len() as u32)
    }

    /// Who has a section of a node.
    #[must_use]
    pub fn owner_of(&self, section: Section) -> Option<OwnerId> {
        *self.nodes.get(&section.node)?.sections.get(section.index as usize)?
    }

    /// Free sections of a node.
    #[must_use]
    pub fn free_sections(&self, node: NodeId) -> Option<u32> {
        self.nodes.get(&node).map(|node| node.free)
    }

    /// True if a node gets sections.
    #[must_use]
    pub fn state(&self, node: NodeId) -> Option<NodeState> {
        self.nodes.get(&node).map(|node| node.state)
    }

    /// Executes a command, and says which sections of which owners are somewhere else now.
    ///
    /// # Errors
    /// [`PlacementError`]; nothing was changed, and the epoch is the same.
    pub fn apply(&mut self, command: &Command) -> Applied {
        let changes = match *command {
            Command::AddNode { node, sections } => self.add_node(node, sections),
            Command::Drain { node } => self.drain(node),
            Command::RemoveNode { node } => self.remove_node(node),
            Command::AddOwner { owner, quota } => self.add_owner(owner, quota),
            Command::SetQuota { owner, quota } => self.set_quota(owner, quota),
            Command::Grow { owner, sections, policy } => self.grow(owner, sections, policy),
            Command::Shrink { owner, sections } => self.shrink(owner, sections),
            Command::Release { owner, index } => self.release_index(owner, index),
            Command::RemoveOwner { owner } => self.remove_owner(owner),
            Command::BeginMove { owner, index, to } => self.begin_move(owner, index, to),
            Command::CommitMove { owner, index } => self.commit_move(owner, index),
            Command::AbortMove { owner, index } => self.abort_move(owner, index),
        }?;
        self.epoch = Epoch(self.epoch.0 + 1);
        Ok(changes)
    }

    fn add_node(&mut self, node: NodeId, sections: u32) -> Applied {
        if self.nodes.contains_key(&node) {
            return Err(PlacementError::NodeExists(node.0));
        }
        let free = vec![None; sections as usize];
        self.nodes
            .insert(node, MemoryNode { state: NodeState::Up, sections: free, free: sections });
        Ok(Vec::new())
    }

    fn drain(&mut self, node: NodeId) -> Applied {
        let found = self.nodes.get_mut(&node).ok_or(PlacementError::NoSuchNode(node.0))?;
        found.state = NodeState::Draining;
        Ok(Vec::new())
    }

    fn remove_node(&mut self, node: NodeId) -> Applied {
        self.nodes.remove(&node).ok_or(PlacementError::NoSuchNode(node.0))?;
        let mut changes = Vec::new();
        let mut orphans = Vec::new();
        for (&owner, found) in &mut self.owners {
            for (index, place) in (0..).zip(&mut found.places) {
                if place.moving_to.is_some_and(|section| section.node == node) {
                    place.moving_to = None;
                }
                if place.at.is_some_and(|section| section.node == node) {
                    let from = place.at.take();
                    // What was to move from it can not be copied any more.
                    orphans.extend(place.moving_to.take());
                    changes.push(Change { owner, index, from, to: None });
                }
            }
        }
        orphans.into_iter().for_each(|section| self.release(section));
        Ok(changes)
    }

    fn add_owner(&mut self, owner: OwnerId, quota: u32) -> Applied {
        if self.owners.contains_key(&owner) {
            return Err(PlacementError::OwnerExists(owner.0));
        }
        self.owners.insert(owner, Owner { quota, places: Vec::new(), released: BTreeSet::new() });
        Ok(Vec::new())
    }

    fn set_quota(&mut self, owner: OwnerId, quota: u32) -> Applied {
        let found = self.owner_mut(owner)?;
        let has = found.sections();
        if quota < has {
            return Err(PlacementError::QuotaInUse { owner: owner.0, quota, has });
        }
        found.quota = quota;
        Ok(Vec::new())
    }

    fn grow(&mut self, owner: OwnerId, sections: u32, policy: Policy) -> Applied {
        let found = self.owner_mut(owner)?;
        let has = found.sections();
        let (wanted, quota) = (u64::from(has) + u64::from(sections), found.quota);
        if wanted > u64::from(quota) {
            return Err(PlacementError::OverQuota { owner: owner.0, wanted, quota });
        }
        let up = self.nodes.values().filter(|node| node.state == NodeState::Up);
        let free: u64 = up.map(|node| u64::from(node.free)).sum();
        if u64::from(sections) > free {
            return Err(PlacementError::NoRoom { wanted: sections, free });
        }
        let mut changes = Vec::with_capacity(sections as usize);
        for _ in 0..sections {
            let Some(node) = self.choose(policy) else { break };
            let Some(section) = self.take(node, owner) else { break };
            let index = self.owner_mut(owner)?.place(section);
            changes.push(Change { owner, index, from: None, to: Some(section) });
        }
        Ok(changes)
    }

    fn choose(&self, policy: Policy) -> Option<NodeId> {
        let has_room =
            |(_, node): &(&NodeId, &MemoryNode)| node.state == NodeState::Up && node.free > 0;
        let mut nodes = self.nodes.iter().filter(has_room);
        let chosen = match policy {
            Policy::Pack => nodes.next(),
            // Of equal ones the last is taken, so the order is turned round.
            Policy::Spread => nodes.rev().max_by_key(|(_, node)| node.free),
            Policy::Prefer(wanted) => match nodes.clone().find(|(id, _)| **id == wanted) {
                None => return self.choose(Policy::Spread),
                found => found,
            },
        };
        chosen.map(|(&id, _)| id)
    }

    fn shrink(&mut self, owner: OwnerId, sections: u32) -> Applied {
        let has = self.owner_mut(owner)?.places.len() as u32;
        let Some(left) = has.checked_sub(sections) else {
            return Err(PlacementError::NotSoMany { owner: owner.0, asked: sections, has });
        };
        Ok(self.cut(owner, left))
    }

    fn release_index(&mut self, owner: OwnerId, index: u32) -> Applied {
        self.is_not_released(owner, index)?;
        let place = self.place_mut(owner, index)?;
        if place.moving_to.is_some() {
            return Err(PlacementError::Moving { owner: owner.0, index });
        }
        let from = place.at.take();
        self.owner_mut(owner)?.released.insert(index);
        from.into_iter().for_each(|section| self.release(section));
        let change = from.map(|_| Change { owner, index, from, to: None });
        Ok(change.into_iter().collect())
    }

    fn is_not_released(&self, owner: OwnerId, index: u32) -> Result<(), PlacementError> {
        match self.owners.get(&owner).is_some_and(|found| found.released.contains(&index)) {
            true => Err(PlacementError::Released { owner: owner.0, index }),
            false => Ok(()),
        }
    }

    fn remove_owner(&mut self, owner: OwnerId) -> Applied {
        self.owner_mut(owner)?;
        let changes = self.cut(owner, 0);
        self.owners.remove(&owner);
        Ok(changes)
    }

    /// Takes an owner's sections from an index on.
    fn cut(&mut self, owner: OwnerId, left: u32) -> Vec<Change> {
        let Some(found) = self.owners.get_mut(&owner) else { return Vec::new() };
        let gone = found.places.split_off(left as usize);
        found.released.split_off(&left);
        let mut changes = Vec::with_capacity(gone.len());
        for (index, place) in (left..).zip(gone) {
            place.at.into_iter().chain(place.moving_to).for_each(|section| self.release(section));
            changes.push(Change { owner, index, from: place.at, to: None });
        }
        changes
    }

    fn begin_move(&mut self, owner: OwnerId, index: u32, to: NodeId) -> Applied {
        self.is_not_released(owner, index)?;
        let place = *self.place_mut(owner, index)?;
        let (whose, moving) = (owner.0, place.moving_to.is_some());
        if place.at.is_none() {
            return Err(PlacementError::Lost { owner: whose, index });
        }
        if moving {
            return Err(PlacementError::Moving { owner: whose, index });
        }
        let node = self.nodes.get(&to).ok_or(PlacementError::NoSuchNode(to.0))?;
        if node.state == NodeState::Draining {
            return Err(PlacementError::Draining(to.0));
        }
        let full = PlacementError::NoRoom { wanted: 1, free: 0 };
        let section = self.take(to, owner).ok_or(full)?;
        self.place_mut(owner, index)?.moving_to = Some(section);
        Ok(Vec::new())
    }

    fn commit_move(&mut self, owner: OwnerId, index: u32) -> Applied {
        let place = self.place_mut(owner, index)?;
        let not = PlacementError::NotMoving { owner: owner.0, index };
        let to = place.moving_to.take().ok_or(not)?;
        let from = place.at.replace(to);
        from.into_iter().for_each(|section| self.release(section));
        Ok(vec![Change { owner, index, from, to: Some(to) }])
    }

    fn abort_move(&mut self, owner: OwnerId, index: u32) -> Applied {
        let not = PlacementError::NotMoving { owner: owner.0, index };
        let reserved = self.place_mut(owner, index)?.moving_to.take().ok_or(not)?;
        self.release(reserved);
        Ok(Vec::new())
    }

    fn owner_mut(&mut self, owner: OwnerId) -> Result<&mut Owner, PlacementError> {
        self.owners.get_mut(&owner).ok_or(PlacementError::NoSuchOwner(owner.0))
    }

    fn place_mut(&mut self, owner: OwnerId, index: u32) -> Result<&mut Residence, PlacementError> {
        let places = &mut self.owner_mut(owner)?.places;
        let has = places.len() as u32;
        let none = PlacementError::NotSoMany { owner: owner.0, asked: index, has };
        places.get_mut(index as usize).ok_or(none)
    }

    /// Gives the lowest free section of a node to an owner.
    fn take(&mut self, node: NodeId, owner: OwnerId) -> Option<Section> {
        let found = self.nodes.get_mut(&node)?;
        let index = found.sections.iter().position(Option::is_none)?;
        found.sections[index] = Some(owner);
        found.free -= 1;
        Some(Section { node, index: index as u32 })
    }

    fn release(&mut self, section: Section) {
        if let Some(node) = self.nodes.get_mut(&section.node) {
            node.sections[section.index as usize] = None;
            node.free += 1;
        }
    }

    /// Asserts the invariants: each section is of one place of one owner or is free, and the count
    /// of free ones is right. For tests, and for a manager that has just loaded one.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check(&self) {
        let mut used = BTreeMap::new();
        for (&owner, found) in &self.owners {
            assert!(found.sections() <= found.quota, "{owner:?} over its quota");
            for &index in &found.released {
                let free = Residence { at: None, moving_to: None };
                assert_eq!(found.places.get(index as usize), Some(&free), "{owner:?} {index}");
            }
            for section in found.places.iter().flat_map(|p| p.at.into_iter().chain(p.moving_to)) {
                assert_eq!(used.insert(section, owner), None, "{section:?} is used twice");
                assert_eq!(self.owner_of(section), Some(owner), "{section:?}");
            }
        }
        for (&node, found) in &self.nodes {
            let free = found.sections.iter().filter(|section| section.is_none()).count();
            assert_eq!(free, found.free as usize, "free sections of {node:?}");
            let mine = used.keys().filter(|section| section.node == node).count();
            assert_eq!(mine + free, found.sections.len(), "{node:?} has sections of nobody");
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
