//! The keys of a shard, a few buckets at a time, while others write and the table grows.
//!
//! The cursor goes through the buckets by the reversed bits of their index, so that a bucket that
//! is split becomes two that are both behind the cursor or both before it: what is there from the
//! first call to the last is met.

use ethermem::{Address, OffloadError as Error};

use super::{INLINE_BYTES_MAX, Shard, refused};
use crate::call::{Answer, Became, Request, What};
use crate::layout::{COUNT_AT, MOVED};
use crate::record::Record;

/// Most buckets that are looked at at once.
const BUCKETS_MAX: u64 = 4096;

impl Shard<'_, '_> {
    /// See [`What::Scan`], [`What::Clear`]. The operand of the answer is the cursor to go on
    /// from, 0 at the end; its bytes are keys, each behind its tag and its length.
    pub(super) fn scan(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let mut cursor = request.operand;
        let mut keys = Vec::new();
        let log2 = if self.is_moving()? { self.tables.log2 - 1 } else { self.tables.log2 };
        for _ in 0..request.tag.clamp(1, BUCKETS_MAX) {
            for bucket in self.buckets_at(cursor)? {
                match request.what {
                    What::Clear => self.clear(bucket)?,
                    _ => self.keys(bucket, &mut keys)?,
                }
            }
            cursor = next_cursor(cursor, log2);
            if cursor == 0 || keys.len() as u64 > INLINE_BYTES_MAX {
                break;
            }
        }
        Ok(Answer { bytes: &keys, ..Answer::new(Became::Done, cursor) }.encode())
    }

    /// The buckets at a place of the cursor: one, or the two that it was moved to.
    fn buckets_at(&mut self, cursor: u64) -> Result<Vec<Address>, Error> {
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
        for (link, ..) in self.chain(bucket)? {
            let bytes = self.memory.read(link.at(self.base.memory()), link.bytes())?;
            let record = Record::parse(bytes, link).ok_or_else(|| refused("a damaged record"))?;
            keys.extend_from_slice(&record.tag.to_le_bytes());
            keys.extend_from_slice(&(record.key.len() as u64).to_le_bytes());
            keys.extend_from_slice(record.key);
        }
        Ok(())
    }

    fn clear(&mut self, bucket: Address) -> Result<(), Error> {
        let chain = self.chain(bucket)?;
        if chain.is_empty() {
            return Ok(());
        }
        self.set_bucket(bucket, None)?;
        self.add_to_word(COUNT_AT, (chain.len() as u64).wrapping_neg())?;
        chain.into_iter().try_for_each(|(link, ..)| self.free(link))
    }
}

/// One more, counted from the highest bit of the index; 0 behind the last bucket.
fn next_cursor(cursor: u64, log2: u32) -> u64 {
    let above = u64::MAX << log2;
    (cursor | above).reverse_bits().wrapping_add(1).reverse_bits()
}

/// The bytes of a key before it, in an answer: its tag and its length.
pub(crate) const KEY_HEAD_BYTES: usize = 16;

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
