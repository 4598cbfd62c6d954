//! Nodes that die and devices that are lost: references come back, and no node reads another's
//! memory.

use ethermem_placement::{Command, NodeId};
use ethermem_wire::dfabric::FabricAddress;

use super::sections::{self, Located};
use super::{MemoryPool, PoolError};
use crate::address::{Node, RegionId, SectionId};

/// What a dead node leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Obituary {
    /// References that came back.
    pub references: u64,
    /// Its Sections that went back to the LPPU.
    pub returned: u32,
    /// Its Sections of which other nodes hold Buffers: they return with the last of these.
    pub orphans: u32,
}

/// What was lost with a memory device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Sections that were granted on it.
    pub sections: u32,
    /// References to Buffers there.
    pub references: u64,
}

impl MemoryPool {
    /// A node has died. Its references come back, and its Sections return to the LPPU as soon as no
    /// other node holds a Buffer of them. Until it joins again, all that it asks is refused.
    ///
    /// Its local memory, if it is gone too, is another call: [`MemoryPool::device_lost`].
    ///
    /// # Errors
    /// [`PoolError::NoSuchNode`].
    pub fn node_died(&mut self, node: Node) -> Result<Obituary, PoolError> {
        self.member(node)?;
        let mut left = Obituary::default();
        self.skbs.remove_all_of(node);
        while let Some(buffer) = self.ledger.first_of(node) {
            let located = self.locate(buffer)?;
            left.references += u64::from(self.count(located, node));
            self.take_holds(located, node, u32::MAX)?;
            self.free_if_unheld(located);
        }
        let owned: Vec<SectionId> = self.sections_of(node).collect();
        for section in owned {
            if self.granted(section).is_some_and(sections::Granted::is_all_free) {
                self.give_back(node, section)?;
                left.returned += 1;
            } else {
                left.orphans += 1;
            }
        }
        self.orphan_regions(node);
        let member = self.member_mut(node)?;
        (member.is_there, member.sections) = (false, 0);
        member.classes.clear();
        Ok(left)
    }

    fn sections_of(&self, node: Node) -> impl Iterator<Item = SectionId> + '_ {
        let numbered = self.regions.iter().enumerate();
        let owned = numbered.filter_map(move |(at, region)| {
            let region = region.as_ref().filter(|region| region.owner == Some(node))?;
            Some((RegionId(at as u32), region))
        });
        owned.flat_map(|(id, region)| {
            let slots = (0..).zip(&region.sections);
            let granted = slots.filter(|(_, section)| section.is_some());
            granted.map(move |(slot, _)| SectionId::of_region(id, slot))
        })
    }

    fn orphan_regions(&mut self, node: Node) {
        let left: Vec<SectionId> = self.sections_of(node).collect();
        for section in left {
            self.nodes[usize::from(node.0)].table.disown(section);
        }
        for region in self.regions.iter_mut().flatten() {
            if region.owner == Some(node) {
                region.owner = None;
            }
        }
    }

    /// Returns a dead node's Section, of which no Buffer is held any more, to the LPPU; `None` if
    /// there is none. The LPPU calls this after frees, as part of its control plane.
    pub fn take_orphan(&mut self) -> Option<SectionId> {
        let section = self.orphans_due.pop()?;
        self.leave(section);
        Some(section)
    }

    /// A memory device is gone, and what was on it. All that held Buffers there have lost them:
    /// the Sections leave every table at once.
    ///
    /// # Errors
    /// [`PoolError::NoSuchDevice`].
    pub fn device_lost(&mut self, device: NodeId) -> Result<Losses, PoolError> {
        let number = self.device_number(device)?;
        let mut losses = Losses::default();
        let all: Vec<SectionId> = self.sections_on(number).collect();
        self.skbs.lose(|data| all.binary_search(&SectionId::of(data)).is_ok());
        self.placement.apply(&Command::RemoveNode { node: device })?;
        self.devices[number] = None;
        for section in all {
            losses.sections += 1;
            losses.references += self.drop_holds(section);
            if self.granted(section).is_some_and(|granted| granted.free > 0) {
                self.unlist(section);
            }
            self.orphans_due.retain(|due| *due != section);
            self.leave_lost(section);
        }
        self.last_owner.retain(|place, _| place.node != device);
        Ok(losses)
    }

    /// Sections on a device, rising.
    fn sections_on(&self, device: usize) -> impl Iterator<Item = SectionId> + '_ {
        let numbered = self.regions.iter().enumerate();
        numbered.filter_map(|(at, region)| Some((at, region.as_ref()?))).flat_map(
            move |(at, region)| {
                let slots = (0..).zip(&region.sections);
                let on = slots.filter(move |(_, section)| {
                    section.as_ref().is_some_and(|granted| granted.device == device)
                });
                on.map(move |(slot, _)| SectionId::of_region(RegionId(at as u32), slot))
            },
        )
    }

    /// Takes all references to Buffers of a Section from all holders; the Buffers are then free.
    fn drop_holds(&mut self, section: SectionId) -> u64 {
        let mut dropped = 0;
        let bytes = self.region_mut(section.region()).buffer_bytes;
        for at in 0..self.granted_mut(section).buffers.len() as u32 {
            let located = Located { section, at, bytes };
            while let Some((holder, count)) = self.first_holder(located) {
                dropped += u64::from(count);
                let taken = self.take_holds(located, holder, u32::MAX);
                taken.expect("a holder of the list holds the Buffer");
                self.free_if_unheld(located);
            }
        }
        dropped
    }

    fn first_holder(&self, located: Located) -> Option<(Node, u32)> {
        let buffer = self.granted(located.section)?.buffers[located.at as usize];
        if buffer.is_free {
            return None;
        }
        self.ledger.holders(buffer.link).next()
    }

    /// The references of a node: each Buffer that it holds, and how often.
    pub fn references_of(&self, node: Node) -> impl Iterator<Item = (FabricAddress, u32)> + '_ {
        let known = usize::from(node.0) < self.nodes.len();
        known.then(|| self.ledger.all_of(node)).into_iter().flatten()
    }
}
