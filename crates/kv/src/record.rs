//! One key and its value, as bytes of a block.
//!
//! | offset | bytes | what |
//! |---|---|---|
//! | 0 | 8 | check of all that follows, and of the link that the block is reached by |
//! | 8 | 8 | next record of the chain, 0 at its end |
//! | 16 | 8 | hash of the key |
//! | 24 | 8 | tag: the application's own |
//! | 32 | 4 | length of the key |
//! | 36 | 4 | length of the value |
//! | 40 | | key, value |

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::link::Link;

/// What comes before the key.
pub(crate) const HEADER_BYTES: usize = 40;

const NEXT: usize = 8;
const BODY: usize = 16;
const TAG: usize = 24;
const LENGTHS: usize = 32;

/// An odd number, so that no two links have the same product (2^64 by the golden ratio).
const NEXT_FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// A record that is whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'b> {
    pub(crate) next: Option<Link>,
    pub(crate) hash: u64,
    pub(crate) tag: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: &'b [u8],
}

/// The hash of a key.
pub(crate) fn hash_of(key: &[u8], seed: u64) -> u64 {
    xxh3_64_with_seed(key, seed)
}

/// How long a record is.
pub(crate) fn bytes_of(key: &[u8], value: &[u8]) -> u64 {
    (HEADER_BYTES + key.len() + value.len()) as u64
}

pub(crate) fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 B were taken"))
}

impl Record<'_> {
    /// How long it is.
    pub(crate) fn bytes(&self) -> u64 {
        bytes_of(self.key, self.value)
    }

    /// Writes it over `to`, for the block of `link`.
    pub(crate) fn encode(&self, link: Link, to: &mut Vec<u8>) {
        let next = self.next.map_or(0, Link::word);
        let lengths = (self.value.len() as u64) << 32 | self.key.len() as u64;
        let mut header = [0; HEADER_BYTES];
        for (place, word) in header.chunks_exact_mut(8).zip([0, next, self.hash, self.tag, lengths])
        {
            place.copy_from_slice(&word.to_le_bytes());
        }
        to.clear();
        to.reserve(self.bytes() as usize);
        to.extend_from_slice(&header);
        to.extend_from_slice(self.key);
        to.extend_from_slice(self.value);
        let check = check_of(link, next, &to[BODY..]);
        to[..8].copy_from_slice(&check.to_le_bytes());
    }

    /// The record in the block of `link`. `None` for bytes that are not one, or not this use of the
    /// block, or of two at once.
    pub(crate) fn parse(bytes: &[u8], link: Link) -> Option<Record<'_>> {
        let record = Record::view(bytes)?;
        let body = &bytes[BODY..HEADER_BYTES + record.key.len() + record.value.len()];
        (word(bytes, 0) == check_of(link, word(bytes, NEXT), body)).then_some(record)
    }

    /// The same of bytes that were checked before.
    pub(crate) fn view(bytes: &[u8]) -> Option<Record<'_>> {
        let (hash, tag, key_bytes, value_bytes) = head(bytes)?;
        let (key, rest) = bytes[HEADER_BYTES..].split_at_checked(key_bytes)?;
        let value = rest.get(..value_bytes)?;
        Some(Record { next: next_of(bytes), hash, tag, key, value })
    }
}

/// The hash, the tag, the length of key and value, as the first bytes of a block say.
pub(crate) fn head(bytes: &[u8]) -> Option<(u64, u64, usize, usize)> {
    let (key_bytes, value_bytes) = lengths(bytes)?;
    Some((word(bytes, BODY), word(bytes, TAG), key_bytes, value_bytes))
}

/// The next record, as the first bytes of a block say.
pub(crate) fn next_of(head: &[u8]) -> Option<Link> {
    Link::from_word(word(head, NEXT))
}

/// The first words of a record that is to be followed by `next` instead.
pub(crate) fn relinked(head: &[u8], next: Option<Link>) -> [u8; BODY] {
    let next = next.map_or(0, Link::word);
    let (old_check, old_next) = (word(head, 0), word(head, NEXT));
    let check = old_check.wrapping_sub(share_of(old_next)).wrapping_add(share_of(next));
    let mut words = [0; BODY];
    words[..NEXT].copy_from_slice(&check.to_le_bytes());
    words[NEXT..].copy_from_slice(&next.to_le_bytes());
    words
}

fn lengths(bytes: &[u8]) -> Option<(usize, usize)> {
    if bytes.len() < HEADER_BYTES {
        return None;
    }
    let lengths = word(bytes, LENGTHS);
    Some(((lengths & 0xffff_ffff) as usize, (lengths >> 32) as usize))
}

/// What `next` adds to the check: a memory node relinks a long record without reading all of it.
fn share_of(next: u64) -> u64 {
    next.wrapping_mul(NEXT_FACTOR)
}

fn check_of(link: Link, next: u64, body: &[u8]) -> u64 {
    xxh3_64_with_seed(body, link.word()).wrapping_add(share_of(next))
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
            tag: u64,
            wrong in any::<proptest::sample::Index>(),
            flip in 1_u8..,
        ) {
            let own = link(4096);
            let next = Some(link(8192));
            let record = Record { next, hash: hash_of(&key, 7), tag, key: &key, value: &value };
            let mut bytes = vec![1, 2, 3];
            record.encode(own, &mut bytes);
            prop_assert_eq!(bytes.len() as u64, record.bytes());
            prop_assert_eq!(Record::parse(&bytes, own), Some(record));
            prop_assert_eq!(Record::parse(&bytes, own.next_use()), None);
            prop_assert_eq!(Record::parse(&bytes[..bytes.len() - 1], own), None);

            let mut relinked_bytes = bytes.clone();
            let words = relinked(&bytes, None);
            relinked_bytes[..16].copy_from_slice(&words);
            let alone = Record { next: None, ..record };
            prop_assert_eq!(Record::parse(&relinked_bytes, own), Some(alone));

            let at = wrong.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(Record::parse(&bytes, own), None);
        }
    }
}
