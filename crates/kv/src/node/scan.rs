//! Scans the keys of a shard, a few buckets at a time, while clients write and the table grows.
//!
//! The cursor counts through the buckets by the reversed bits of their index. A bucket that is
//! split therefore becomes two that are both behind the cursor or both before it. So a key that
//! exists from the first call to the last is met.

use ethermem::{Address, OffloadError as Error};

use super::{Shard, damaged, refused};
use crate::call::{Answer, Became, Request};
use crate::layout::{COUNT_AT, MOVED};
use crate::link::Link;
use crate::record::{Apart, HEADER_BYTES, Head, RECORD_BYTES_MAX};

/// Largest number of buckets visited by one request.
const BUCKETS_MAX: u64 = 4096;

impl Shard<'_, '_> {
    /// Handles [`crate::call::What::Scan`]. The operand of the answer is the next cursor, 0 at the
    /// end; its bytes are keys, each behind its tag and its length. For a key that does not fit the
    /// answer, the record's link follows instead, marked in the length by [`KEY_IS_APART`].
    pub(super) fn scan(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let mut keys = Vec::new();
        let cursor = self.go_through(request, |shard, bucket| {
            shard.keys(bucket, &mut keys)?;
            Ok((keys.len() as u64) < RECORD_BYTES_MAX)
        })?;
        Ok(Answer { bytes: &keys, ..Answer::new(Became::Done, cursor) }.encode())
    }

    /// Handles [`crate::call::What::Clear`].
    pub(super) fn clear(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let cursor = self.go_through(request, |shard, bucket| {
            shard.clear_bucket(bucket)?;
            Ok(true)
        })?;
        Ok(Answer::new(Became::Done, cursor).encode())
    }

    /// Visits buckets from the request's cursor on until it has visited as many as requested or the
    /// visitor stops, and returns the next cursor. Each position of the cursor is a transaction.
    /// Only an error at the first position is returned: nothing has changed then. After an error at
    /// a later one, the caller continues from there.
    fn go_through(
        &mut self,
        request: &Request<'_>,
        mut visit: impl FnMut(&mut Self, Address) -> Result<bool, Error>,
    ) -> Result<u64, Error> {
        let mut cursor = request.operand;
        let log2 = if self.is_moving()? { self.tables.log2 - 1 } else { self.tables.log2 };
        for visited in 0..request.tag.clamp(1, BUCKETS_MAX) {
            match self.visit_place(cursor, &mut visit) {
                Err(error) if visited == 0 => return Err(error),
                Err(_) => {
                    self.changes.forget();
                    break;
                }
                Ok(goes_on) => {
                    cursor = next_cursor(cursor, log2);
                    if cursor == 0 || !goes_on {
                        break;
                    }
                }
            }
        }
        Ok(cursor)
    }

    fn visit_place(
        &mut self,
        cursor: u64,
        visit: &mut impl FnMut(&mut Self, Address) -> Result<bool, Error>,
    ) -> Result<bool, Error> {
        let mut goes_on = true;
        for bucket in self.buckets_at(cursor)? {
            goes_on &= visit(self, bucket)?;
        }
        self.commit()?;
        Ok(goes_on)
    }

    /// The buckets at a position of the cursor: one, or the two that it was moved to.
    pub(super) fn buckets_at(&mut self, cursor: u64) -> Result<Vec<Address>, Error> {
        let memory = self.base.memory();
        if !self.is_moving()? {
            return Ok(vec![self.tables.bucket(memory, cursor)]);
        }
        let before = self.tables.bucket_before(memory, cursor);
        let before = before.ok_or_else(|| refused("no table to move from"))?;
        if self.memory.read_u64(before)? != MOVED {
            return Ok(vec![before]);
        }
        let half = 1 << (self.tables.log2 - 1);
        Ok([cursor & !half, cursor | half].map(|hash| self.tables.bucket(memory, hash)).to_vec())
    }

    fn keys(&mut self, bucket: Address, keys: &mut Vec<u8>) -> Result<(), Error> {
        for (link, Head { tag, key_bytes, .. }) in self.chain(bucket)? {
            let is_apart = (keys.len() + KEY_HEAD_BYTES + key_bytes) as u64 > RECORD_BYTES_MAX;
            let length = key_bytes as u64 | if is_apart { KEY_IS_APART } else { 0 };
            keys.extend_from_slice(&tag.to_le_bytes());
            keys.extend_from_slice(&length.to_le_bytes());
            if is_apart {
                keys.extend_from_slice(&link.word().to_le_bytes());
                continue;
            }
            let (head, bytes) = self.head(link, (HEADER_BYTES + key_bytes) as u64)?;
            keys.extend_from_slice(head.key(bytes).ok_or_else(damaged)?);
        }
        Ok(())
    }

    fn clear_bucket(&mut self, bucket: Address) -> Result<(), Error> {
        let chain = self.chain(bucket)?;
        if chain.is_empty() {
            return Ok(());
        }
        self.set_bucket(bucket, None);
        self.add_to_word(COUNT_AT, (chain.len() as u64).wrapping_neg())?;
        for (link, head) in chain {
            if let Some(apart) = self.apart_of(link, head.key_bytes)? {
                self.free(apart.link)?;
            }
            self.free(link)?;
        }
        Ok(())
    }

    /// Location of a record's value, if the value is stored apart.
    pub(super) fn apart_of(
        &mut self,
        link: Link,
        key_bytes: usize,
    ) -> Result<Option<Apart>, Error> {
        let (head, bytes) = self.head(link, Head::bytes_to_value(key_bytes))?;
        head.apart(bytes).ok_or_else(damaged)
    }
}

/// Increments from the highest bit of the index downwards; 0 behind the last bucket.
fn next_cursor(cursor: u64, log2: u32) -> u64 {
    let above = u64::MAX << log2;
    (cursor | above).reverse_bits().wrapping_add(1).reverse_bits()
}

/// Bytes before each key in an answer: its tag and its length.
pub(crate) const KEY_HEAD_BYTES: usize = 16;
/// Flag in the length: a link stands for the key.
pub(crate) const KEY_IS_APART: u64 = 1 << 63;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cursor_meets_every_bucket_and_halves_stay_together() {
        for log2 in 0..6_u32 {
            let mut met = Vec::new();
            let mut cursor = 0;
            loop {
                met.push(cursor & ((1 << log2) - 1));
                cursor = next_cursor(cursor, log2);
                if cursor == 0 {
                    break;
                }
            }
            let mut sorted = met.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..1 << log2).collect::<Vec<u64>>(), "{met:?}");
        }
    }
}
