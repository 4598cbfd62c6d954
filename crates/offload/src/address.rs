//! Addresses of remote memory.

use std::fmt;

/// A byte of remote memory. The upper 16 bits are the memory node, the others are an offset in it.
/// The address 0 is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub u64);

/// Number of address bits that are the offset in its node.
const OFFSET_BITS: u32 = 48;

impl Address {
    /// The null address, for a remote pointer to nothing.
    pub const NULL: Address = Address(0);

    /// The byte at an offset, below 2^48, in a memory node.
    #[must_use]
    pub const fn new(node: u16, offset: u64) -> Address {
        Address(((node as u64) << OFFSET_BITS) | offset)
    }

    /// Index of the pool's memory node that has the byte, from 0.
    #[must_use]
    pub const fn memory(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// The offset in its node.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.0 & OFFSET_MAX
    }

    /// The address `bytes` further on. Past the end of all memory it is in no region.
    #[must_use]
    pub const fn add(self, bytes: u64) -> Address {
        Address(self.0.saturating_add(bytes))
    }
}

/// Last offset in a node.
pub const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}
