//! The mapping table of a node: from Sections of the fabric address space to places in devices
//! (section 4.1). The node's CXL port translates each access by it, and refuses what it has not.

use ethermem_placement::{NodeId, Section};
use ethermem_wire::dfabric::{FabricAddress, SECTION_BYTES};
use thiserror::Error;

use crate::address::{REGION_SECTIONS, RegionId, SectionId};

/// Where a byte is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Physical {
    /// The memory device.
    pub device: NodeId,
    /// The byte of the device.
    pub byte: u64,
}

/// Why a port refuses an access. Nothing was read or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AccessFault {
    /// The node's table does not have the Section.
    #[error("{0:#x}: no Section of this node is there")]
    NotMapped(u64),
    /// The access crosses the end of a Section.
    #[error("{length} B at {address:#x}: must not cross the end of a Section")]
    Crosses {
        /// The first byte.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
    /// The node holds no reference to a Buffer with these bytes.
    #[error("{length} B at {address:#x}: the node holds no Buffer with these bytes")]
    NotHeld {
        /// The first byte.
        address: u64,
        /// Number of bytes.
        length: u64,
    },
}

/// The entry of a Section. It is valid while the node owns the Section or holds Buffers of it.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    place: Option<Section>,
    is_owned: bool,
    /// Buffers of the Section to which the node holds references.
    held: u32,
}

/// The mapping table of one node.
#[derive(Clone, Debug, Default)]
pub struct MappingTable {
    /// By Region; a Region has its part of the table while it has an owner. The part of a node
    /// that has no Section of the Region is empty until its first one: a rack of n nodes has n
    /// Regions, and most nodes see few of them.
    regions: Vec<Option<Box<[Entry]>>>,
}

impl MappingTable {
    /// Makes room for the entries of a Region.
    pub(crate) fn add_region(&mut self, region: RegionId) {
        let at = region.0 as usize;
        if self.regions.len() <= at {
            self.regions.resize_with(at + 1, || None);
        }
        self.regions[at] = Some(Box::default());
    }

    pub(crate) fn remove_region(&mut self, region: RegionId) {
        if let Some(part) = self.regions.get_mut(region.0 as usize) {
            *part = None;
        }
    }

    fn entry(&self, section: SectionId) -> Option<&Entry> {
        let part = self.regions.get(section.region().0 as usize)?.as_ref()?;
        part.get(section.slot() as usize)
    }

    fn change(&mut self, section: SectionId, change: impl FnOnce(&mut Entry)) {
        let part = self.regions.get_mut(section.region().0 as usize).and_then(Option::as_mut);
        let part = part.expect("a granted Section's Region is in every table");
        if part.is_empty() {
            *part = vec![Entry::default(); REGION_SECTIONS as usize].into();
        }
        let entry = &mut part[section.slot() as usize];
        change(entry);
        if !entry.is_owned && entry.held == 0 {
            entry.place = None;
        }
    }

    /// The node owns a Section from now on.
    pub(crate) fn own(&mut self, section: SectionId, place: Section) {
        self.change(section, |entry| (entry.place, entry.is_owned) = (Some(place), true));
    }

    /// The node no longer owns a Section.
    pub(crate) fn disown(&mut self, section: SectionId) {
        self.change(section, |entry| entry.is_owned = false);
    }

    /// The node holds one more Buffer of a Section.
    pub(crate) fn hold(&mut self, section: SectionId, place: Section) {
        self.change(section, |entry| {
            entry.place = Some(place);
            entry.held += 1;
        });
    }

    /// The node holds one Buffer of a Section less.
    pub(crate) fn release(&mut self, section: SectionId) {
        self.change(section, |entry| entry.held -= 1);
    }

    /// Number of Buffers of a Section that the node holds.
    #[must_use]
    pub fn held(&self, section: SectionId) -> u32 {
        self.entry(section).map_or(0, |entry| entry.held)
    }

    /// Where a Section is, if the node may access it.
    #[must_use]
    pub fn place(&self, section: SectionId) -> Option<Section> {
        self.entry(section)?.place
    }

    /// Translates an access of `length` bytes.
    ///
    /// # Errors
    /// [`AccessFault::NotMapped`], [`AccessFault::Crosses`].
    pub fn check(&self, address: FabricAddress, length: u64) -> Result<Physical, AccessFault> {
        let number = address.number();
        let within = number % SECTION_BYTES;
        if within.checked_add(length).is_none_or(|end| end > SECTION_BYTES) {
            return Err(AccessFault::Crosses { address: number, length });
        }
        let place = self.place(SectionId::of(address)).ok_or(AccessFault::NotMapped(number))?;
        let byte = u64::from(place.index) * SECTION_BYTES + within;
        Ok(Physical { device: place.node, byte })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECTION: SectionId = SectionId(513);
    const PLACE: Section = Section { node: NodeId(7), index: 3 };

    #[test]
    fn a_section_is_mapped_while_it_is_owned_or_held() {
        let mut table = MappingTable::default();
        let (first, last) = (SECTION.address(0), SECTION.address(SECTION_BYTES - 1));
        assert_eq!(table.check(first, 64), Err(AccessFault::NotMapped(first.number())));
        table.add_region(RegionId(1));
        assert_eq!(table.check(first, 64), Err(AccessFault::NotMapped(first.number())));
        table.own(SECTION, PLACE);
        table.hold(SECTION, PLACE);
        let byte = 4 * SECTION_BYTES - 1;
        assert_eq!(table.check(last, 1), Ok(Physical { device: NodeId(7), byte }));
        table.disown(SECTION);
        assert!(table.check(first, SECTION_BYTES).is_ok());
        table.release(SECTION);
        assert!(table.check(first, 1).is_err());
    }

    #[test]
    fn no_access_reaches_the_next_section() {
        let mut table = MappingTable::default();
        table.add_region(RegionId(1));
        [SECTION, SectionId(514)].into_iter().for_each(|section| table.own(section, PLACE));
        let address = SECTION.address(SECTION_BYTES - 64);
        assert!(table.check(address, 64).is_ok());
        for length in [65, SECTION_BYTES, u64::MAX] {
            let fault = AccessFault::Crosses { address: address.number(), length };
            assert_eq!(table.check(address, length), Err(fault));
        }
    }
}
