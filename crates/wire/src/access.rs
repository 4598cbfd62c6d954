//! The owner of memory, and what may be done with it.

use core::fmt;

/// The process that owns memory. Every process of a pool has a number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId(pub u32);

/// What may be done with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Permissions(u8);

impl Permissions {
    /// No access. A share with no permissions is ended.
    pub const NONE: Permissions = Permissions(0);
    /// Reading.
    pub const READ: Permissions = Permissions(1);
    /// Writing.
    pub const WRITE: Permissions = Permissions(2);
    /// Reading, writing and atomics.
    pub const READ_WRITE: Permissions = Permissions(3);

    /// True if these permissions include all that are `needed`.
    #[must_use]
    pub const fn allow(self, needed: Permissions) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// Reads bit 0 as read and bit 1 as write; `None` if any other bit is set.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Option<Permissions> {
        if bits <= Permissions::READ_WRITE.0 { Some(Permissions(bits)) } else { None }
    }

    /// The bits: bit 0 for reading, bit 1 for writing.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
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
