//! Where things are.

use std::fmt;

/// A byte of remote memory. The upper 16 bits name the memory node, the others are an offset in
/// it; the address 0 is nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Address(pub u64);

/// Bits of an address that are the offset in its node.
const OFFSET_BITS: u32 = 48;

impl Address {
    /// Nowhere: what a remote pointer to nothing is.
    pub const NULL: Address = Address(0);

    /// The byte at an offset, below 2^48, in a memory node.
    #[must_use]
    pub const fn new(node: u16, offset: u64) -> Address {
        Address(((node as u64) << OFFSET_BITS) | offset)
    }

    /// Which of the pool's memory nodes has it, from 0.
    #[must_use]
    pub const fn memory(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// The offset in its node.
    #[must_use]
    pub const fn offset(self) -> u64 {
        self.0 & OFFSET_MAX
    }

    /// So many bytes behind; past the end of all memory it is in no region.
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
