//! Operations on many keys: memory nodes go through their buckets, whichever side walks the index.

use super::{Client, node};
use crate::call::{Request, What};
use crate::error::Error;
use crate::layout::{COUNT_AT, STATISTICS_BYTES};
use crate::link::Link;
use crate::node::{KEY_HEAD_BYTES, KEY_IS_APART};
use crate::record::word;
use crate::store::{Key, Scanned, Statistics};

const LINK_BYTES: usize = 8;
/// Number of buckets emptied at once.
const CLEARED_EACH: u64 = 1024;

impl Client {
    /// Lists the keys of some buckets from a cursor on. The cursor is 0 at first, then the one that
    /// the previous step gave, until it is 0 again. A key that exists during the whole scan is met
    /// at least once; a key that is added or deleted meanwhile may be met.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn scan(&mut self, cursor: u64, buckets: u64) -> Result<Scanned, Error> {
        self.settle().await;
        let shard = (cursor % self.shards.len() as u64) as usize;
        let (memory, mut met) = (self.header(shard).memory(), None);
        'anew: loop {
            let (next, bytes) = self.step(What::Scan, cursor, buckets).await?;
            let mut rest = &bytes[..];
            let mut keys = Vec::new();
            while let Some((head, behind)) = rest.split_at_checked(KEY_HEAD_BYTES) {
                let (tag, length) = (word(head, 0), word(head, 8));
                let is_apart = length & KEY_IS_APART != 0;
                let length = if is_apart { LINK_BYTES } else { length as usize };
                let Some((key, behind)) = behind.split_at_checked(length) else { break };
                rest = behind;
                if !is_apart {
                    keys.push(Key { bytes: key.to_vec(), tag });
                    continue;
                }
                let link = Link::from_word(word(key, 0)).ok_or(Error::BadAnswer { memory })?;
                self.chain.clear();
                self.fetch(memory, link).await?;
                let Some(record) = self.chain.last(link) else {
                    // The record was replaced meanwhile: the key may have a new one.
                    self.retry(shard, &mut met, link.word())?;
                    continue 'anew;
                };
                keys.push(Key { bytes: record.key.to_vec(), tag: record.tag });
            }
            return Ok(Scanned { cursor: next, keys });
        }
    }

    /// Deletes every key that exists when its bucket is visited.
    ///
    /// # Errors
    /// [`Error`]; [`Error::Uncertain`] if some keys are deleted, or may be.
    pub async fn clear(&mut self) -> Result<(), Error> {
        self.settle().await;
        let mut cursor = 0;
        loop {
            let step = self.step(What::Clear, cursor, CLEARED_EACH).await;
            let is_first = cursor == 0;
            let behind = |error: Error| if is_first { error } else { error.after_a_part() };
            (cursor, _) = step.map_err(behind)?;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// Memory use and number of keys of the store. A client that died between a change and its
    /// count leaves the number of keys off by one.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn statistics(&mut self) -> Result<Statistics, Error> {
        self.settle().await;
        let mut all = Statistics::default();
        for shard in 0..self.shards.len() {
            let from = self.header(shard).add(COUNT_AT);
            all.add(&self.thread.read(from, STATISTICS_BYTES).await?);
        }
        Ok(all)
    }

    async fn step(&mut self, what: What, cursor: u64, tag: u64) -> Result<(u64, Vec<u8>), Error> {
        // The shards are visited in turn: the cursor's lowest digit is the shard.
        let shards = self.shards.len() as u64;
        let (operand, shard) = (cursor / shards, cursor % shards);
        let header = self.header(shard as usize);
        let request = Request { operand, tag, ..Request::new(what, header) };
        let answered = self.call(&request).await;
        let answered = match what {
            What::Clear => answered.map_err(Error::of_decision)?,
            _ => answered?,
        };
        let answer = node::answer(&answered, header)?;
        let next = match answer.operand {
            0 if shard + 1 == shards => 0,
            0 => shard + 1,
            operand => operand * shards + shard,
        };
        Ok((next, answer.bytes.to_vec()))
    }
}
