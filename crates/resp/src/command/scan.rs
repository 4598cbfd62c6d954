//! Commands that scan all keys.

use super::Context;
use super::strings::{REPLY_BYTES_MAX, REPLY_TOO_LONG};
use crate::glob;
use crate::keyspace::{Fault, NOT_INTEGER, SYNTAX};
use crate::number::integer;
use crate::request::Words;

/// Default number of keys per step.
const COUNT: i64 = 10;
/// Number of buckets per key; a grown table has at least twice as many buckets as keys.
const BUCKETS_PER_KEY: u64 = 2;
/// Largest multiple of the requested number of buckets that one step visits.
const STEPS_MAX: usize = 10;

impl Context<'_> {
    pub(super) async fn scan(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let cursor = std::str::from_utf8(words.word(1)).ok().and_then(|text| text.parse().ok());
        let cursor: u64 = cursor.ok_or(Fault::Text("ERR invalid cursor"))?;
        let (mut pattern, mut count, mut strings) = (None, COUNT, true);
        let mut rest = words.from(2);
        while let Some(word) = rest.next() {
            let given = rest.next().ok_or(SYNTAX)?;
            match word.to_ascii_uppercase().as_slice() {
                b"MATCH" => pattern = Some(given),
                b"COUNT" => count = integer(given).ok_or(NOT_INTEGER)?,
                b"TYPE" => strings = given.eq_ignore_ascii_case(b"string"),
                _ => return Err(SYNTAX),
            }
        }
        let count = u64::try_from(count).ok().filter(|count| *count > 0).ok_or(SYNTAX)?;
        let buckets = count.saturating_mul(BUCKETS_PER_KEY);
        let (mut next, mut keys) = (cursor, Vec::new());
        // If few buckets have keys, one step visits more of them.
        for _ in 0..STEPS_MAX {
            let (behind, more) = self.step(next, buckets, pattern).await?;
            next = behind;
            keys.extend(more);
            if next == 0 || keys.len() as u64 >= count {
                break;
            }
        }
        if !strings {
            keys.clear();
        }
        self.replies.array(2);
        self.replies.bulk(next.to_string().as_bytes());
        self.reply_keys(&keys);
        Ok(())
    }

    pub(super) async fn keys(&mut self, words: Words<'_>) -> Result<(), Fault> {
        const BUCKETS: u64 = 1024;
        let (mut cursor, mut all) = (0, std::collections::BTreeSet::new());
        let mut bytes = 0;
        loop {
            let (next, keys) = self.step(cursor, BUCKETS, Some(words.word(1))).await?;
            // While the table grows, a step may meet a key again.
            for key in keys {
                bytes += key.len();
                all.insert(key);
            }
            if bytes > REPLY_BYTES_MAX {
                return Err(REPLY_TOO_LONG);
            }
            if next == 0 {
                break;
            }
            cursor = next;
        }
        self.reply_keys(&all.into_iter().collect::<Vec<_>>());
        Ok(())
    }

    async fn step(
        &mut self,
        cursor: u64,
        buckets: u64,
        pattern: Option<&[u8]>,
    ) -> Result<(u64, Vec<Vec<u8>>), Fault> {
        let scanned = self.client.scan(cursor, buckets).await?;
        let keyspace = self.keyspace();
        let live = scanned.keys.into_iter().filter(|key| !keyspace.is_over(key.tag));
        let fits = |key: &Vec<u8>| pattern.is_none_or(|pattern| glob::matches(pattern, key));
        Ok((scanned.cursor, live.map(|key| key.bytes).filter(fits).collect()))
    }

    fn reply_keys(&mut self, keys: &[Vec<u8>]) {
        self.replies.array(keys.len());
        keys.iter().for_each(|key| self.replies.bulk(key));
    }
}
