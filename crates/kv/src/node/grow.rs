//! Growth of tables: buckets are moved a few at a time, each atomically.

use ethermem::{Address, OffloadError as Error};

use super::{Shard, done, refused};
use crate::call::{Answer, Became, Request};
use crate::layout::{MOVED, MOVED_AT, TABLES_AT, UNSET};
use crate::link::Link;
use crate::record::{HEADER_BYTES, Head};

impl Shard<'_, '_> {
    /// Handles [`crate::call::What::Grow`]. It is refused unless the table is the next one and the
    /// last one has received all buckets of the one before.
    pub(super) fn grow(&mut self, request: &Request<'_>) -> Result<Vec<u8>, Error> {
        let log2 = u64::from(self.tables.log2) + 1;
        if request.tag != log2 || !self.tables.may_grow() || self.is_moving()? {
            return Ok(Answer::new(Became::Refused, 0).encode());
        }
        self.set_word(MOVED_AT, 0);
        self.set_word(TABLES_AT + 8 * log2, request.operand);
        Ok(done())
    }

    /// Handles [`crate::call::What::Move`]: the operand of the answer is 1 while more buckets
    /// remain.
    pub(super) fn move_buckets(&mut self, most: u64) -> Result<Vec<u8>, Error> {
        let moving = self.move_some(most)?;
        Ok(Answer::new(Became::Done, moving.into()).encode())
    }

    /// True if there are buckets to move.
    pub(super) fn is_moving(&mut self) -> Result<bool, Error> {
        let before = self.tables.bucket_before(self.base.memory(), 0);
        Ok(before.is_some() && self.word(MOVED_AT)? < self.buckets_before())
    }

    /// Moves buckets to the last table, and returns whether more remain. Each is a transaction, so
    /// no other changes may be pending before. If blocks are missing, a bucket stays where it is,
    /// and remains valid there. Only an error at the first bucket is returned: nothing was moved
    /// then.
    pub(super) fn move_some(&mut self, most: u64) -> Result<bool, Error> {
        if !self.is_moving()? {
            return Ok(false);
        }
        let first = self.word(MOVED_AT)?;
        let end = first.saturating_add(most).min(self.buckets_before());
        let mut moved = first;
        while moved < end {
            match self.move_bucket(moved) {
                Ok(true) => moved += 1,
                Err(error) if moved == first => return Err(error),
                Ok(false) | Err(_) => break,
            }
        }
        self.changes.forget();
        Ok(moved < self.buckets_before())
    }

    fn buckets_before(&self) -> u64 {
        1 << (self.tables.log2 - 1)
    }

    /// Splits a chain into those of its two new buckets. Returns false if there are too few blocks.
    fn move_bucket(&mut self, index: u64) -> Result<bool, Error> {
        let memory = self.base.memory();
        let from = self.tables.bucket_before(memory, index);
        let from = from.ok_or_else(|| refused("no table to move from"))?;
        let halves = [index, index + self.buckets_before()];
        let to: [Address; 2] = halves.map(|hash| self.tables.bucket(memory, hash));
        let chain = self.chain(from)?;
        let (mut firsts, mut stale) = ([None; 2], Vec::new());
        // The walk begins at the end: a record whose next one stays need not be copied.
        for &(link, Head { hash, next, .. }) in chain.iter().rev() {
            let half = usize::from(hash & self.buckets_before() != 0);
            if next == firsts[half] {
                firsts[half] = Some(link);
                continue;
            }
            let Some(copy) = self.block(link.class())? else {
                return Ok(false);
            };
            self.copy(link, copy, firsts[half])?;
            firsts[half] = Some(copy);
            stale.push(link);
        }
        for (bucket, first) in to.into_iter().zip(firsts) {
            self.set_bucket(bucket, first);
        }
        self.changes.set_word(from, MOVED);
        stale.into_iter().try_for_each(|link| self.free(link))?;
        self.set_word(MOVED_AT, index + 1);
        self.commit()?;
        Ok(true)
    }

    /// The records of a bucket, with their headers.
    pub(super) fn chain(&mut self, bucket: Address) -> Result<Vec<(Link, Head)>, Error> {
        let word = self.word_at(bucket)?;
        debug_assert!(word == UNSET || word != MOVED, "a bucket is moved once");
        let mut chain = Vec::new();
        let mut at = Link::from_word(word);
        while let Some(link) = at {
            let (head, _) = self.head(link, HEADER_BYTES as u64)?;
            at = head.next;
            chain.push((link, head));
        }
        Ok(chain)
    }
}
