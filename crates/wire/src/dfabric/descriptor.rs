//! Entries of queues: 32 B in four words, two to a line of 64 B.

use thiserror::Error;

use super::{ADDRESS_BITS, FabricAddress, Identity, SECTION_BYTES};

/// Words of an entry.
pub const DESCRIPTOR_WORDS: usize = 4;
/// Octets of an entry.
pub const DESCRIPTOR_BYTES: usize = 8 * DESCRIPTOR_WORDS;
/// An entry as it is in memory.
pub type DescriptorWords = [u64; DESCRIPTOR_WORDS];
/// The bit of the first word that changes with each lap of a queue. The queue sets it; it is no
/// part of the descriptor.
pub const PHASE_BIT: u64 = 1 << 63;

/// What an entry asks or says. Zeros are no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum DescriptorKind {
    /// In a virtual queue: a reference goes from source to destination.
    Transfer = 0x01,
    /// In a NIC's TX queue: the NIC is to send the data.
    Send = 0x02,
    /// In a NIC's RX queue: the NIC may write a packet of at most this length there.
    Receive = 0x03,
    /// In a completion queue: the data was sent, and the NIC no longer reads it.
    Sent = 0x81,
    /// In a completion queue: a packet of this length is there.
    Received = 0x82,
    /// In a completion queue: the NIC could not send the data.
    Failed = 0x83,
}

const KINDS: [DescriptorKind; 6] = [
    DescriptorKind::Transfer,
    DescriptorKind::Send,
    DescriptorKind::Receive,
    DescriptorKind::Sent,
    DescriptorKind::Received,
    DescriptorKind::Failed,
];

/// A run of bits in one word of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BitField {
    /// Its name.
    pub name: &'static str,
    /// The word.
    pub word: usize,
    /// Its lowest bit there.
    pub first_bit: u32,
    /// Number of bits.
    pub bits: u32,
}

impl BitField {
    const fn new(name: &'static str, word: usize, first_bit: u32, bits: u32) -> BitField {
        BitField { name, word, first_bit, bits }
    }

    const fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.bits)
    }

    const fn get(&self, words: &DescriptorWords) -> u64 {
        words[self.word] >> self.first_bit & self.mask()
    }

    const fn put(&self, words: &mut DescriptorWords, value: u64) {
        words[self.word] |= (value & self.mask()) << self.first_bit;
    }
}

const REFERENCE: BitField = BitField::new("reference", 0, 0, ADDRESS_BITS);
const KIND: BitField = BitField::new("kind", 0, 48, 8);
const RESERVED: BitField = BitField::new("reserved", 0, 56, 7);
const PHASE: BitField = BitField::new("phase", 0, 63, 1);
const DESTINATION: BitField = BitField::new("destination", 1, 0, 32);
const SOURCE: BitField = BitField::new("source", 1, 32, 32);
const LENGTH: BitField = BitField::new("length", 2, 0, 32);
const SUBFLOW: BitField = BitField::new("subflow", 2, 32, 16);
const RESERVED_HIGH: BitField = BitField::new("reserved_high", 2, 48, 16);
const COOKIE: BitField = BitField::new("cookie", 3, 0, 64);

/// All fields of an entry. Offsets live here and nowhere else.
pub const FIELDS: [BitField; 10] =
    [REFERENCE, KIND, RESERVED, PHASE, DESTINATION, SOURCE, LENGTH, SUBFLOW, RESERVED_HIGH, COOKIE];

/// An entry of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    /// What it asks or says.
    pub kind: DescriptorKind,
    /// Where the data is; all of it is in one Section.
    pub reference: FabricAddress,
    /// Length of the data in bytes, or room of a receive buffer: 1 to a Section.
    pub length: u32,
    /// The node that gets the data.
    pub destination: Identity,
    /// The node that sends it.
    pub source: Identity,
    /// The subflow that it is of.
    pub subflow: u16,
    /// The producer's own name of the entry; a completion repeats it.
    pub cookie: u64,
}

/// Why four words are no descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DescriptorFault {
    /// The kind is unknown.
    #[error("kind {0:#04x}: must be 0x01 to 0x03 or 0x81 to 0x83")]
    Kind(u8),
    /// Reserved bits are set.
    #[error("reserved bits {0:#x}: must be 0")]
    Reserved(u64),
    /// There is no data, or more than a Section.
    #[error("length {0}: must be 1 to {SECTION_BYTES}")]
    Length(u32),
    /// The data is not in one Section.
    #[error("{length} B at {reference:#x}: must not cross the end of a Section")]
    Crosses {
        /// Where the data is.
        reference: u64,
        /// Its length in bytes.
        length: u32,
    },
}

impl Descriptor {
    /// The entry's words, with phase 0.
    #[must_use]
    pub fn words(&self) -> DescriptorWords {
        let mut words = [0; DESCRIPTOR_WORDS];
        REFERENCE.put(&mut words, self.reference.number());
        KIND.put(&mut words, self.kind as u64);
        DESTINATION.put(&mut words, u64::from(self.destination.0));
        SOURCE.put(&mut words, u64::from(self.source.0));
        LENGTH.put(&mut words, u64::from(self.length));
        SUBFLOW.put(&mut words, u64::from(self.subflow));
        COOKIE.put(&mut words, self.cookie);
        words
    }

    /// Reads an entry; the phase is ignored.
    ///
    /// # Errors
    /// [`DescriptorFault`].
    pub fn parse(words: &DescriptorWords) -> Result<Descriptor, DescriptorFault> {
        let number = KIND.get(words) as u8;
        let kind = KINDS.into_iter().find(|kind| *kind as u8 == number);
        let kind = kind.ok_or(DescriptorFault::Kind(number))?;
        let reserved = RESERVED.get(words) | RESERVED_HIGH.get(words);
        if reserved != 0 {
            return Err(DescriptorFault::Reserved(reserved));
        }
        let (reference, length) = (REFERENCE.get(words), LENGTH.get(words) as u32);
        if length == 0 || u64::from(length) > SECTION_BYTES {
            return Err(DescriptorFault::Length(length));
        }
        if reference % SECTION_BYTES + u64::from(length) > SECTION_BYTES {
            return Err(DescriptorFault::Crosses { reference, length });
        }
        Ok(Descriptor {
            kind,
            reference: FabricAddress(reference),
            length,
            destination: Identity(DESTINATION.get(words) as u32),
            source: Identity(SOURCE.get(words) as u32),
            subflow: SUBFLOW.get(words) as u16,
            cookie: COOKIE.get(words),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENT: Descriptor = Descriptor {
        kind: DescriptorKind::Transfer,
        reference: FabricAddress(0x1234_5678_9ab0),
        length: 0x1000,
        destination: Identity(0x0a00_0002),
        source: Identity(0x0a00_0001),
        subflow: 0xbeef,
        cookie: 0x0123_4567_89ab_cdef,
    };

    #[test]
    fn a_descriptor_is_these_words() {
        let words = [
            0x0001_1234_5678_9ab0,
            0x0a00_0001_0a00_0002,
            0x0000_beef_0000_1000,
            0x0123_4567_89ab_cdef,
        ];
        assert_eq!(SENT.words(), words);
        assert_eq!(Descriptor::parse(&words), Ok(SENT));
        let [first, rest @ ..] = words;
        let [a, b, c] = rest;
        assert_eq!(Descriptor::parse(&[first | PHASE_BIT, a, b, c]), Ok(SENT));
    }

    #[test]
    fn every_bit_of_an_entry_is_of_one_field() {
        let mut used = [0_u64; DESCRIPTOR_WORDS];
        for field in &FIELDS {
            let bits = field.mask() << field.first_bit;
            assert_eq!(used[field.word] & bits, 0, "{}", field.name);
            used[field.word] |= bits;
        }
        assert_eq!(used, [u64::MAX; DESCRIPTOR_WORDS]);
    }

    #[test]
    fn what_is_no_descriptor_is_refused_with_the_reason() {
        let with = |word: usize, bits: u64| {
            let mut words = SENT.words();
            words[word] ^= bits;
            Descriptor::parse(&words)
        };
        assert_eq!(Descriptor::parse(&[0; 4]), Err(DescriptorFault::Kind(0)));
        assert_eq!(with(0, 0x05 << 48), Err(DescriptorFault::Kind(0x04)));
        assert_eq!(with(0, 1 << 62), Err(DescriptorFault::Reserved(0x40)));
        assert_eq!(with(2, 1 << 63), Err(DescriptorFault::Reserved(0x8000)));
        assert_eq!(with(2, 0x1000), Err(DescriptorFault::Length(0)));
        let longest = SENT.length ^ SECTION_BYTES as u32;
        let length = |length: u32| with(2, u64::from(SENT.length ^ length));
        assert_eq!(length(longest), Err(DescriptorFault::Length(longest)));
        // The reference is 0x189ab0 into its Section, which ends 0x76550 behind it.
        assert!(length(0x0007_6550).is_ok());
        let reference = SENT.reference.number();
        let crosses = DescriptorFault::Crosses { reference, length: 0x0007_6551 };
        assert_eq!(length(0x0007_6551), Err(crosses));
    }

    #[test]
    fn a_kind_is_one_of_the_list() {
        for number in 0..=u8::MAX {
            let mut words = SENT.words();
            words[0] = words[0] & !(0xff << 48) | u64::from(number) << 48;
            let known = [1, 2, 3, 0x81, 0x82, 0x83].contains(&number);
            let parsed = Descriptor::parse(&words);
            assert_eq!(parsed.map(|found| found.kind as u8).ok(), known.then_some(number));
        }
    }
}
