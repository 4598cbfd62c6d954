//! Commands on values.

use ethermem_kv::{VALUE_BYTES_MAX, When};

use super::Context;
use crate::keyspace::{Change, Fault, NOT_INTEGER};
use crate::number::integer;
use crate::request::Words;

const OVERFLOW: Fault = Fault::Text("ERR increment or decrement would overflow");
const DECREMENT: Fault = Fault::Text("ERR decrement would overflow");
const TOO_LONG: Fault = Fault::Text("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
pub(super) const REPLY_TOO_LONG: Fault = Fault::Text("ERR the reply would exceed 256 MiB");

/// Longest reply in bytes.
pub const REPLY_BYTES_MAX: usize = 256 << 20;

impl Context<'_> {
    pub(super) async fn get(&mut self, words: Words<'_>) -> Result<(), Fault> {
        if !self.reply_value(words.word(1)).await? {
            self.replies.null();
        }
        Ok(())
    }

    /// Replies with the value of a key. Returns false, without a reply, if the key is absent.
    async fn reply_value(&mut self, key: &[u8]) -> Result<bool, Fault> {
        let Context { replies, client, now_ms, .. } = self;
        let mut keyspace = crate::keyspace::Keyspace { client, now_ms: *now_ms };
        let shown = keyspace.show(key, |value, _| replies.bulk(value)).await?;
        Ok(shown.is_some())
    }

    pub(super) async fn mget(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let mut values: Vec<Option<Vec<u8>>> = Vec::with_capacity(words.count() - 1);
        let mut bytes = 0;
        while values.len() < words.count() - 1 {
            let (at, before) = (1 + values.len(), values.len());
            if self.state.goes_together {
                self.read_first(words.from(at), &mut values).await?;
            }
            if values.len() == before {
                let key = words.word(at);
                values.push(self.keyspace().show(key, |value, _| value.to_vec()).await?);
            }
            bytes += values[before..].iter().flatten().map(Vec::len).sum::<usize>();
            if bytes > REPLY_BYTES_MAX {
                return Err(REPLY_TOO_LONG);
            }
        }
        self.replies.array(values.len());
        for value in values {
            self.reply_optional(value.as_deref());
        }
        Ok(())
    }

    pub(super) fn reply_optional(&mut self, value: Option<&[u8]>) {
        match value {
            Some(value) => self.replies.bulk(value),
            None => self.replies.null(),
        }
    }

    pub(super) async fn mset(&mut self, words: Words<'_>) -> Result<(), Fault> {
        if words.count().is_multiple_of(2) {
            return Err(Fault::Text("ERR wrong number of arguments for 'mset' command"));
        }
        for (done, at) in (1..words.count()).step_by(2).enumerate() {
            let (key, value) = (words.word(at), words.word(at + 1));
            let written = self.client.write(key, value, 0, When::Always).await;
            written.map_err(|error| Fault::from(error).after(done))?;
        }
        self.replies.ok();
        Ok(())
    }

    pub(super) async fn increment(
        &mut self,
        words: Words<'_>,
        sign: i64,
        by_word: bool,
    ) -> Result<(), Fault> {
        let by = if by_word { integer(words.word(2)).ok_or(NOT_INTEGER)? } else { 1 };
        let by = by.checked_mul(sign).ok_or(DECREMENT)?;
        let add = |held: Option<crate::keyspace::Held>| {
            let (old, ends_ms) = match &held {
                Some(held) => (integer(&held.bytes).ok_or(NOT_INTEGER)?, held.ends_ms),
                None => (0, 0),
            };
            let new = old.checked_add(by).ok_or(OVERFLOW)?;
            Ok((Change::Set(new.to_string().into_bytes(), ends_ms), new))
        };
        let new = self.keyspace().change(words.word(1), add).await?;
        self.replies.integer(new);
        Ok(())
    }

    pub(super) async fn append(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let more = words.word(2);
        let append = |held: Option<crate::keyspace::Held>| {
            let (mut bytes, ends_ms) =
                held.map_or((Vec::new(), 0), |held| (held.bytes, held.ends_ms));
            if bytes.len() + more.len() > VALUE_BYTES_MAX {
                return Err(TOO_LONG);
            }
            bytes.extend_from_slice(more);
            let length = bytes.len();
            Ok((Change::Set(bytes, ends_ms), length))
        };
        let length = self.keyspace().change(words.word(1), append).await?;
        self.replies.integer(length as i64);
        Ok(())
    }

    pub(super) async fn strlen(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let length = self.keyspace().show(words.word(1), |value, _| value.len()).await?;
        self.replies.integer(length.unwrap_or(0) as i64);
        Ok(())
    }

    pub(super) async fn getdel(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let drop =
            |held: Option<crate::keyspace::Held>| Ok((Change::Delete, held.map(|held| held.bytes)));
        let value = self.keyspace().change(words.word(1), drop).await?;
        self.reply_optional(value.as_deref());
        Ok(())
    }

    pub(super) async fn getset(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let new = words.word(2);
        let swap = |held: Option<crate::keyspace::Held>| {
            Ok((Change::Set(new.to_vec(), 0), held.map(|held| held.bytes)))
        };
        let value = self.keyspace().change(words.word(1), swap).await?;
        self.reply_optional(value.as_deref());
        Ok(())
    }
}
