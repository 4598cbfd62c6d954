//! What concerns many keys: memory nodes go through their buckets, whoever walks the index.

use super::{Client, node};
use crate::call::{Request, What};
use crate::error::Error;
use crate::layout::{COUNT_AT, GIVEN_BYTES_AT, HEAP_BYTES_AT};
use crate::node::KEY_HEAD_BYTES;
use crate::record::word;
use crate::store::{Key, Scanned, Statistics};

/// Buckets that are emptied at once.
const CLEARED_EACH: u64 = 1024;

impl Client {
    /// The keys of some buckets from a cursor on: 0 at first, then what the step before gave, until
    /// it is 0 again. A key that is there all the while is met, perhaps more than once; one that
    /// comes or goes meanwhile may be met.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn scan(&mut self, cursor: u64, buckets: u64) -> Result<Scanned, Error> {
        let (cursor, bytes) = self.step(What::Scan, cursor, buckets).await?;
        let mut rest = &bytes[..];
        let mut keys = Vec::new();
        while let Some((head, behind)) = rest.split_at_checked(KEY_HEAD_BYTES) {
            let (tag, key_bytes) = (word(head, 0), word(head, 8) as usize);
            let Some((key, behind)) = behind.split_at_checked(key_bytes) else { break };
            keys.push(Key { bytes: key.to_vec(), tag });
            rest = behind;
        }
        Ok(Scanned { cursor, keys })
    }

    /// Drops every key that is there when its bucket is met.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn clear(&mut self) -> Result<(), Error> {
        let mut cursor = 0;
        loop {
            (cursor, _) = self.step(What::Clear, cursor, CLEARED_EACH).await?;
            if cursor == 0 {
                return Ok(());
            }
        }
    }

    /// What the store takes of its memory nodes. A client that died between a change and its count
    /// leaves the number of keys one off.
    ///
    /// # Errors
    /// [`Error`].
    pub async fn statistics(&mut self) -> Result<Statistics, Error> {
        self.settle().await;
        let mut all = Statistics::default();
        for shard in 0..self.shards.len() {
            let from = self.header(shard).add(COUNT_AT);
            let words = self.thread.read(from, GIVEN_BYTES_AT + 8 - COUNT_AT).await?;
            let at = |at: u64| word(&words, (at - COUNT_AT) as usize);
            all.keys = all.keys.saturating_add_signed(at(COUNT_AT) as i64);
            all.heap_bytes += at(HEAP_BYTES_AT);
            all.used_bytes += at(GIVEN_BYTES_AT);
        }
        Ok(all)
    }

    async fn step(&mut self, what: What, cursor: u64, tag: u64) -> Result<(u64, Vec<u8>), Error> {
        self.settle().await;
        // The shards one after the other: the cursor counts them in its lowest digit.
        let shards = self.shards.len() as u64;
        let (operand, shard) = (cursor / shards, cursor % shards);
        let header = self.header(shard as usize);
        let request = Request { operand, tag, ..Request::new(what, header) };
        let answered = self.call(&request).await?;
        let answer = node::answer(&answered, header)?;
        let next = match answer.operand {
            0 if shard + 1 == shards => 0,
            0 => shard + 1,
            operand => operand * shards + shard,
        };
        Ok((next, answer.bytes.to_vec()))
    }
}
