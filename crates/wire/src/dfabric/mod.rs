//! The formats of DFabric: descriptors of its queues, and headers of segments between racks.
//!
//! The paper (section 4.3) names four fields of a descriptor: both ends, a reference and a length.
//! Widths, the other fields and the headers are decided here; `docs/internals/dfabric.md` says why.
//! [`FIELDS`] is the table of a descriptor's fields. Numbers are little-endian.

mod descriptor;
mod header;

pub use descriptor::{
    BitField, DESCRIPTOR_BYTES, DESCRIPTOR_WORDS, Descriptor, DescriptorFault, DescriptorKind,
    DescriptorWords, FIELDS, PHASE_BIT,
};
pub use header::{
    ACKNOWLEDGEMENT_BYTES, Acknowledgement, Header, HeaderFault, SEGMENT_BYTES, Segment,
};

use thiserror::Error;

pub use crate::octets::NoRoom;

/// Bits of an address in the fabric address space.
pub const ADDRESS_BITS: u32 = 48;
/// A Section: what is given to a node at once (section 4.1).
pub const SECTION_BYTES: u64 = 2 << 20;

/// A byte's address in the fabric address space: below 2^48.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FabricAddress(u64);

/// A number that is no address of the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("address {0:#x}: must be below 2^{ADDRESS_BITS}")]
pub struct AddressError(pub u64);

impl FabricAddress {
    /// The address with this number.
    ///
    /// # Errors
    /// [`AddressError`].
    pub const fn new(number: u64) -> Result<FabricAddress, AddressError> {
        if number >> ADDRESS_BITS == 0 {
            Ok(FabricAddress(number))
        } else {
            Err(AddressError(number))
        }
    }

    /// The address as a number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The name of an end of a transfer: the IPv4 address of a node (section 4.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(pub u32);
