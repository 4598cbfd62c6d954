//! Links: the location of a block, its length, and which of its uses is meant.

use ethermem::Address;

/// Alignment of blocks in their memory node, in bytes.
pub(crate) const UNIT_BYTES: u64 = 16;
/// Longest block in bytes.
pub(crate) const BLOCK_BYTES_MAX: u64 = 64 << 20;
/// Number of classes: one for each length of a block.
pub(crate) const CLASSES: usize = Class::holding(BLOCK_BYTES_MAX).0 as usize + 1;

const BLOCK_BITS: u32 = 36;
const CLASS_BITS: u32 = 8;
const VERSION_SHIFT: u32 = BLOCK_BITS + CLASS_BITS;

/// Length of a block: eight classes per doubling, so that a record wastes at most an eighth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Class(u8);

impl Class {
    /// The class of the shortest blocks that hold `bytes`, at most [`BLOCK_BYTES_MAX`].
    pub(crate) const fn holding(bytes: u64) -> Class {
        let units = bytes.div_ceil(UNIT_BYTES);
        if units < 8 {
            return Class(units as u8);
        }
        let doublings = units.ilog2() - 3;
        let eighths = units.div_ceil(1 << doublings);
        Class(((doublings + 1) * 8) as u8 + (eighths - 8) as u8)
    }

    /// The class of a number read from memory; `None` if there is no such class.
    pub(crate) const fn new(number: u64) -> Option<Class> {
        if number > 0 && number < CLASSES as u64 { Some(Class(number as u8)) } else { None }
    }

    pub(crate) const fn number(self) -> usize {
        self.0 as usize
    }

    pub(crate) const fn bytes(self) -> u64 {
        let (doublings, rest) = (self.0 / 8, (self.0 % 8) as u64);
        let units = if doublings == 0 { rest } else { (8 + rest) << (doublings - 1) };
        units * UNIT_BYTES
    }
}

/// A block and one of its uses: the content of a bucket and of a record's `next`.
///
/// | bits | what |
/// |---|---|
/// | 0 to 35 | offset in the memory node, in units of 16 B |
/// | 36 to 43 | class |
/// | 44 to 63 | version: one more with each use of the block, around the end |
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Link(u64);

impl Link {
    /// The link of a block that has never been used; `offset` is a multiple of [`UNIT_BYTES`].
    pub(crate) const fn new(offset: u64, class: Class) -> Link {
        Link((offset / UNIT_BYTES) | ((class.0 as u64) << BLOCK_BITS))
    }

    /// The link that a word encodes; `None` for words that name no block.
    pub(crate) const fn from_word(word: u64) -> Option<Link> {
        let class = Class::new((word >> BLOCK_BITS) & ((1 << CLASS_BITS) - 1));
        if class.is_some() { Some(Link(word)) } else { None }
    }

    pub(crate) const fn word(self) -> u64 {
        self.0
    }

    pub(crate) const fn class(self) -> Class {
        Class((self.0 >> BLOCK_BITS) as u8)
    }

    pub(crate) const fn bytes(self) -> u64 {
        self.class().bytes()
    }

    /// The link for the next use of the block.
    pub(crate) const fn next_use(self) -> Link {
        Link(self.0.wrapping_add(1 << VERSION_SHIFT))
    }

    /// Address of the block in a memory node.
    pub(crate) const fn at(self, memory: u16) -> Address {
        Address::new(memory, (self.0 & ((1 << BLOCK_BITS) - 1)) * UNIT_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_has_a_class_that_wastes_an_eighth_at_most() {
        let mut before = 0;
        for number in 1..CLASSES as u64 {
            let class = Class::new(number).unwrap();
            assert!(class.bytes() > before, "{class:?}");
            assert_eq!(Class::holding(class.bytes()), class);
            assert_eq!(Class::holding(before + 1), class);
            assert!(class.bytes() <= (before + 1).next_multiple_of(16) * 9 / 8, "{class:?}");
            before = class.bytes();
        }
        assert_eq!(before, BLOCK_BYTES_MAX);
        assert_eq!((Class::new(0), Class::new(CLASSES as u64)), (None, None));
    }

    #[test]
    fn a_link_says_what_it_was_made_of_in_every_use() {
        let class = Class::holding(1000);
        let first = Link::new(0x12_3450, class);
        let mut link = first;
        for _ in 0..1 << 20 {
            assert_eq!((link.at(3), link.class()), (Address::new(3, 0x12_3450), class));
            link = link.next_use();
            assert_eq!(Link::from_word(link.word()), Some(link));
        }
        assert_eq!(link, first, "2^20 uses are told apart");
        assert_eq!([0, 1, 2].map(Link::from_word), [None; 3]);
    }
}
