use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};

use crate::BLOCK_PAYLOAD_BYTES;

macro_rules! count {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl Add for $name {
            type Output = $name;
            #[inline]
            fn add(self, other: $name) -> $name {
                $name(self.0.checked_add(other.0).expect("count overflowed"))
            }
        }

        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: $name) {
                *self = *self + other;
            }
        }

        impl Sub for $name {
            type Output = $name;
            #[inline]
            fn sub(self, other: $name) -> $name {
                $name(self.0.checked_sub(other.0).expect("count fell below zero"))
            }
        }

        impl SubAssign for $name {
            #[inline]
            fn sub_assign(&mut self, other: $name) {
                *self = *self - other;
            }
        }

        impl Sum for $name {
            fn sum<I: Iterator<Item = $name>>(counts: I) -> $name {
                counts.fold($name(0), Add::add)
            }
        }
    };
}

count! {
    /// A count of bytes.
    Bytes
}

count! {
    /// A count of 66-bit blocks, each one slot of a link.
    Blocks
}

impl Bytes {
    /// Number of data blocks that carry this many bytes; the last one is padded.
    #[inline]
    #[must_use]
    pub const fn to_blocks(self) -> Blocks {
        Blocks(self.0.div_ceil(BLOCK_PAYLOAD_BYTES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_fill_whole_blocks() {
        for (bytes, blocks) in [(0, 0), (1, 1), (8, 1), (9, 2), (64, 8), (256, 32)] {
            assert_eq!(Bytes(bytes).to_blocks(), Blocks(blocks), "{bytes} B");
        }
    }

    #[test]
    #[should_panic(expected = "count fell below zero")]
    fn counts_do_not_go_negative() {
        let _ = Bytes(1) - Bytes(2);
    }
}
