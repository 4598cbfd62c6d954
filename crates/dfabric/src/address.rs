//! The fabric address space: Regions of Sections, Sections of Buffers (section 4.1).

use ethermem_wire::dfabric::{ADDRESS_BITS, FabricAddress, SECTION_BYTES};

/// Sections of a Region, as in the paper.
pub const REGION_SECTIONS: u32 = 512;
/// A line: what a load or a store of CXL.mem moves.
pub const LINE_BYTES: u64 = 64;
/// Most Regions of a fabric address space.
pub const REGIONS_MAX: u32 = ((1_u64 << ADDRESS_BITS) / SECTION_BYTES) as u32 / REGION_SECTIONS;

/// A member of a rack: a computing node (CN), or the switch node (SN), which holds what NICs use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Node(pub u16);

/// A Region: Sections that follow each other, of one owner and one Buffer size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RegionId(pub u32);

/// A Section of the fabric address space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SectionId(pub u32);

impl SectionId {
    /// The Section at this place of a Region.
    #[must_use]
    pub const fn of_region(region: RegionId, slot: u32) -> SectionId {
        SectionId(region.0 * REGION_SECTIONS + slot)
    }

    /// The Section in which an address is.
    #[must_use]
    pub const fn of(address: FabricAddress) -> SectionId {
        SectionId((address.number() / SECTION_BYTES) as u32)
    }

    /// Its Region.
    #[must_use]
    pub const fn region(self) -> RegionId {
        RegionId(self.0 / REGION_SECTIONS)
    }

    /// Its place in its Region.
    #[must_use]
    pub const fn slot(self) -> u32 {
        self.0 % REGION_SECTIONS
    }

    /// Address of a byte of the Section.
    ///
    /// # Panics
    /// If the address space has no such byte.
    #[must_use]
    pub fn address(self, byte: u64) -> FabricAddress {
        let number = u64::from(self.0) * SECTION_BYTES + byte;
        FabricAddress::new(number).expect("a Section is within the address space")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_has_512_sections_of_2_mib() {
        let section = SectionId::of_region(RegionId(3), 511);
        assert_eq!(section, SectionId(4 * 512 - 1));
        assert_eq!((section.region(), section.slot()), (RegionId(3), 511));
        assert_eq!(section.address(5).number(), (4 << 30) - (2 << 20) + 5);
        assert_eq!(SectionId::of(section.address(SECTION_BYTES - 1)), section);
        assert_eq!(REGIONS_MAX, 1 << 18);
    }
}
