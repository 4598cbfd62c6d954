//! The fields of messages: each value that exists fits its bits.

use ethermem_units::Bytes;
use thiserror::Error;

/// A value that its field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// A node number above 511.
    #[error("node {0} does not fit 9 bits")]
    Node(u16),
    /// No bytes, or more than [`Length::MAX`].
    #[error("length {} B is not between 1 B and {} B", .0.0, Length::MAX.bytes().0)]
    Length(Bytes),
    /// An address above 2^40 - 1.
    #[error("address {0:#x} does not fit 40 bits")]
    Address(u64),
    /// A chunk number above 2^15 - 1.
    #[error("chunk number {0} does not fit 15 bits")]
    ChunkIndex(u16),
    /// No bytes, or more than [`MAX_CHUNK_BYTES`].
    #[error("a chunk of {0} B is not between 1 B and {MAX_CHUNK_BYTES} B")]
    Chunk(usize),
    /// A read that its request cannot name to the byte: lengths above 65,535 B go in units of 64 B,
    /// and only a request with a 64-bit address says how many bytes too many that is.
    #[error("a read of {} B needs a 64-bit address or a multiple of 64 B", .0.0)]
    InexactLength(Bytes),
}

/// Largest chunk: a page. The CRC-32C was checked for two line errors up to this size.
pub const MAX_CHUNK_BYTES: usize = 4096;

/// A node: a port of the switch. Nine bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u16);

impl NodeId {
    /// Nodes that can be told apart.
    pub const COUNT: u16 = 1 << 9;

    /// Node `number`.
    ///
    /// # Errors
    /// [`FieldError::Node`] from [`NodeId::COUNT`] on.
    pub const fn new(number: u16) -> Result<NodeId, FieldError> {
        if number < NodeId::COUNT { Ok(NodeId(number)) } else { Err(FieldError::Node(number)) }
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The node at a port that is known to exist.
    ///
    /// # Panics
    /// From [`NodeId::COUNT`] on.
    #[inline]
    #[must_use]
    pub const fn at(port: u16) -> NodeId {
        assert!(port < NodeId::COUNT, "a network has at most 512 nodes");
        NodeId(port)
    }
}

/// What tells apart the messages that a compute node has open with one memory node. Eight bits.
///
/// Bit 7 is the class: 0 for a read or RMW (and its response), 1 for a write. Both ends of a pair
/// choose ids of their own, so a grant (peer, id) would be ambiguous at a node that both reads and
/// is read from, were it not for the class. Bits 0 to 2 are the
/// row of the message state table, bits 3 to 6 a generation that tells the users of a row apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

impl MessageId {
    /// Rows that 3 bits can name.
    pub const ROWS: usize = 8;

    const CLASS_WRITE: u8 = 0x80;

    /// The id of a class, a generation (modulo 16) and a row (modulo 8).
    #[inline]
    #[must_use]
    pub const fn new(write: bool, generation: u8, row: u8) -> MessageId {
        let class = if write { MessageId::CLASS_WRITE } else { 0 };
        MessageId(class | (generation & 0xf) << 3 | row & 7)
    }

    /// Whether it names a write of its sender; otherwise a read, an RMW or their response.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        self.0 & MessageId::CLASS_WRITE != 0
    }

    /// Whether it is a later user of the row of `before`. Generations are compared as serial
    /// numbers: up to 8 ahead is later, otherwise it is the same id or an older one.
    #[inline]
    #[must_use]
    pub const fn is_after(self, before: MessageId) -> bool {
        let ahead = (self.0 >> 3).wrapping_sub(before.0 >> 3) & 0xf;
        1 <= ahead && ahead <= 8
    }

    /// Counts the users of its row, modulo 16.
    #[inline]
    #[must_use]
    pub const fn generation(self) -> u8 {
        self.0 >> 3 & 0xf
    }

    /// The row of the message state table.
    #[inline]
    #[must_use]
    pub const fn row(self) -> usize {
        (self.0 & 7) as usize
    }
}

/// A demand: 16 bits and a unit bit. 1 B to 65,535 B go to the byte, up to 4 MiB - 64 B in units of
/// 64 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u32);

impl Length {
    /// The unit of lengths that 16 bits cannot count in bytes.
    pub const UNIT: Bytes = Bytes(64);
    /// 4 MiB - 64 B.
    pub const MAX: Length = Length(0xffff * Length::UNIT.0 as u32);

    /// The least length that a demand can name and that is not below `bytes`.
    ///
    /// # Errors
    /// [`FieldError::Length`] for zero and above [`Length::MAX`].
    pub const fn covering(bytes: Bytes) -> Result<Length, FieldError> {
        if bytes.0 == 0 || bytes.0 > Length::MAX.0 as u64 {
            return Err(FieldError::Length(bytes));
        }
        let exact = bytes.0 as u32;
        let unit = Length::UNIT.0 as u32;
        Ok(Length(if exact <= 0xffff { exact } else { exact.next_multiple_of(unit) }))
    }

    /// In bytes.
    #[inline]
    #[must_use]
    pub const fn bytes(self) -> Bytes {
        Bytes(self.0 as u64)
    }

    /// The 16 length bits and above them the unit bit.
    pub(crate) const fn to_bits(self) -> u64 {
        match self.0 {
            0..=0xffff => self.0 as u64,
            bytes => (1 << 16) | (bytes as u64 / Length::UNIT.0),
        }
    }

    /// `None` for zero and for a number of units that is to be written in bytes.
    pub(crate) const fn from_bits(bits: u64) -> Option<Length> {
        let (count, in_units) = (bits as u32 & 0xffff, bits >> 16 & 1 == 1);
        let bytes = if in_units { count * Length::UNIT.0 as u32 } else { count };
        if bytes == 0 || in_units != (bytes > 0xffff) { None } else { Some(Length(bytes)) }
    }
}

/// An address of 40 bits. In a request, in units that its region fixes; in a posted write, in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address40(u64);

impl Address40 {
    /// Bits of the address.
    pub const BITS: u32 = 40;

    /// Address `number`.
    ///
    /// # Errors
    /// [`FieldError::Address`] from 2^40 on.
    pub const fn new(number: u64) -> Result<Address40, FieldError> {
        if number >> Address40::BITS == 0 {
            Ok(Address40(number))
        } else {
            Err(FieldError::Address(number))
        }
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Where a request reads or modifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// In the /MT/ block.
    Short(Address40),
    /// In an /MD/ block of its own.
    Long(u64),
}

impl Address {
    /// The form of the request that carries it.
    #[must_use]
    pub const fn width(self) -> AddressWidth {
        match self {
            Address::Short(_) => AddressWidth::Bits40,
            Address::Long(_) => AddressWidth::Bits64,
        }
    }
}

/// The two forms of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AddressWidth {
    /// The address shares /MS/ and /MT/ with the other fields.
    Bits40,
    /// The address has an /MD/ block.
    Bits64,
}

/// A chunk's number within its message, modulo 2^15: what tells a chunk from its copy through the
/// mirror switch, and a chunk after a lost one from the lost one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkIndex(u16);

impl ChunkIndex {
    /// Numbers there are.
    pub const COUNT: u16 = 1 << 15;

    /// Chunk `number`.
    ///
    /// # Errors
    /// [`FieldError::ChunkIndex`] from [`ChunkIndex::COUNT`] on.
    pub const fn new(number: u16) -> Result<ChunkIndex, FieldError> {
        if number < ChunkIndex::COUNT {
            Ok(ChunkIndex(number))
        } else {
            Err(FieldError::ChunkIndex(number))
        }
    }

    /// Its number.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The number of the next chunk; after the last number comes 0.
    #[inline]
    #[must_use]
    pub const fn next(self) -> ChunkIndex {
        ChunkIndex((self.0 + 1) % ChunkIndex::COUNT)
    }
}

/// The data of a chunk: 1 B to [`MAX_CHUNK_BYTES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ChunkData<'a>(&'a [u8]);

impl<'a> ChunkData<'a> {
    /// These bytes.
    ///
    /// # Errors
    /// [`FieldError::Chunk`] when there are none or too many.
    pub const fn new(bytes: &'a [u8]) -> Result<ChunkData<'a>, FieldError> {
        if bytes.is_empty() || bytes.len() > MAX_CHUNK_BYTES {
            return Err(FieldError::Chunk(bytes.len()));
        }
        Ok(ChunkData(bytes))
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(self) -> &'a [u8] {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_class_row_and_generation_apart() {
        let mut seen = [false; 256];
        for write in [false, true] {
            for generation in 0..16 {
                for row in 0..8 {
                    let id = MessageId::new(write, generation, row);
                    assert_eq!(id.is_write(), write);
                    assert_eq!((id.generation(), id.row()), (generation, usize::from(row)));
                    assert!(!std::mem::replace(&mut seen[usize::from(id.0)], true));
                }
            }
        }
        assert!(seen.iter().all(|&used| used));
    }

    #[test]
    fn lengths_round_up_only_above_16_bits() {
        for (bytes, length, bits) in [
            (1, 1, 1),
            (64, 64, 64),
            (65_535, 65_535, 0xffff),
            (65_536, 65_536, 1 << 16 | 1024),
            (65_537, 65_600, 1 << 16 | 1025),
            (4_194_240, 4_194_240, 1 << 16 | 0xffff),
        ] {
            let found = Length::covering(Bytes(bytes)).expect("in range");
            assert_eq!((found.bytes(), found.to_bits()), (Bytes(length), bits), "{bytes} B");
            assert_eq!(Length::from_bits(bits), Some(found));
        }
        for bytes in [0, 4_194_241, u64::MAX] {
            assert_eq!(Length::covering(Bytes(bytes)), Err(FieldError::Length(Bytes(bytes))));
        }
    }

    #[test]
    fn every_17_bit_length_is_canonical_or_refused() {
        let mut valid = 0;
        for bits in 0..1 << 17 {
            if let Some(length) = Length::from_bits(bits) {
                assert_eq!(length.to_bits(), bits);
                assert_eq!(Length::covering(length.bytes()), Ok(length));
                valid += 1;
            }
        }
        assert_eq!(valid, 65_535 + (65_536 - 1024));
    }

    #[test]
    fn fields_refuse_what_they_cannot_hold() {
        assert_eq!(NodeId::new(511).map(NodeId::number), Ok(511));
        assert_eq!(NodeId::new(512), Err(FieldError::Node(512)));
        assert_eq!(Address40::new((1 << 40) - 1).map(Address40::number), Ok((1 << 40) - 1));
        assert_eq!(Address40::new(1 << 40), Err(FieldError::Address(1 << 40)));
        assert_eq!(ChunkIndex::new(1 << 15), Err(FieldError::ChunkIndex(1 << 15)));
        assert_eq!(ChunkIndex::new(0x7fff).map(ChunkIndex::next), ChunkIndex::new(0));
        assert_eq!(ChunkData::new(&[]), Err(FieldError::Chunk(0)));
        let page = [0; MAX_CHUNK_BYTES + 1];
        assert_eq!(ChunkData::new(&page), Err(FieldError::Chunk(4097)));
        assert!(ChunkData::new(&page[1..]).is_ok());
    }
}
