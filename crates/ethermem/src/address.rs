//! Where things are, and who may do what there.

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

    pub(crate) const fn new(node: u16, offset: u64) -> Address {
        Address(((node as u64) << OFFSET_BITS) | offset)
    }

    /// Which of the pool's memory nodes has it, from 0.
    #[must_use]
    pub const fn memory(self) -> u16 {
        (self.0 >> OFFSET_BITS) as u16
    }

    /// The offset in its node.
    pub(crate) const fn offset(self) -> u64 {
        self.0 & OFFSET_MAX
    }

    /// So many bytes behind; past the end of all memory it is in no region.
    #[must_use]
    pub const fn add(self, bytes: u64) -> Address {
        Address(self.0.saturating_add(bytes))
    }
}

/// Last offset in a node.
pub(crate) const OFFSET_MAX: u64 = (1 << OFFSET_BITS) - 1;

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// Whose memory something is. Processes of one pool have one number each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// What may be done with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions(u8);

impl Permissions {
    /// Nothing: what is shared so is no longer shared.
    pub const NONE: Permissions = Permissions(0);
    /// Reading.
    pub const READ: Permissions = Permissions(1);
    /// Writing.
    pub const WRITE: Permissions = Permissions(2);
    /// Reading, writing and atomics.
    pub const READ_WRITE: Permissions = Permissions(3);

    /// Whether these allow all that `needed` are.
    #[must_use]
    pub const fn allow(self, needed: Permissions) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Bit 0 for reading, bit 1 for writing; `None` for any other.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Permissions> {
        if bits <= Permissions::READ_WRITE.0 { Some(Permissions(bits)) } else { None }
    }
}

impl fmt::Display for Permissions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match *self {
            Permissions::READ => "read",
            Permissions::WRITE => "write",
            Permissions::READ_WRITE => "read and write",
            _ => "do nothing",
        })
    }
}
