//! The control plane: devices and nodes join, Sections are granted and given back (section 4.1).

use ethermem_placement::{Change, Command, NodeId, OwnerId, Policy, Section};

use super::sections::{self, Region};
use super::{MemoryPool, NONE, PoolError, Preference};
use crate::address::{Node, REGION_SECTIONS, RegionId, SectionId};

/// A Section that a node has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The Section.
    pub section: SectionId,
    /// Where it is.
    pub place: Section,
    /// Size of its Buffers in bytes.
    pub buffer_bytes: u64,
    /// Another node had it last: the LPPU clears it before the node uses it.
    pub must_clear: bool,
}

pub(super) fn owner_id(region: RegionId) -> OwnerId {
    OwnerId(u64::from(region.0))
}

impl MemoryPool {
    /// A memory device joins, with so many Sections.
    ///
    /// # Errors
    /// [`PoolError::Placement`].
    pub fn add_device(&mut self, device: NodeId, sections: u32) -> Result<(), PoolError> {
        self.placement.apply(&Command::AddNode { node: device, sections })?;
        self.devices.push(Some(device));
        for class in self.nodes.iter_mut().flat_map(|member| &mut member.classes) {
            class.heads.push(NONE);
        }
        Ok(())
    }

    /// A node joins, or comes back after its death. It may have `quota` Sections, and prefers
    /// devices in the order of `near`: first its own local memory.
    ///
    /// # Errors
    /// [`PoolError::NodeExists`], [`PoolError::NoSuchNode`] beyond the rack's most,
    /// [`PoolError::NoSuchDevice`].
    pub fn join(&mut self, node: Node, quota: u32, near: &[NodeId]) -> Result<(), PoolError> {
        let near = near.iter().map(|&device| self.device_number(device));
        let near = near.collect::<Result<Vec<_>, _>>()?;
        let classes = self.no_lists();
        let at = usize::from(node.0);
        let member = self.nodes.get_mut(at).ok_or(PoolError::NoSuchNode(node.0))?;
        if member.is_there {
            return Err(PoolError::NodeExists(node.0));
        }
        member.incarnation += 1;
        (member.is_there, member.quota, member.sections) = (true, quota, 0);
        (member.near, member.classes) = (near, classes);
        Ok(())
    }

    /// The LPPU gives a node one more Section, with Buffers of a class: see
    /// [`PoolError::NoBuffer`].
    ///
    /// # Errors
    /// [`PoolError::OverQuota`], [`PoolError::NoRegion`], [`PoolError::Placement`] if no device has
    /// room, [`PoolError::NoSuchNode`], [`PoolError::NoSuchDevice`].
    ///
    /// # Panics
    /// If `class` is no class of the pool.
    pub fn grant(
        &mut self,
        node: Node,
        class: usize,
        preference: Preference,
    ) -> Result<Granted, PoolError> {
        let member = self.member(node)?;
        if member.sections >= member.quota {
            return Err(PoolError::OverQuota { node: node.0, quota: member.quota });
        }
        let policy = self.policy(node, preference)?;
        let region = self.region_with_room(node, class)?;
        let grow = Command::Grow { owner: owner_id(region), sections: 1, policy };
        let placed = match self.placement.apply(&grow) {
            Ok(changes) => changes.first().copied(),
            Err(error) => {
                self.close_if_empty(region);
                return Err(error.into());
            }
        };
        let Some(Change { index, to: Some(place), .. }) = placed else {
            return Err(PoolError::NoRegion);
        };
        Ok(self.enter(node, SectionId::of_region(region, index), place))
    }

    fn policy(&self, node: Node, preference: Preference) -> Result<Policy, PoolError> {
        if let Preference::Device(device) = preference {
            self.device_number(device)?;
            if self.placement.free_sections(device).is_some_and(|free| free > 0) {
                return Ok(Policy::Prefer(device));
            }
        }
        let near = self.member(node)?.near.iter().filter_map(|&device| self.devices[device]);
        let mut with_room = near
            .filter(|&device| self.placement.free_sections(device).is_some_and(|free| free > 0));
        Ok(with_room.next().map_or(Policy::Spread, Policy::Prefer))
    }

    /// A Region of this owner and class that has room, or a new one.
    fn region_with_room(&mut self, node: Node, class: usize) -> Result<RegionId, PoolError> {
        let has_room = |region: &Region| {
            let used = region.granted + region.lost;
            region.owner == Some(node) && region.class == class && used < REGION_SECTIONS
        };
        let found = self.regions.iter().position(|region| region.as_ref().is_some_and(has_room));
        if let Some(found) = found {
            return Ok(RegionId(found as u32));
        }
        let region = self.unused_region().ok_or(PoolError::NoRegion)?;
        let owner = owner_id(region);
        self.placement.apply(&Command::AddOwner { owner, quota: REGION_SECTIONS })?;
        let sections = vec![None; REGION_SECTIONS as usize].into();
        let buffer_bytes = self.class_bytes[class];
        let new = Region { owner: Some(node), class, buffer_bytes, sections, granted: 0, lost: 0 };
        self.regions[region.0 as usize] = Some(new);
        self.nodes.iter_mut().for_each(|member| member.table.add_region(region));
        Ok(region)
    }

    /// The unused Region whose last use is longest ago: addresses are reused as late as possible.
    fn unused_region(&mut self) -> Option<RegionId> {
        let count = self.regions.len();
        let mut turns = (0..count).map(|after| (self.next_region + after) % count);
        let found = turns.find(|&at| self.regions[at].is_none())?;
        self.next_region = (found + 1) % count;
        Some(RegionId(found as u32))
    }

    fn enter(&mut self, node: Node, section: SectionId, place: Section) -> Granted {
        let device = self.devices.iter().position(|known| *known == Some(place.node));
        let device = device.expect("the placement has the pool's devices alone");
        let region = self.region_mut(section.region());
        let buffer_bytes = region.buffer_bytes;
        let granted = sections::Granted::new(place, device, buffer_bytes);
        let (class, buffers) = (region.class, u64::from(granted.free));
        region.sections[section.slot() as usize] = Some(granted);
        region.granted += 1;
        let member = &mut self.nodes[usize::from(node.0)];
        member.sections += 1;
        member.classes[class].free += buffers;
        member.classes[class].sections += 1;
        member.table.own(section, place);
        let owner = (node, member.incarnation);
        let last = self.last_owner.insert(place, owner);
        self.list(section);
        Granted { section, place, buffer_bytes, must_clear: last.is_some_and(|last| last != owner) }
    }

    /// A class of which a node's daemon asks for a Section in advance: it uses the class, and has
    /// few free Buffers of it ("responsible for allocating Sections in advance", 4.1).
    #[must_use]
    pub fn shortage(&self, node: Node) -> Option<usize> {
        let member = self.member(node).ok()?;
        let mut classes = member.classes.iter().zip(&self.class_bytes);
        classes.position(|(class, &bytes)| {
            let a_section = ethermem_wire::dfabric::SECTION_BYTES / bytes;
            let low = u64::from(self.buffers_low).min(a_section);
            class.sections > 0 && class.free < low
        })
    }

    /// A Section that a node's daemon has no use for: its Buffers are all free, and the class has
    /// enough without it ("If there are enough Buffers, the daemon will further free").
    #[must_use]
    pub fn surplus(&self, node: Node) -> Option<SectionId> {
        let member = self.member(node).ok()?;
        member.classes.iter().zip(&self.class_bytes).find_map(|(class, &bytes)| {
            let a_section = ethermem_wire::dfabric::SECTION_BYTES / bytes;
            if class.free < a_section * u64::from(self.sections_kept + 1) {
                return None;
            }
            let all = class.heads.iter().flat_map(|&head| self.listed(head));
            let mut idle =
                all.filter(|&one| self.granted(one).is_some_and(sections::Granted::is_all_free));
            idle.next()
        })
    }

    /// A node's daemon gives a Section back to the LPPU.
    ///
    /// # Errors
    /// [`PoolError::InUse`] if it is not the node's, or a Buffer of it is held.
    pub fn give_back(&mut self, node: Node, section: SectionId) -> Result<(), PoolError> {
        let is_owner = self.owner_of(section).is_some_and(|(owner, _)| owner == node);
        let is_idle = self.granted(section).is_some_and(sections::Granted::is_all_free);
        if !is_owner || !is_idle {
            return Err(PoolError::InUse(section.0));
        }
        self.unlist(section);
        self.leave(section);
        Ok(())
    }

    /// Takes a Section without held Buffers out of the records.
    pub(super) fn leave(&mut self, section: SectionId) {
        self.forget_section(section);
        let (owner, index) = (owner_id(section.region()), section.slot());
        let release = Command::Release { owner, index };
        self.placement.apply(&release).expect("a granted Section is in the placement");
        self.close_if_empty(section.region());
    }

    /// As [`MemoryPool::leave`], of a Section that was lost with its device.
    pub(super) fn leave_lost(&mut self, section: SectionId) {
        self.forget_section(section);
        self.region_mut(section.region()).lost += 1;
        self.close_if_empty(section.region());
    }

    fn forget_section(&mut self, section: SectionId) {
        let (region, index) = (section.region(), section.slot());
        let owner = self.owner_of(section);
        let gone = self.region_mut(region).sections[index as usize].take();
        self.region_mut(region).granted -= 1;
        if let (Some((owner, class)), Some(gone)) = (owner, gone) {
            let member = &mut self.nodes[usize::from(owner.0)];
            member.classes[class].free -= u64::from(gone.free);
            member.classes[class].sections -= 1;
            member.sections -= 1;
            member.table.disown(section);
        }
    }

    pub(super) fn close_if_empty(&mut self, region: RegionId) {
        if self.region(region).is_none_or(|found| found.granted > 0) {
            return;
        }
        self.regions[region.0 as usize] = None;
        self.nodes.iter_mut().for_each(|member| member.table.remove_region(region));
        let owner = owner_id(region);
        self.placement.apply(&Command::RemoveOwner { owner }).expect("a Region is an owner");
    }
}
