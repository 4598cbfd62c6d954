//! Granted Sections, their Buffers, and where free ones are found.

use ethermem_placement::Section as Place;
use ethermem_wire::dfabric::{FabricAddress, SECTION_BYTES};

use super::ledger::NONE;
use super::{MemoryPool, PoolError};
use crate::address::{Node, RegionId, SectionId};

/// A Buffer: free, with the next free one of its Section, or held, with its first hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Buffer {
    pub(super) link: u32,
    pub(super) is_free: bool,
}

/// A Section that is granted.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    pub(super) place: Place,
    /// The memory device's number in the pool.
    pub(super) device: usize,
    pub(super) buffers: Box<[Buffer]>,
    pub(super) free: u32,
    first_free: u32,
    /// Neighbours in the list of Sections with free Buffers, by Section.
    before: u32,
    after: u32,
}

impl Granted {
    pub(super) fn new(place: Place, device: usize, buffer_bytes: u64) -> Granted {
        let count = (SECTION_BYTES / buffer_bytes) as u32;
        let buffer = |at: u32| {
            let link = if at + 1 == count { NONE } else { at + 1 };
            Buffer { link, is_free: true }
        };
        let buffers = (0..count).map(buffer).collect();
        Granted { place, device, buffers, free: count, first_free: 0, before: NONE, after: NONE }
    }

    pub(super) fn is_all_free(&self) -> bool {
        self.free as usize == self.buffers.len()
    }

    fn take(&mut self) -> u32 {
        let at = self.first_free;
        let buffer = &mut self.buffers[at as usize];
        assert!(buffer.is_free, "a Buffer of the free list is held");
        self.first_free = buffer.link;
        (buffer.is_free, buffer.link) = (false, NONE);
        self.free -= 1;
        at
    }

    fn put(&mut self, at: u32) {
        let buffer = &mut self.buffers[at as usize];
        assert!(!buffer.is_free && buffer.link == NONE, "a held or free Buffer is freed");
        (buffer.is_free, buffer.link) = (true, self.first_free);
        self.first_free = at;
        self.free += 1;
    }

    /// Number of Buffers in the free list, for [`MemoryPool::check`].
    pub(super) fn free_listed(&self) -> usize {
        let first = (self.first_free != NONE).then_some(self.first_free);
        std::iter::successors(first, |&at| {
            let buffer = &self.buffers[at as usize];
            assert!(buffer.is_free, "a Buffer of the free list is held");
            (buffer.link != NONE).then_some(buffer.link)
        })
        .take(self.buffers.len() + 1)
        .count()
    }
}

/// A Region with an owner.
#[derive(Clone, Debug)]
pub(super) struct Region {
    /// `None`: its owner has died, and Buffers of it are still held.
    pub(super) owner: Option<Node>,
    pub(super) class: usize,
    pub(super) buffer_bytes: u64,
    pub(super) sections: Box<[Option<Granted>]>,
    pub(super) granted: u32,
    /// Places whose Sections were lost with their device. They are not used again, so that an old
    /// reference to one is never a new Section's.
    pub(super) lost: u32,
}

/// The Buffer in which an address is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Located {
    pub(super) section: SectionId,
    pub(super) at: u32,
    pub(super) bytes: u64,
}

impl Located {
    /// Address of the Buffer's first byte.
    pub(super) fn address(&self) -> FabricAddress {
        self.section.address(u64::from(self.at) * self.bytes)
    }
}

impl MemoryPool {
    pub(super) fn region(&self, region: RegionId) -> Option<&Region> {
        self.regions.get(region.0 as usize)?.as_ref()
    }

    pub(super) fn region_mut(&mut self, region: RegionId) -> &mut Region {
        let found = self.regions.get_mut(region.0 as usize).and_then(Option::as_mut);
        found.expect("the Region of a granted Section exists")
    }

    pub(super) fn granted(&self, section: SectionId) -> Option<&Granted> {
        self.region(section.region())?.sections[section.slot() as usize].as_ref()
    }

    pub(super) fn granted_mut(&mut self, section: SectionId) -> &mut Granted {
        let region = self.region_mut(section.region());
        region.sections[section.slot() as usize].as_mut().expect("the Section is granted")
    }

    /// The Buffer with this byte.
    pub(super) fn locate(&self, address: FabricAddress) -> Result<Located, PoolError> {
        let section = SectionId::of(address);
        let error = PoolError::NotABuffer(address.number());
        self.granted(section).ok_or(error)?;
        let bytes = self.region(section.region()).ok_or(error)?.buffer_bytes;
        let at = (address.number() % SECTION_BYTES / bytes) as u32;
        Ok(Located { section, at, bytes })
    }

    /// Takes a free Buffer of a node's class on a device.
    pub(super) fn take_buffer(
        &mut self,
        node: Node,
        class: usize,
        device: usize,
    ) -> Option<Located> {
        let state = &self.nodes[usize::from(node.0)].classes[class];
        let section = *state.heads.get(device).filter(|head| **head != NONE)?;
        let (section, bytes) = (SectionId(section), self.class_bytes[class]);
        let granted = self.granted_mut(section);
        let at = granted.take();
        if granted.free == 0 {
            self.unlist(section);
        }
        self.nodes[usize::from(node.0)].classes[class].free -= 1;
        Some(Located { section, at, bytes })
    }

    /// Returns a Buffer that has no holder to the owner of its Section, or to the LPPU.
    pub(super) fn put_buffer(&mut self, located: Located) {
        let section = located.section;
        let granted = self.granted_mut(section);
        granted.put(located.at);
        let (was_full, is_all_free) = (granted.free == 1, granted.is_all_free());
        let Region { owner, class, .. } = *self.region_mut(section.region());
        if let Some(owner) = owner {
            self.nodes[usize::from(owner.0)].classes[class].free += 1;
            if was_full {
                self.list(section);
            }
        } else if is_all_free {
            self.orphans_due.push(section);
        }
    }

    /// Enters a Section with free Buffers in its owner's list.
    pub(super) fn list(&mut self, section: SectionId) {
        let Some((owner, class)) = self.owner_of(section) else { return };
        let device = self.granted_mut(section).device;
        let heads = &mut self.nodes[usize::from(owner.0)].classes[class].heads;
        let first = std::mem::replace(&mut heads[device], section.0);
        let granted = self.granted_mut(section);
        (granted.before, granted.after) = (NONE, first);
        if first != NONE {
            self.granted_mut(SectionId(first)).before = section.0;
        }
    }

    /// Removes a Section from its owner's list.
    pub(super) fn unlist(&mut self, section: SectionId) {
        let Some((owner, class)) = self.owner_of(section) else { return };
        let Granted { device, before, after, .. } = *self.granted_mut(section);
        if before == NONE {
            self.nodes[usize::from(owner.0)].classes[class].heads[device] = after;
        } else {
            self.granted_mut(SectionId(before)).after = after;
        }
        if after != NONE {
            self.granted_mut(SectionId(after)).before = before;
        }
    }

    pub(super) fn owner_of(&self, section: SectionId) -> Option<(Node, usize)> {
        let region = self.region(section.region())?;
        Some((region.owner?, region.class))
    }

    /// The Sections of a list, for [`MemoryPool::check`].
    pub(super) fn listed(&self, head: u32) -> impl Iterator<Item = SectionId> + '_ {
        let first = (head != NONE).then_some(SectionId(head));
        std::iter::successors(first, |&section| {
            let after = self.granted(section).map_or(NONE, |granted| granted.after);
            (after != NONE).then_some(SectionId(after))
        })
    }
}
