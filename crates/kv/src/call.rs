//! Requests and answers of the operation `key-value` at a memory node.
//!
//! A request is five little-endian words (operation, the shard's address, a hash, an operand, a
//! tag), then a key, and a value. An answer is three words (result, an operand, a tag) and bytes.

use ethermem::Address;

use crate::link::Link;
use crate::record::word;

const REQUEST_WORDS: usize = 5;
const ANSWER_WORDS: usize = 3;
const PART_HEADER_BYTES: usize = 4;

/// Requests in one message have at most so many bytes. Their answers have as many, and one more
/// answer. A page of an answer is a datagram, so more would save little.
pub(crate) const MANY_BYTES_MAX: usize = 8 << 10;

/// Operation at the memory node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum What {
    /// Reads the value of a key.
    Get = 0,
    /// Stores the value if the operand's condition holds.
    Put = 1,
    /// As [`What::Put`], for a value that is stored apart: the value here is its location.
    Link = 2,
    /// Deletes a key if the condition holds.
    Delete = 3,
    /// Takes up to `tag` blocks of the class `operand`.
    Take = 4,
    /// Frees blocks, whose links follow.
    Give = 5,
    /// Adds `tag` bytes from the offset `operand` on to the memory for blocks, if that has `hash`
    /// bytes until now. If it has more, another client has added some since this one was told that
    /// it needs them.
    Extend = 6,
    /// Adds the table at the offset `operand`, with 2^`tag` buckets.
    Grow = 7,
    /// Moves `operand` buckets to the last table.
    Move = 8,
    /// Lists the keys of `tag` buckets from the cursor `operand` on.
    Scan = 9,
    /// As [`What::Scan`], and deletes the keys.
    Clear = 10,
    /// Executes requests of the same shard, which follow as [`parts`], one after the other.
    Many = 11,
}

impl What {
    const ALL: [What; 12] = [
        What::Get,
        What::Put,
        What::Link,
        What::Delete,
        What::Take,
        What::Give,
        What::Extend,
        What::Grow,
        What::Move,
        What::Scan,
        What::Clear,
        What::Many,
    ];
}

/// Condition for writing or deleting a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// No condition.
    Always,
    /// The key does not exist.
    Absent,
    /// The key exists.
    Present,
    /// The key has not been written since this version was read.
    Is(Version),
}

/// Identifies one write of a key. It may change without a write, but a write always changes it:
/// 2^20 changes pass before a version repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(pub(crate) Link);

impl When {
    /// Encoding in a word: words below those of links are free for the other conditions.
    fn word(self) -> u64 {
        match self {
            When::Always => 0,
            When::Absent => 1,
            When::Present => 2,
            When::Is(Version(link)) => link.word(),
        }
    }

    fn from_word(word: u64) -> Option<When> {
        match word {
            0 => Some(When::Always),
            1 => Some(When::Absent),
            2 => Some(When::Present),
            word => Link::from_word(word).map(|link| When::Is(Version(link))),
        }
    }

    /// True if it holds for a key whose record is `found`.
    pub(crate) fn holds(self, found: Option<Link>) -> bool {
        match self {
            When::Always => true,
            When::Absent => found.is_none(),
            When::Present => found.is_some(),
            When::Is(Version(link)) => found == Some(link),
        }
    }
}

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Request<'b> {
    pub(crate) what: What,
    pub(crate) shard: Address,
    pub(crate) hash: u64,
    pub(crate) operand: u64,
    pub(crate) tag: u64,
    pub(crate) key: &'b [u8],
    pub(crate) value: &'b [u8],
}

impl<'b> Request<'b> {
    pub(crate) fn new(what: What, shard: Address) -> Request<'b> {
        Request { what, shard, hash: 0, operand: 0, tag: 0, key: &[], value: &[] }
    }

    pub(crate) fn when(self, when: When) -> Request<'b> {
        Request { operand: when.word(), ..self }
    }

    /// The condition that the operand encodes.
    pub(crate) fn condition(&self) -> Option<When> {
        When::from_word(self.operand)
    }

    /// Encodes the request, replacing the content of `to`.
    pub(crate) fn encode(&self, to: &mut Vec<u8>) {
        to.clear();
        self.append(to);
    }

    /// Encodes the request behind the content of `to`.
    pub(crate) fn append(&self, to: &mut Vec<u8>) {
        let what = (self.key.len() as u64) << 32 | self.what as u64;
        for word in [what, self.shard.0, self.hash, self.operand, self.tag] {
            to.extend_from_slice(&word.to_le_bytes());
        }
        to.extend_from_slice(self.key);
        to.extend_from_slice(self.value);
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Request<'_>> {
        let (words, rest) = bytes.split_at_checked(8 * REQUEST_WORDS)?;
        let first = word(words, 0);
        let what = *What::ALL.get((first & 0xffff_ffff) as usize)?;
        let (key, value) = rest.split_at_checked((first >> 32) as usize)?;
        let (shard, hash) = (Address(word(words, 8)), word(words, 16));
        let (operand, tag) = (word(words, 24), word(words, 32));
        Some(Request { what, shard, hash, operand, tag, key, value })
    }
}

/// Result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Became {
    /// It was done.
    Done = 0,
    /// The condition does not hold or the key does not exist; the operand is the record's link.
    Refused = 1,
    /// No block is free; the operand is the size of the node's regions in bytes.
    NeedsRegion = 2,
    /// As [`Became::Done`], and the bytes give the location of a value that is stored apart.
    Elsewhere = 3,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer<'b> {
    pub(crate) became: Became,
    /// True if the shard needs a larger table.
    pub(crate) wants_table: bool,
    pub(crate) operand: u64,
    pub(crate) tag: u64,
    pub(crate) bytes: &'b [u8],
}

impl<'b> Answer<'b> {
    pub(crate) fn new(became: Became, operand: u64) -> Answer<'b> {
        Answer { became, wants_table: false, operand, tag: 0, bytes: &[] }
    }

    /// An answer with the link of the record that was found or made.
    pub(crate) fn of_link(became: Became, link: Option<Link>) -> Answer<'b> {
        Answer::new(became, link.map_or(0, Link::word))
    }

    pub(crate) fn link(&self) -> Option<Link> {
        Link::from_word(self.operand)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(8 * ANSWER_WORDS + self.bytes.len());
        let became = u64::from(self.wants_table) << 8 | self.became as u64;
        for word in [became, self.operand, self.tag] {
            to.extend_from_slice(&word.to_le_bytes());
        }
        to.extend_from_slice(self.bytes);
        to
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Answer<'_>> {
        let (words, bytes) = bytes.split_at_checked(8 * ANSWER_WORDS)?;
        let first = word(words, 0);
        let became = match first & 0xff {
            0 => Became::Done,
            1 => Became::Refused,
            2 => Became::NeedsRegion,
            3 => Became::Elsewhere,
            _ => return None,
        };
        let wants_table = first >> 8 & 1 == 1;
        let (operand, tag) = (word(words, 8), word(words, 16));
        Some(Answer { became, wants_table, operand, tag, bytes })
    }
}

/// Appends a part: its length, then what `encode` appends.
pub(crate) fn append_part(to: &mut Vec<u8>, encode: impl FnOnce(&mut Vec<u8>)) {
    let at = to.len();
    to.extend_from_slice(&[0; PART_HEADER_BYTES]);
    encode(to);
    let length = (to.len() - at - PART_HEADER_BYTES) as u32;
    to[at..at + PART_HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
}

/// The parts of a [`What::Many`], or of its answer: each a length of 4 B, and as many bytes. A part
/// that is cut short ends them.
pub(crate) fn parts(mut bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (length, rest) = bytes.split_first_chunk::<PART_HEADER_BYTES>()?;
        let (part, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        bytes = rest;
        Some(part)
    })
}

/// Links, as `Take` and `Give` carry them.
pub(crate) fn links(bytes: &[u8]) -> impl Iterator<Item = Link> {
    bytes.chunks_exact(8).filter_map(|octets| {
        Link::from_word(u64::from_le_bytes(octets.try_into().expect("chunks of 8 B")))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::link::Class;

    #[test]
    fn every_request_reads_back() {
        let link = Link::new(4096, Class::holding(99));
        for (number, what) in What::ALL.into_iter().enumerate() {
            assert_eq!(what as usize, number);
            let plain = Request::new(what, Address(77));
            let request = Request { hash: 5, tag: 9, key: b"key", value: b"value", ..plain };
            for when in [When::Always, When::Absent, When::Present, When::Is(Version(link))] {
                let mut bytes = Vec::new();
                request.when(when).encode(&mut bytes);
                let read = Request::decode(&bytes).unwrap();
                assert_eq!((read, read.condition()), (request.when(when), Some(when)));
            }
        }
    }

    #[test]
    fn every_answer_reads_back() {
        for became in [Became::Done, Became::Refused, Became::NeedsRegion, Became::Elsewhere] {
            let answer =
                Answer { became, wants_table: true, operand: 1 << 40, tag: 3, bytes: b"some" };
            assert_eq!(Answer::decode(&answer.encode()), Some(answer));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..99)) {
            let _ = (Request::decode(&bytes), Answer::decode(&bytes));
            let longest: usize = parts(&bytes).map(|part| part.len() + PART_HEADER_BYTES).sum();
            assert!(longest <= bytes.len());
        }
    }
}
