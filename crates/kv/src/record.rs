//! Records: one key and its value, as bytes of a block.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | check of all that follows, and of the link that the block is reached by |
//! | 8 | 8 | next record of the chain, 0 at its end |
//! | 16 | 8 | hash of the key |
//! | 24 | 8 | tag: the application's own |
//! | 32 | 4 | length of the key |
//! | 36 | 4 | length of the value; the highest bit is set if the value lies apart |
//! | 40 | | key, and then the value, or the link of its block |
//!
//! A record is at most [`RECORD_BYTES_MAX`] long. A value that would make it longer is stored
//! apart, in a block of its own, so that walking or copying a chain never reads it. That block:
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | check of the value, and of the link that the block is reached by |
//! | 8 | | value |

use twox_hash::XxHash3_64;

use crate::link::Link;

/// Bytes before the key.
pub(crate) const HEADER_BYTES: usize = 40;
/// Longest record in bytes: the most that a request or an answer carries.
pub(crate) const RECORD_BYTES_MAX: u64 = 16 << 10;
/// Bytes before a value that is stored apart.
pub(crate) const APART_HEADER_BYTES: usize = 8;

const NEXT: usize = 8;
const BODY: usize = 16;
const TAG: usize = 24;
const LENGTHS: usize = 32;
/// Length of a link in bytes.
const LINK_BYTES: usize = 8;
/// Flag in the word of lengths: the value is stored apart.
const APART: u64 = 1 << 63;

/// An odd number, so that distinct links have distinct products (2^64 divided by the golden ratio).
const NEXT_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A complete record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'b> {
    pub(crate) next: Option<Link>,
    pub(crate) hash: u64,
    pub(crate) tag: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: Stored<'b>,
}

/// Location of a record's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored<'b> {
    Here(&'b [u8]),
    Apart(Apart),
}

/// Location of a value in a block of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Apart {
    pub(crate) link: Link,
    /// Length of the value in bytes.
    pub(crate) bytes: u64,
}

/// The words before the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) next: Option<Link>,
    pub(crate) hash: u64,
    pub(crate) tag: u64,
    pub(crate) key_bytes: usize,
    /// Length of the value in bytes, wherever it is stored.
    value_bytes: usize,
    is_apart: bool,
}

/// Hash of a key.
pub(crate) fn hash_of(key: &[u8], seed: u64) -> u64 {
    XxHash3_64::oneshot_with_seed(seed, key)
}

/// True if a value must be stored apart from its key.
pub(crate) fn is_apart(key: &[u8], value: &[u8]) -> bool {
    (HEADER_BYTES + key.len() + value.len()) as u64 > RECORD_BYTES_MAX
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 B were taken"))
}

impl Stored<'_> {
    pub(crate) fn apart(&self) -> Option<Apart> {
        match *self {
            Stored::Here(_) => None,
            Stored::Apart(apart) => Some(apart),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Stored::Here(value) => value.len(),
            Stored::Apart(_) => LINK_BYTES,
        }
    }

    fn length_word(&self) -> u64 {
        match self {
            Stored::Here(value) => (value.len() as u64) << 32,
            Stored::Apart(apart) => APART | apart.bytes << 32,
        }
    }
}

impl Apart {
    /// Encoding in requests and answers.
    pub(crate) fn to_bytes(self) -> [u8; 2 * LINK_BYTES] {
        let mut bytes = [0; 2 * LINK_BYTES];
        bytes[..LINK_BYTES].copy_from_slice(&self.link.word().to_le_bytes());
        bytes[LINK_BYTES..].copy_from_slice(&self.bytes.to_le_bytes());
        bytes
    }

    /// Decodes a location; `None` for bytes that name no block, or a block that is too short.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Apart> {
        let bytes: &[u8; 2 * LINK_BYTES] = bytes.try_into().ok()?;
        let apart =
            Apart { link: Link::from_word(word(bytes, 0))?, bytes: word(bytes, LINK_BYTES) };
        apart.fits().then_some(apart)
    }

    fn fits(self) -> bool {
        self.bytes <= self.link.bytes().saturating_sub(APART_HEADER_BYTES as u64)
    }

    /// Length in bytes of the used part of its block.
    pub(crate) fn block_bytes(self) -> u64 {
        APART_HEADER_BYTES as u64 + self.bytes
    }

    /// Encodes the block, replacing the content of `to`.
    pub(crate) fn encode(self, value: &[u8], to: &mut Vec<u8>) {
        to.clear();
        to.reserve(APART_HEADER_BYTES + value.len());
        to.extend_from_slice(&XxHash3_64::oneshot_with_seed(self.link.word(), value).to_le_bytes());
        to.extend_from_slice(value);
    }

    /// The value in its block's bytes; `None` if the block has another use.
    pub(crate) fn parse(self, bytes: &[u8]) -> Option<&[u8]> {
        let (check, value) = bytes.split_at_checked(APART_HEADER_BYTES)?;
        self.is_checked(word(check, 0), value).then_some(value)
    }

    /// True if these bytes are the value, whole, by the check that its block begins with.
    pub(crate) fn is_checked(self, check: u64, value: &[u8]) -> bool {
        value.len() as u64 == self.bytes
            && check == XxHash3_64::oneshot_with_seed(self.link.word(), value)
    }
}

impl Head {
    /// Decodes the first bytes of a block.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Head> {
        if bytes.len() < HEADER_BYTES {
            return None;
        }
        let lengths = word(bytes, LENGTHS);
        Some(Head {
            next: Link::from_word(word(bytes, NEXT)),
            hash: word(bytes, BODY),
            tag: word(bytes, TAG),
            key_bytes: (lengths & 0xffff_ffff) as usize,
            value_bytes: ((lengths & !APART) >> 32) as usize,
            is_apart: lengths & APART != 0,
        })
    }

    /// The key, if the block's bytes include all of it.
    pub(crate) fn key(self, bytes: &[u8]) -> Option<&[u8]> {
        bytes.get(HEADER_BYTES..HEADER_BYTES + self.key_bytes)
    }

    /// The value or its location, if the block's bytes include it.
    pub(crate) fn value(self, bytes: &[u8]) -> Option<Stored<'_>> {
        let rest = bytes.get(HEADER_BYTES + self.key_bytes..)?;
        if !self.is_apart {
            return rest.get(..self.value_bytes).map(Stored::Here);
        }
        let link = Link::from_word(word(rest.get(..LINK_BYTES)?, 0))?;
        let apart = Apart { link, bytes: self.value_bytes as u64 };
        apart.fits().then_some(Stored::Apart(apart))
    }

    /// Location of a value that is stored apart, from the first [`Head::bytes_to_value`] bytes of a
    /// block.
    pub(crate) fn apart(self, bytes: &[u8]) -> Option<Option<Apart>> {
        if !self.is_apart {
            return Some(None);
        }
        self.value(bytes)?.apart().map(Some)
    }

    /// Length in bytes of a block's part up to the value or its location, for a key of `key_bytes`.
    pub(crate) fn bytes_to_value(key_bytes: usize) -> u64 {
        (HEADER_BYTES + key_bytes + LINK_BYTES) as u64
    }
}

impl Record<'_> {
    /// Length of the record in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        (HEADER_BYTES + self.key.len() + self.value.bytes()) as u64
    }

    /// Encodes the record for the block of `link`, replacing the content of `to`.
    pub(crate) fn encode(&self, link: Link, to: &mut Vec<u8>) {
        let next = self.next.map_or(0, Link::word);
        let lengths = self.value.length_word() | self.key.len() as u64;
        let mut header = [0; HEADER_BYTES];
        for (place, word) in header.chunks_exact_mut(8).zip([0, next, self.hash, self.tag, lengths])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        to.clear();
        to.reserve(self.bytes() as usize);
        to.extend_from_slice(&header);
        to.extend_from_slice(self.key);
        match self.value {
            Stored::Here(value) => to.extend_from_slice(value),
            Stored::Apart(apart) => to.extend_from_slice(&apart.link.word().to_le_bytes()),
        }
        let check = check_of(link, next, &to[BODY..]);
        to[..8].copy_from_slice(&check.to_le_bytes());
    }

    /// The record in the block of `link`. `None` if the bytes are not a record, belong to another
    /// use of the block, or mix two uses.
    pub(crate) fn parse(bytes: &[u8], link: Link) -> Option<Record<'_>> {
        let record = Record::view(bytes)?;
        let body = &bytes[BODY..record.bytes() as usize];
        (word(bytes, 0) == check_of(link, word(bytes, NEXT), body)).then_some(record)
    }

    /// As [`Record::parse`], for bytes that were checked before.
    pub(crate) fn view(bytes: &[u8]) -> Option<Record<'_>> {
        let head = Head::parse(bytes)?;
        let (key, value) = (head.key(bytes)?, head.value(bytes)?);
        Some(Record { next: head.next, hash: head.hash, tag: head.tag, key, value })
    }
}

fn check_of(link: Link, next: u64, body: &[u8]) -> u64 {
    XxHash3_64::oneshot_with_seed(link.word(), body).wrapping_add(next.wrapping_mul(NEXT_FACTOR))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::Class;

    fn link(offset: u64) -> Link {
        Link::new(offset, Class::holding(512))
    }

    proptest! {
        #[test]
        fn a_record_reads_back_and_no_other_bytes_do(
            key in proptest::collection::vec(any::<u8>(), 0..40),
            value in proptest::collection::vec(any::<u8>(), 0..200),
            is_apart: bool,
            tag: u64,
            wrong in any::<proptest::sample::Index>(),
            flip in 1_u8..,
        ) {
            let own = link(4096);
            let next = Some(link(8192));
            let apart = Apart { link: link(12_288), bytes: value.len() as u64 };
            let value = if is_apart { Stored::Apart(apart) } else { Stored::Here(&value) };
            let record = Record { next, hash: hash_of(&key, 7), tag, key: &key, value };
            let mut bytes = vec![1, 2, 3];
            record.encode(own, &mut bytes);
            prop_assert_eq!(bytes.len() as u64, record.bytes());
            prop_assert_eq!(Record::parse(&bytes, own), Some(record));
            prop_assert_eq!(Record::parse(&bytes, own.next_use()), None);
            prop_assert_eq!(Record::parse(&bytes[..bytes.len() - 1], own), None);

            let at = wrong.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(Record::parse(&bytes, own), None);
        }

        #[test]
        fn a_value_apart_reads_back_and_no_other_bytes_do(
            value in proptest::collection::vec(any::<u8>(), 0..200),
            wrong in any::<proptest::sample::Index>(),
            flip in 1_u8..,
        ) {
            let apart = Apart { link: link(4096), bytes: value.len() as u64 };
            let mut bytes = vec![1, 2, 3];
            apart.encode(&value, &mut bytes);
            prop_assert_eq!(bytes.len() as u64, apart.block_bytes());
            prop_assert_eq!(apart.parse(&bytes), Some(&value[..]));
            let reused = Apart { link: apart.link.next_use(), ..apart };
            prop_assert_eq!(reused.parse(&bytes), None);
            let at = wrong.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(apart.parse(&bytes), None);
        }
    }

    #[test]
    fn a_value_lies_apart_if_its_record_were_too_long_with_it() {
        for key in [0, 1, 3, 8192] {
            let most = RECORD_BYTES_MAX as usize - HEADER_BYTES - key;
            for (value, apart) in [(0, false), (most, false), (most + 1, true)] {
                assert_eq!(is_apart(&vec![1; key], &vec![2; value]), apart, "{key}, {value}");
            }
        }
    }

    #[test]
    fn a_value_apart_fits_in_its_block() {
        let link = link(4096);
        let most = link.bytes() - APART_HEADER_BYTES as u64;
        for (bytes, fits) in [(0, true), (most, true), (most + 1, false), (u64::MAX, false)] {
            let read = Apart::from_bytes(&Apart { link, bytes }.to_bytes());
            assert_eq!(read.map(|apart| apart.bytes), fits.then_some(bytes));
        }
    }
}
