//! The 66-bit block of clause 49 and its standard control block types.

use core::fmt;

use thiserror::Error;

/// Bits of one block on the line: 2 of sync header, 64 of payload.
pub const BLOCK_BITS: u32 = 66;

/// The 2-bit sync header. Its bit 0 goes on the line first. So the figures of clause 49, which
/// print bits in the order of transmission, show 10 for control and 01 for data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SyncHeader {
    /// The payload begins with a block type octet.
    Control = 0b01,
    /// The payload is eight octets of data.
    Data = 0b10,
}

/// One 66-bit block with a valid sync header, descrambled. Payload bit 0 follows the sync header on
/// the line; octet 0 of the payload, a control block's type, is the low byte.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Block {
    sync: SyncHeader,
    payload: u64,
}

/// A sync header of 00 or 11: the receiver got one of its bits wrong, or lost block lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("sync header {0:#04b} is neither control (01) nor data (10)")]
pub struct InvalidSync(pub u8);

/// A control block type octet that is not a codeword of the block types' code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("block type {0:#04x} is not assigned")]
pub struct UnknownBlockType(pub u8);

impl Block {
    /// Eight idle control characters, which fill the line while there is nothing to send.
    pub const IDLE: Block = Block::control(BlockType::Control, 0);

    /// A data block of eight octets, the first transmitted in the low byte.
    #[inline]
    #[must_use]
    pub const fn data(payload: u64) -> Block {
        Block { sync: SyncHeader::Data, payload }
    }

    /// A control block: its type and the 56 bits after it. Bits of `rest` above 55 are dropped.
    #[inline]
    #[must_use]
    pub const fn control(block_type: BlockType, rest: u64) -> Block {
        Block { sync: SyncHeader::Control, payload: rest << 8 | block_type as u64 }
    }

    /// A block as the descrambler hands it over: the two sync bits and the payload.
    ///
    /// # Errors
    /// [`InvalidSync`] unless exactly one of the two sync bits is set.
    #[inline]
    pub const fn from_line(sync: u8, payload: u64) -> Result<Block, InvalidSync> {
        match sync {
            0b01 => Ok(Block { sync: SyncHeader::Control, payload }),
            0b10 => Ok(Block { sync: SyncHeader::Data, payload }),
            other => Err(InvalidSync(other)),
        }
    }

    /// The sync header: control or data.
    #[inline]
    #[must_use]
    pub const fn sync(self) -> SyncHeader {
        self.sync
    }

    /// The 64 payload bits.
    #[inline]
    #[must_use]
    pub const fn payload(self) -> u64 {
        self.payload
    }

    /// The 66 bits in line order: sync header in bits 0 and 1, payload bit 0 in bit 2.
    #[must_use]
    pub const fn to_bits(self) -> u128 {
        (self.payload as u128) << 2 | self.sync as u128
    }

    /// A control block's type; `None` for a data block.
    ///
    /// # Errors
    /// [`UnknownBlockType`] when the type octet is no assigned type.
    #[inline]
    pub const fn block_type(self) -> Result<Option<BlockType>, UnknownBlockType> {
        match self.sync {
            SyncHeader::Data => Ok(None),
            SyncHeader::Control => match BlockType::from_octet(self.payload as u8) {
                Some(block_type) => Ok(Some(block_type)),
                None => Err(UnknownBlockType(self.payload as u8)),
            },
        }
    }

    /// True if the block is eight idle characters.
    #[inline]
    #[must_use]
    pub fn is_idle(self) -> bool {
        self == Block::IDLE
    }

    /// True if this is a block of eight control characters with an /E/ among them: the sender
    /// aborts the frame in progress.
    #[must_use]
    pub fn has_error_character(self) -> bool {
        const ERROR_CHARACTER: u64 = 0x1e;
        matches!(self.block_type(), Ok(Some(BlockType::Control)))
            && (0..8).any(|index| self.payload >> (8 + 7 * index) & 0x7f == ERROR_CHARACTER)
    }
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}({:#018x})", self.sync, self.payload)
    }
}

/// The type of a control block, which is its first octet. There are the 15 types of IEEE 802.3
/// figure 49-7; EDM's blocks use the one codeword that these leave free.
///
/// C is a control character, O an ordered set, S a start, T a terminate, D data; the digit is the
/// octet's lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum BlockType {
    /// An EDM control block; its sub-type is in octet 1.
    Edm = 0x00,
    /// C0..C7: idles, low-power idles or errors.
    Control = 0x1e,
    /// C0..C3 O4 D5..D7.
    ControlOrdered = 0x2d,
    /// C0..C3 S4 D5..D7.
    ControlStart = 0x33,
    /// O0 D1..D3 C4..C7.
    OrderedControl = 0x4b,
    /// O0 D1..D3 O4 D5..D7.
    OrderedOrdered = 0x55,
    /// O0 D1..D3 S4 D5..D7.
    OrderedStart = 0x66,
    /// S0 D1..D7: the start of a frame on lane 0.
    Start = 0x78,
    /// T0: no data.
    Terminate0 = 0x87,
    /// D0 T1.
    Terminate1 = 0x99,
    /// D0 D1 T2.
    Terminate2 = 0xaa,
    /// D0..D2 T3.
    Terminate3 = 0xb4,
    /// D0..D3 T4.
    Terminate4 = 0xcc,
    /// D0..D4 T5.
    Terminate5 = 0xd2,
    /// D0..D5 T6.
    Terminate6 = 0xe1,
    /// D0..D6 T7.
    Terminate7 = 0xff,
}

impl BlockType {
    /// All sixteen types, EDM's first.
    pub const ALL: [BlockType; 16] = [
        BlockType::Edm,
        BlockType::Control,
        BlockType::ControlOrdered,
        BlockType::ControlStart,
        BlockType::OrderedControl,
        BlockType::OrderedOrdered,
        BlockType::OrderedStart,
        BlockType::Start,
        BlockType::Terminate0,
        BlockType::Terminate1,
        BlockType::Terminate2,
        BlockType::Terminate3,
        BlockType::Terminate4,
        BlockType::Terminate5,
        BlockType::Terminate6,
        BlockType::Terminate7,
    ];

    /// The /T/ type with this count of data octets before it; `None` above seven.
    #[must_use]
    pub const fn terminate(data_octets: usize) -> Option<BlockType> {
        const FIRST: usize = 8;
        if data_octets < 8 { Some(BlockType::ALL[FIRST + data_octets]) } else { None }
    }

    /// The type that this octet stands for, if it is assigned.
    #[inline]
    #[must_use]
    pub const fn from_octet(octet: u8) -> Option<BlockType> {
        let mut index = 0;
        while index < BlockType::ALL.len() {
            if BlockType::ALL[index] as u8 == octet {
                return Some(BlockType::ALL[index]);
            }
            index += 1;
        }
        None
    }

    /// Number of data octets of a block that starts a frame, at its end; `None` for other blocks.
    #[must_use]
    pub const fn start_octets(self) -> Option<usize> {
        match self {
            BlockType::Start => Some(7),
            BlockType::ControlStart | BlockType::OrderedStart => Some(3),
            _ => None,
        }
    }

    /// Number of data octets of a block that ends a frame, right after the type; `None` for other
    /// blocks.
    #[must_use]
    pub const fn terminate_octets(self) -> Option<usize> {
        Some(match self {
            BlockType::Terminate0 => 0,
            BlockType::Terminate1 => 1,
            BlockType::Terminate2 => 2,
            BlockType::Terminate3 => 3,
            BlockType::Terminate4 => 4,
            BlockType::Terminate5 => 5,
            BlockType::Terminate6 => 6,
            BlockType::Terminate7 => 7,
            _ => return None,
        })
    }

    /// True if an ordered set (link fault signalling) is in the block.
    #[must_use]
    pub const fn has_ordered_set(self) -> bool {
        matches!(
            self,
            BlockType::ControlOrdered
                | BlockType::OrderedControl
                | BlockType::OrderedOrdered
                | BlockType::OrderedStart
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_types_are_the_extended_hamming_code() {
        for a in BlockType::ALL {
            for b in BlockType::ALL {
                let sum = a as u8 ^ b as u8;
                assert!(BlockType::from_octet(sum).is_some(), "{a:?} + {b:?} leaves the code");
                assert!(a == b || sum.count_ones() >= 4, "{a:?} and {b:?}");
            }
        }
        assert_eq!((0..=255).filter(|&octet| BlockType::from_octet(octet).is_some()).count(), 16);
    }

    #[test]
    fn bits_are_in_line_order() {
        // The figure's idle block: sync "10" as transmitted, then 0x1e, low bit first.
        assert_eq!(Block::IDLE.to_bits(), 0x1e << 2 | 0b01);
        assert_eq!(Block::data(u64::MAX).to_bits(), (1 << 66) - 1 - 0b01);
        for sync in [0b00, 0b11, 0b101] {
            assert_eq!(Block::from_line(sync, 0), Err(InvalidSync(sync)));
        }
        for block in [Block::IDLE, Block::data(7)] {
            assert_eq!(Block::from_line(block.sync() as u8, block.payload()), Ok(block));
        }
    }

    #[test]
    fn types_say_how_many_octets_they_carry() {
        for octets in 0..8 {
            let block_type = BlockType::terminate(octets).expect("below eight");
            assert_eq!(block_type.terminate_octets(), Some(octets));
            assert_eq!(block_type.start_octets(), None);
        }
        assert_eq!(BlockType::terminate(8), None);
        assert_eq!(BlockType::Start.start_octets(), Some(7));
        assert_eq!(BlockType::ControlStart.start_octets(), Some(3));
        assert!(BlockType::OrderedStart.has_ordered_set() && !BlockType::Start.has_ordered_set());
    }

    #[test]
    fn an_error_character_is_found_in_every_lane() {
        assert!(!Block::IDLE.has_error_character());
        assert!(Block::IDLE.is_idle());
        for lane in 0..8 {
            let block = Block::control(BlockType::Control, 0x1e << (7 * lane));
            assert!(block.has_error_character() && !block.is_idle(), "lane {lane}");
        }
        assert!(
            !Block::data(Block::control(BlockType::Control, 0x1e).payload()).has_error_character()
        );
    }

    #[test]
    fn an_unassigned_type_is_an_error() {
        let block = Block::from_line(0b01, 0x01).expect("a control header");
        assert_eq!(block.block_type(), Err(UnknownBlockType(0x01)));
        assert_eq!(Block::data(0x01).block_type(), Ok(None));
    }
}
