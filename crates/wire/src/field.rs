//! The fields of messages: every value of these types fits the bits of its field.

use ethermem_units::Bytes;
use thiserror::Error;

/// A value that its field cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FieldError {
    /// A node number above 511.
    #[error("node {0} does not fit 9 bits")]
    Node(u16),
    /// A length of zero, or above [`Length::MAX`].
    #[error("length {} B is not between 1 B and {} B", .0.0, Length::MAX.bytes().0)]
    Length(Bytes),
    /// An address above 2^40 - 1.
    #[error("address {0:#x} does not fit 40 bits")]
    Address(u64),
    /// A chunk number above 2^15 - 1.
    #[error("chunk number {0} does not fit 15 bits")]
    ChunkIndex(u16),
    /// A chunk of zero bytes, or above [`MAX_CHUNK_BYTES`].
    #[error("a chunk of {0} B is not between 1 B and {MAX_CHUNK_BYTES} B")]
    Chunk(usize),
    /// A read whose length a short request cannot state to the byte. Lengths above 65,535 B go in
    /// units of 64 B, and only a request with a 64-bit address states the excess.
    #[error("a read of {} B needs a 64-bit address or a multiple of 64 B", .0.0)]
    InexactLength(Bytes),
}

/// Size of the largest chunk: a page. The CRC-32C was checked for two line errors up to this size.
pub const MAX_CHUNK_BYTES: usize = 4096;

/// A node, which is a port of the switch: nine bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(u16);

impl NodeId {
    /// Number of different node ids.
    pub const COUNT: u16 = 1 << 9;

    /// Makes the id of node `number`.
    ///
    /// # Errors
    /// [`FieldError::Node`] from [`NodeId::COUNT`] on.
    pub const fn new(number: u16) -> Result<NodeId, FieldError> {
        if number < NodeId::COUNT { Ok(NodeId(number)) } else { Err(FieldError::Node(number)) }
    }

    /// The number of the node.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// The node at a port that is known to exist.
    ///
    /// # Panics
    /// If `port` is [`NodeId::COUNT`] or above.
    #[inline]
    #[must_use]
    pub const fn at(port: u16) -> NodeId {
        assert!(port < NodeId::COUNT, "a network has at most 512 nodes");
        NodeId(port)
    }
}

/// The id of a message that a compute node has open with one memory node: eight bits.
///
/// Bit 7 is the class: 0 for a read or RMW (and its response), 1 for a write. Both ends of a pair
/// choose their own ids, so a node that both reads and is read from needs the class. Without it a
/// grant (peer, id) would be ambiguous. Bits 0 to 2 are the row of the message state table; bits 3
/// to 6 are a generation that tells successive users of a row apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u8);

impl MessageId {
    /// Number of rows that 3 bits can name.
    pub const ROWS: usize = 8;

    const CLASS_WRITE: u8 = 0x80;

    /// The id of a class, a generation (modulo 16) and a row (modulo 8).
    #[inline]
    #[must_use]
    pub const fn new(write: bool, generation: u8, row: u8) -> MessageId {
        let class = if write { MessageId::CLASS_WRITE } else { 0 };
        MessageId(class | (generation & 0xf) << 3 | row & 7)
    }

    /// True if it names a write of its sender; false for a read, an RMW or their response.
    #[inline]
    #[must_use]
    pub const fn is_write(self) -> bool {
        self.0 & MessageId::CLASS_WRITE != 0
    }

    /// True if this id is a later user of its row than `before`. Generations are compared as serial
    /// numbers: up to 8 ahead is later; otherwise this id is equal or older.
    #[inline]
    #[must_use]
    pub const fn is_after(self, before: MessageId) -> bool {
        let ahead = (self.0 >> 3).wrapping_sub(before.0 >> 3) & 0xf;
        1 <= ahead && ahead <= 8
    }

    /// Number of the user of its row, modulo 16.
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

/// A demand: 16 bits and a unit bit. 1 B to 65,535 B are stated to the byte, up to 4 MiB - 64 B in
/// units of 64 B.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Length(u32);

impl Length {
    /// The unit of lengths that 16 bits cannot count in bytes.
    pub const UNIT: Bytes = Bytes(64);
    /// 4 MiB - 64 B.
    pub const MAX: Length = Length(0xffff * Length::UNIT.0 as u32);

    /// The least length that is not below `bytes` and that a demand can state.
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

    /// The length in bytes.
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

    /// Reads a length; `None` for zero and for a number of units that must be stated in bytes.
    pub(crate) const fn from_bits(bits: u64) -> Option<Length> {
        let (count, in_units) = (bits as u32 & 0xffff, bits >> 16 & 1 == 1);
        let bytes = if in_units { count * Length::UNIT.0 as u32 } else { count };
        if bytes == 0 || in_units != (bytes > 0xffff) { None } else { Some(Length(bytes)) }
    }
}

/// An address of 40 bits. A request counts it in units that its region fixes, a posted write in
/// bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address40(u64);

impl Address40 {
    /// Bits of the address.
    pub const BITS: u32 = 40;

    /// Makes the address `number`.
    ///
    /// # Errors
    /// [`FieldError::Address`] if `number` is 2^40 or above.
    pub const fn new(number: u64) -> Result<Address40, FieldError> {
        if number >> Address40::BITS == 0 {
            Ok(Address40(number))
        } else {
            Err(FieldError::Address(number))
        }
    }

    /// The number of the address.
    #[inline]
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// The address that a request reads or modifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address in the /MT/ block.
    Short(Address40),
    /// An address in an /MD/ block of its own.
    Long(u64),
}

impl Address {
    /// The form of the requests that carry this address.
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

/// A chunk's number within its message, modulo 2^15. It tells a chunk from its duplicate through
/// the mirror switch, and a lost chunk from the one after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkIndex(u16);

impl ChunkIndex {
    /// Number of different chunk numbers.
    pub const COUNT: u16 = 1 << 15;

    /// Makes the number `number`.
    ///
    /// # Errors
    /// [`FieldError::ChunkIndex`] if `number` is [`ChunkIndex::COUNT`] or above.
    pub const fn new(number: u16) -> Result<ChunkIndex, FieldError> {
        if number < ChunkIndex::COUNT {
            Ok(ChunkIndex(number))
        } else {
            Err(FieldError::ChunkIndex(number))
        }
    }

    /// The number as an integer.
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
    /// Makes chunk data of these bytes.
    ///
    /// # Errors
    /// [`FieldError::Chunk`] for zero bytes and for too many.
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
