//! Whose memory something is, and what may be done with it.

use core::fmt;

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

    /// The same bits.
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
