//! The global memory manager (section III.C): who has which memory, and what to tell both ends.
//!
//! It gives memory in sections: a section is a page of a memory node's translator, and a section of
//! a compute node's CMem. It decides; the world carries its [`Instruction`]s out, in their order.

use std::collections::BTreeMap;

use ethermem_placement::{
    Change, Command, Epoch, NodeId, OwnerId, Placement, PlacementError, Policy, Section,
};
use ethermem_wire::cxl::{Mac, Sequence};
use thiserror::Error;

/// What is done when a compute node asks for memory that another one maps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SharedRegions {
    /// It is refused, with the name of who has it.
    #[default]
    Refuse,
    /// Both map it, and neither caches it.
    Uncached,
}

/// What an end must do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction {
    /// Both ends begin at this sequence number.
    Attach {
        /// The compute node.
        compute: Mac,
        /// The memory node.
        memory: NodeId,
        /// The first sequence number.
        initial: Sequence,
    },
    /// The memory node maps a page of the compute node's CMem to a page of its own.
    MapPage {
        /// The compute node.
        compute: Mac,
        /// The memory node.
        memory: NodeId,
        /// The page of CMem.
        page: u64,
        /// The page of MPMem.
        frame: u64,
    },
    /// The memory node ends such a mapping.
    UnmapPage {
        /// The compute node.
        compute: Mac,
        /// The memory node.
        memory: NodeId,
        /// The page of CMem.
        page: u64,
    },
    /// The compute node writes its lines of a section, and forgets them and the section.
    UnmapSection {
        /// The compute node.
        compute: Mac,
        /// The section of CMem.
        section: u64,
    },
    /// The compute node maps a section.
    MapSection {
        /// The compute node.
        compute: Mac,
        /// The section of CMem.
        section: u64,
        /// The memory node that has it.
        memory: NodeId,
        /// True if its lines may be in the cache.
        is_cached: bool,
    },
}

/// Why the manager refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ManagerError {
    /// The placement refused.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// There is no such compute node.
    #[error("compute node {0} is not known")]
    NoSuchNode(Mac),
    /// The section is mapped by another compute node.
    #[error("section {section} is mapped by compute node {by}: regions are not shared")]
    Shared {
        /// The section of CMem of who has it.
        section: u64,
        /// Who has it.
        by: Mac,
    },
    /// The compute node has no such section, or has lost it.
    #[error("compute node {node} has no section {section}")]
    NoSuchSection {
        /// The compute node.
        node: Mac,
        /// The section of CMem.
        section: u64,
    },
    /// The compute node has something at this section of its CMem.
    #[error("section {section} of compute node {node} is in use")]
    InUse {
        /// The compute node.
        node: Mac,
        /// The section of CMem.
        section: u64,
    },
}

/// A section that a compute node maps, of another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Borrowed {
    of: Mac,
    section: u64,
}

/// The manager of one pool of memory nodes. The records are in this value.
#[derive(Clone, Debug, Default)]
pub struct GlobalMemoryManager {
    shared: SharedRegions,
    placement: Placement,
    /// Compute nodes that are attached to a memory node.
    attached: BTreeMap<(Mac, NodeId), Sequence>,
    /// By compute node and section of its CMem.
    borrowed: BTreeMap<(Mac, u64), Borrowed>,
}

/// CMem begins with a node's own sections; those of others are behind this one.
const BORROWED_FROM: u64 = 1 << 20;

impl GlobalMemoryManager {
    /// A manager without memory.
    #[must_use]
    pub fn new(shared: SharedRegions) -> GlobalMemoryManager {
        GlobalMemoryManager { shared, ..GlobalMemoryManager::default() }
    }

    /// The records: which section is whose.
    #[must_use]
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The number of changes so far.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.placement.epoch()
    }

    /// A memory node joins, with so many sections.
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn add_memory(&mut self, memory: NodeId, sections: u32) -> Result<(), ManagerError> {
        self.placement.apply(&Command::AddNode { node: memory, sections })?;
        Ok(())
    }

    /// A compute node joins, whose share is so many sections.
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn add_compute(&mut self, compute: Mac, share: u32) -> Result<(), ManagerError> {
        self.placement.apply(&Command::AddOwner { owner: owner(compute), quota: share })?;
        Ok(())
    }

    /// Gives a compute node memory, behind what it has. One that outgrew its share gets a larger
    /// share first, by [`GlobalMemoryManager::set_share`].
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn grow(
        &mut self,
        compute: Mac,
        sections: u32,
        policy: Policy,
    ) -> Result<Vec<Instruction>, ManagerError> {
        let grow = Command::Grow { owner: owner(compute), sections, policy };
        let changes = self.placement.apply(&grow)?;
        Ok(self.instruct(&changes))
    }

    /// Takes back the last sections of a compute node.
    ///
    /// # Errors
    /// [`ManagerError`]; [`ManagerError::Shared`] while another one maps one of them.
    pub fn shrink(
        &mut self,
        compute: Mac,
        sections: u32,
    ) -> Result<Vec<Instruction>, ManagerError> {
        let has = self.placement.sections_of(owner(compute));
        let left = has.ok_or(ManagerError::NoSuchNode(compute))?.saturating_sub(sections);
        let mut borrowers = self.borrowed.iter();
        let is_gone =
            |borrowed: &Borrowed| borrowed.of == compute && borrowed.section >= left.into();
        if let Some((&(by, _), borrowed)) = borrowers.find(|(_, borrowed)| is_gone(borrowed)) {
            return Err(ManagerError::Shared { section: borrowed.section, by });
        }
        let changes = self.placement.apply(&Command::Shrink { owner: owner(compute), sections })?;
        Ok(self.instruct(&changes))
    }

    /// Changes a compute node's share.
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn set_share(&mut self, compute: Mac, share: u32) -> Result<(), ManagerError> {
        self.placement.apply(&Command::SetQuota { owner: owner(compute), quota: share })?;
        Ok(())
    }

    /// Reserves a place for a section on another memory node. The bytes are to be copied there, and
    /// [`GlobalMemoryManager::end_move`] makes it the section's place.
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn begin_move(
        &mut self,
        compute: Mac,
        section: u32,
        to: NodeId,
    ) -> Result<(), ManagerError> {
        let begin = Command::BeginMove { owner: owner(compute), index: section, to };
        self.placement.apply(&begin)?;
        Ok(())
    }

    /// Ends a move. The compute node must have written and forgotten the section's lines before,
    /// and must not use it until the last instruction was carried out.
    ///
    /// # Errors
    /// [`ManagerError`].
    pub fn end_move(
        &mut self,
        compute: Mac,
        section: u32,
    ) -> Result<Vec<Instruction>, ManagerError> {
        let commit = Command::CommitMove { owner: owner(compute), index: section };
        let changes = self.placement.apply(&commit)?;
        Ok(self.instruct(&changes))
    }

    /// A memory node is gone, and what was on it.
    ///
    /// # Errors
    /// [`ManagerError::Placement`].
    pub fn lose_memory(&mut self, memory: NodeId) -> Result<Vec<Instruction>, ManagerError> {
        let changes = self.placement.apply(&Command::RemoveNode { node: memory })?;
        let instructions = self.instruct(&changes);
        self.attached.retain(|(_, node), _| *node != memory);
        Ok(instructions)
    }

    /// Lets a compute node map a section of another one, at a section of its own CMem from 2^20 on.
    /// From then on neither caches it.
    ///
    /// # Errors
    /// [`ManagerError`]; always [`ManagerError::Shared`] with [`SharedRegions::Refuse`].
    pub fn share(
        &mut self,
        section: u64,
        of: Mac,
        with: Mac,
        at: u64,
    ) -> Result<Vec<Instruction>, ManagerError> {
        if self.placement.sections_of(owner(with)).is_none() {
            return Err(ManagerError::NoSuchNode(with));
        }
        let found = u32::try_from(section).ok();
        let found = found.and_then(|index| self.placement.locate(owner(of), index));
        let Some(place) = found else {
            return Err(ManagerError::NoSuchSection { node: of, section });
        };
        if self.shared == SharedRegions::Refuse {
            return Err(ManagerError::Shared { section, by: of });
        }
        if of == with || at < BORROWED_FROM || self.borrowed.contains_key(&(with, at)) {
            return Err(ManagerError::InUse { node: with, section: at });
        }
        let was_cached = !self.is_shared(of, section);
        self.borrowed.insert((with, at), Borrowed { of, section });
        let mut instructions = Vec::new();
        if was_cached {
            // Its owner may have lines of it: they go first.
            instructions.push(Instruction::UnmapSection { compute: of, section });
            instructions.push(self.map_section(of, section, place));
        }
        self.map(&mut instructions, with, at, place);
        Ok(instructions)
    }

    fn is_shared(&self, of: Mac, section: u64) -> bool {
        self.borrowed.values().any(|borrowed| *borrowed == Borrowed { of, section })
    }

    /// Who maps a section of a compute node, with the section in their CMem: itself first.
    fn mappers(&self, of: Mac, section: u64) -> Vec<(Mac, u64)> {
        let others = self.borrowed.iter();
        let others = others.filter(|(_, found)| **found == Borrowed { of, section });
        std::iter::once((of, section)).chain(others.map(|(&mapper, _)| mapper)).collect()
    }

    fn instruct(&mut self, changes: &[Change]) -> Vec<Instruction> {
        let mut instructions = Vec::new();
        for change in changes {
            let (of, section) = (mac(change.owner), u64::from(change.index));
            let mappers = self.mappers(of, section);
            if let Some(from) = change.from {
                for &(compute, section) in &mappers {
                    instructions.push(Instruction::UnmapSection { compute, section });
                    let (memory, page) = (from.node, section);
                    instructions.push(Instruction::UnmapPage { compute, memory, page });
                }
            }
            if let Some(to) = change.to {
                for &(compute, section) in &mappers {
                    self.map(&mut instructions, compute, section, to);
                }
            } else {
                self.borrowed.retain(|_, found| *found != Borrowed { of, section });
            }
        }
        instructions
    }

    fn map(&mut self, into: &mut Vec<Instruction>, compute: Mac, section: u64, place: Section) {
        let memory = place.node;
        if !self.attached.contains_key(&(compute, memory)) {
            let initial = self.initial();
            self.attached.insert((compute, memory), initial);
            into.push(Instruction::Attach { compute, memory, initial });
        }
        let (page, frame) = (section, u64::from(place.index));
        into.push(Instruction::MapPage { compute, memory, page, frame });
        into.push(self.map_section(compute, section, place));
    }

    fn map_section(&self, compute: Mac, section: u64, place: Section) -> Instruction {
        let is_borrowed = self.borrowed.contains_key(&(compute, section));
        let is_cached = !is_borrowed && !self.is_shared(compute, section);
        Instruction::MapSection { compute, section, memory: place.node, is_cached }
    }

    /// A first sequence number far from those before it: frames of an earlier attachment are then
    /// outside the window. The factor is odd, so that no two epochs below 2^32 have the same one.
    fn initial(&self) -> Sequence {
        Sequence((self.placement.epoch().0 as u32).wrapping_mul(0x9e37_79b1))
    }
}

/// A compute node's name in the placement: its address as a number.
fn owner(compute: Mac) -> OwnerId {
    let [a, b, c, d, e, f] = compute.0;
    OwnerId(u64::from_be_bytes([0, 0, a, b, c, d, e, f]))
}

fn mac(owner: OwnerId) -> Mac {
    let [_, _, a, b, c, d, e, f] = owner.0.to_be_bytes();
    Mac([a, b, c, d, e, f])
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 0x0a]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 0x0b]);

    fn manager(shared: SharedRegions) -> GlobalMemoryManager {
        let mut manager = GlobalMemoryManager::new(shared);
        (1..=2).for_each(|node| manager.add_memory(NodeId(node), 4).unwrap());
        [A, B].into_iter().for_each(|compute| manager.add_compute(compute, 3).unwrap());
        manager
    }

    #[test]
    fn memory_is_given_with_all_that_both_ends_need() {
        let mut manager = manager(SharedRegions::Refuse);
        let given = manager.grow(A, 2, Policy::Pack).unwrap();
        let memory = NodeId(1);
        let initial = Sequence(5_u32.wrapping_mul(0x9e37_79b1));
        let pages = |page| Instruction::MapPage { compute: A, memory, page, frame: page };
        let sections =
            |section| Instruction::MapSection { compute: A, section, memory, is_cached: true };
        let attach = Instruction::Attach { compute: A, memory, initial };
        assert_eq!(given, [attach, pages(0), sections(0), pages(1), sections(1)]);
    }

    #[test]
    fn a_node_that_outgrows_its_share_is_refused_until_it_gets_a_larger_one() {
        let mut manager = manager(SharedRegions::Refuse);
        manager.grow(A, 3, Policy::Pack).unwrap();
        let error = manager.grow(A, 2, Policy::Pack).unwrap_err().to_string();
        assert_eq!(error, "owner 2199023255562: 5 sections: must be at most 3");
        manager.set_share(A, 5).unwrap();
        let given = manager.grow(A, 2, Policy::Pack).unwrap();
        // Section 3 is on the first memory node, section 4 on the second, which A is attached to.
        let attached: Vec<_> =
            given.iter().filter(|step| matches!(step, Instruction::Attach { .. })).collect();
        assert!(matches!(attached[..], [Instruction::Attach { memory: NodeId(2), .. }]));
    }

    #[test]
    fn a_region_that_two_map_is_refused_by_name_or_uncached_for_both() {
        let mut refusing = manager(SharedRegions::Refuse);
        refusing.grow(A, 1, Policy::Pack).unwrap();
        let error = refusing.share(0, A, B, BORROWED_FROM).unwrap_err().to_string();
        let named = "section 0 is mapped by compute node 02:00:00:00:00:0a: regions are not shared";
        assert_eq!(error, named);
        let mut sharing = manager(SharedRegions::Uncached);
        sharing.grow(A, 1, Policy::Pack).unwrap();
        let steps = sharing.share(0, A, B, BORROWED_FROM).unwrap();
        assert_eq!(steps[0], Instruction::UnmapSection { compute: A, section: 0 });
        let uncached =
            |step: &&Instruction| matches!(step, Instruction::MapSection { is_cached: false, .. });
        assert_eq!(steps.iter().filter(uncached).count(), 2);
        let shared = ManagerError::Shared { section: 0, by: B };
        assert_eq!(sharing.shrink(A, 1), Err(shared));
        // A move takes both along.
        sharing.begin_move(A, 0, NodeId(2)).unwrap();
        let steps = sharing.end_move(A, 0).unwrap();
        let moved =
            |step: &&Instruction| matches!(step, Instruction::MapPage { memory: NodeId(2), .. });
        assert_eq!(steps.iter().filter(moved).count(), 2);
        assert_eq!(steps.iter().filter(uncached).count(), 2);
    }

    #[test]
    fn a_lost_memory_node_takes_its_sections_from_those_who_map_them() {
        let mut manager = manager(SharedRegions::Refuse);
        manager.grow(A, 2, Policy::Spread).unwrap();
        let steps = manager.lose_memory(NodeId(1)).unwrap();
        assert_eq!(steps[0], Instruction::UnmapSection { compute: A, section: 0 });
        assert_eq!(steps.len(), 2, "the section on the other one stays: {steps:?}");
        assert_eq!(manager.placement().locate(owner(A), 1).map(|s| s.node), Some(NodeId(2)));
        assert_eq!(mac(owner(A)), A);
    }
}
