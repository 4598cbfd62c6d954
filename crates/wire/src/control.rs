//! EDM's control blocks: type 0x00, sub-type, 40 bits of content, CRC-8.

use thiserror::Error;

use crate::block::{Block, BlockType, UnknownBlockType};
use crate::crc;

/// Bits of content in an EDM control block.
pub const CONTENT_BITS: u32 = 40;
const CONTENT_MASK: u64 = (1 << CONTENT_BITS) - 1;

/// The kind of an EDM control block: octet 1 of the block. Each value is a codeword of the block
/// types' own extended Hamming code. The pairs whose confusion would hurt most, /MS/ with /MT/ and
/// /N/ with /G/, are complements. Zero is unused, so that a block of zeros is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SubType {
    /// /MS/: a memory message of several blocks starts.
    Start = 0x33,
    /// /MT/: a memory message of several blocks ends.
    Terminate = 0xcc,
    /// /MST/: a memory message in one block.
    Single = 0x66,
    /// /N/: a notification of demand.
    Notification = 0x55,
    /// /G/: a grant.
    Grant = 0xaa,
}

impl SubType {
    /// All five sub-types.
    pub const ALL: [SubType; 5] = [
        SubType::Start,
        SubType::Terminate,
        SubType::Single,
        SubType::Notification,
        SubType::Grant,
    ];

    /// The sub-type that this octet stands for, if it is assigned.
    #[inline]
    #[must_use]
    pub const fn from_octet(octet: u8) -> Option<SubType> {
        Some(match octet {
            0x33 => SubType::Start,
            0xcc => SubType::Terminate,
            0x66 => SubType::Single,
            0x55 => SubType::Notification,
            0xaa => SubType::Grant,
            _ => return None,
        })
    }
}

/// An EDM control block whose checks held, or whose checks are still to be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EdmControl {
    sub_type: SubType,
    content: u64,
}

/// Why a control block is not a valid EDM block. All but [`ControlError::NotEdm`] are corruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// A data block or a standard control block.
    #[error("not an EDM control block")]
    NotEdm,
    /// The type octet is not assigned.
    #[error(transparent)]
    Type(#[from] UnknownBlockType),
    /// The sub-type octet is not assigned.
    #[error("EDM sub-type {0:#04x} is not assigned")]
    SubType(u8),
    /// The CRC-8 does not match sub-type and content.
    #[error("CRC-8 of an EDM control block is {found:#04x}, should be {computed:#04x}")]
    Crc {
        /// The CRC-8 in the block.
        found: u8,
        /// The CRC-8 computed over the block.
        computed: u8,
    },
}

impl EdmControl {
    /// A control block of `content`; bits above [`CONTENT_BITS`] are dropped.
    #[inline]
    #[must_use]
    pub const fn new(sub_type: SubType, content: u64) -> EdmControl {
        EdmControl { sub_type, content: content & CONTENT_MASK }
    }

    /// The sub-type.
    #[inline]
    #[must_use]
    pub const fn sub_type(self) -> SubType {
        self.sub_type
    }

    /// The 40 content bits.
    #[inline]
    #[must_use]
    pub const fn content(self) -> u64 {
        self.content
    }

    /// The block, with its CRC-8.
    #[must_use]
    pub fn encode(self) -> Block {
        let sub_type = self.sub_type as u8;
        let crc = u64::from(crc::control(sub_type, self.content));
        let rest = crc << 48 | self.content << 8 | u64::from(sub_type);
        Block::control(BlockType::Edm, rest)
    }

    /// Checks a block.
    ///
    /// # Errors
    /// [`ControlError`] when the block is not an EDM block, or is corrupt.
    pub fn decode(block: Block) -> Result<EdmControl, ControlError> {
        if block.block_type()? != Some(BlockType::Edm) {
            return Err(ControlError::NotEdm);
        }
        let octets = block.payload().to_le_bytes();
        let sub_type = SubType::from_octet(octets[1]).ok_or(ControlError::SubType(octets[1]))?;
        let content = block.payload() >> 16 & CONTENT_MASK;
        let (found, computed) = (octets[7], crc::control(octets[1], content));
        if found != computed {
            return Err(ControlError::Crc { found, computed });
        }
        Ok(EdmControl { sub_type, content })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sub_types_are_codewords_at_distance_four() {
        for a in SubType::ALL {
            assert!(BlockType::from_octet(a as u8).is_some(), "{a:?} is no codeword");
            assert_eq!(SubType::from_octet(a as u8), Some(a));
            for b in SubType::ALL {
                assert!(a == b || (a as u8 ^ b as u8).count_ones() >= 4, "{a:?} and {b:?}");
            }
        }
        assert_eq!((0..=255).filter(|&octet| SubType::from_octet(octet).is_some()).count(), 5);
    }

    #[test]
    fn a_block_is_laid_out_as_documented() {
        let block = EdmControl::new(SubType::Single, 0x12_3456_789a).encode();
        let octets = block.payload().to_le_bytes();
        assert_eq!(octets[..7], [0x00, 0x66, 0x9a, 0x78, 0x56, 0x34, 0x12]);
        assert_eq!(octets[7], crc::control(0x66, 0x12_3456_789a));
    }

    #[test]
    fn content_survives_and_zeros_are_no_block() {
        for sub_type in SubType::ALL {
            for content in [0, 1, CONTENT_MASK, 0xa5_a5a5_a5a5] {
                let control = EdmControl::new(sub_type, content);
                assert_eq!(EdmControl::decode(control.encode()), Ok(control));
            }
        }
        let zeros = Block::control(BlockType::Edm, 0);
        assert_eq!(EdmControl::decode(zeros), Err(ControlError::SubType(0)));
        assert_eq!(EdmControl::decode(Block::IDLE), Err(ControlError::NotEdm));
        assert_eq!(EdmControl::decode(Block::data(0)), Err(ControlError::NotEdm));
    }
}
