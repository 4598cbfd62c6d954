//! The operation that follows pointers at the node.

use std::task::Poll;

use crate::address::Address;
use crate::sliced::{Allowance, Look, Sliced};
use crate::words::{decode, encode};
use crate::{NodeMemory, OffloadError};

/// Follows pointers from element to element until a key is found. The elements may form a linked
/// list, a bucket of a hash table or a path in a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chase {
    /// The first element; [`Address::NULL`] is an empty chain.
    pub start: Address,
    /// Offset in an element of the next element's address, in bytes.
    pub next_offset: u32,
    /// Offset in an element of its key, in bytes.
    pub key_offset: u32,
    /// Offset in an element of the returned bytes, in bytes.
    pub value_offset: u32,
    /// Number of bytes of the element to return; 0 returns only its address.
    pub value_bytes: u32,
    /// Maximum number of elements to read.
    pub elements_max: u32,
    /// The key to find.
    pub key: Vec<u8>,
}

/// The result of [`Chase`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chased {
    /// The address of the element that was found.
    pub address: Address,
    /// The bytes of the element.
    pub value: Vec<u8>,
}

impl Chase {
    /// The name of the operation.
    pub const NAME: &'static str = "chase";
    const WORDS: usize = 6;

    /// Encodes the arguments of the operation: six little-endian words and the key.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let words = [
            self.start.0,
            self.next_offset.into(),
            self.key_offset.into(),
            self.value_offset.into(),
            self.value_bytes.into(),
            self.elements_max.into(),
        ];
        encode(&words, &self.key)
    }

    fn decode(arguments: &[u8]) -> Option<Chase> {
        let (words, key) = decode::<{ Chase::WORDS }>(arguments)?;
        let [start, numbers @ ..] = words;
        let mut narrow = [0; Chase::WORDS - 1];
        for (narrow, number) in narrow.iter_mut().zip(numbers) {
            *narrow = u32::try_from(number).ok()?;
        }
        let [next_offset, key_offset, value_offset, value_bytes, elements_max] = narrow;
        let (start, key) = (Address(start), key.to_vec());
        Some(Chase { start, next_offset, key_offset, value_offset, value_bytes, elements_max, key })
    }

    /// Reads the result of the operation; `None` if no element has the key.
    ///
    /// # Errors
    /// [`OffloadError::Failed`] for bytes that are not a result.
    pub fn result(bytes: &[u8]) -> Result<Option<Chased>, OffloadError> {
        if bytes.is_empty() {
            return Ok(None);
        }
        let no_result = || OffloadError::failed("a result begins with an address");
        let ([address], value) = decode::<1>(bytes).ok_or_else(no_result)?;
        Ok(Some(Chased { address: Address(address), value: value.to_vec() }))
    }
}

/// A chase in progress.
pub(super) struct ChaseRun {
    chase: Chase,
    at: Address,
    /// Number of elements that may still be read.
    elements: u32,
    allowance: Allowance,
}

impl ChaseRun {
    /// Reads one element.
    fn element(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        let (chase, at) = (&self.chase, self.at);
        if self.elements == 0 {
            let problem = format!("no end within {} elements", chase.elements_max);
            return Poll::Ready(Err(OffloadError::failed(problem)));
        }
        if at == Address::NULL {
            return Poll::Ready(Ok(Vec::new()));
        }
        self.elements -= 1;
        let key_at = at.add(chase.key_offset.into());
        let empty = chase.key.is_empty();
        if empty || memory.read(key_at, chase.key.len() as u64)? == chase.key {
            let value: &[u8] = match chase.value_bytes {
                0 => &[],
                bytes => memory.read(at.add(chase.value_offset.into()), bytes.into())?,
            };
            return Poll::Ready(Ok(encode(&[at.0], value)));
        }
        self.at = Address(memory.read_u64(at.add(chase.next_offset.into()))?);
        Poll::Pending
    }
}

impl Sliced for ChaseRun {
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        while !self.allowance.slice_is_over(memory)? {
            if let Poll::Ready(ended) = self.element(memory) {
                return Poll::Ready(ended);
            }
        }
        Poll::Pending
    }
}

impl Look for ChaseRun {
    fn begin(arguments: &[u8], allowance: Allowance) -> Result<Self, OffloadError> {
        let allowed = "must be six words below 2^32 after the start, and a key";
        let chase = Chase::decode(arguments).ok_or_else(|| OffloadError::failed(allowed))?;
        Ok(ChaseRun { at: chase.start, elements: chase.elements_max, chase, allowance })
    }
}
