//! Commands on keys and their expiry.

use super::Context;
use super::set::moment;
use crate::keyspace::{Change, Fault, Held, NOT_INTEGER, SYNTAX};
use crate::number::integer;
use crate::request::Words;

/// Conditions of `EXPIRE`.
#[derive(Clone, Copy, Debug, Default)]
struct Conditions {
    none: bool,
    some: bool,
    later: bool,
    earlier: bool,
}

impl Conditions {
    fn parse(words: Words<'_>) -> Result<Conditions, String> {
        let mut conditions = Conditions::default();
        for word in words.from(3) {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => conditions.none = true,
                b"XX" => conditions.some = true,
                b"GT" => conditions.later = true,
                b"LT" => conditions.earlier = true,
                _ => {
                    let given = String::from_utf8_lossy(word);
                    return Err(format!("ERR Unsupported option {given}"));
                }
            }
        }
        let Conditions { none, some, later, earlier } = conditions;
        if none && (some || later || earlier) {
            let text = "ERR NX and XX, GT or LT options at the same time are not compatible";
            return Err(text.to_owned());
        }
        if later && earlier {
            let text = "ERR GT and LT options at the same time are not compatible";
            return Err(text.to_owned());
        }
        Ok(conditions)
    }

    /// True if a key that expires at `old` (0 for never) may expire at `new`.
    fn allow(self, old: u64, new: u64) -> bool {
        let never = old == 0;
        !(self.none && !never
            || self.some && never
            || self.later && (never || new <= old)
            || self.earlier && !never && new >= old)
    }
}

impl Context<'_> {
    pub(super) async fn delete(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let mut deleted = 0;
        for key in words.from(1) {
            let gone = self.keyspace().delete(key).await;
            deleted += usize::from(gone.map_err(|fault| fault.after(deleted))?);
        }
        self.replies.integer(deleted as i64);
        Ok(())
    }

    pub(super) async fn exists(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let mut found = 0;
        for key in words.from(1) {
            found += i64::from(self.keyspace().show(key, |_, _| ()).await?.is_some());
        }
        self.replies.integer(found);
        Ok(())
    }

    pub(super) async fn type_of(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let found = self.keyspace().show(words.word(1), |_, _| ()).await?.is_some();
        self.replies.simple(if found { "string" } else { "none" });
        Ok(())
    }

    pub(super) async fn expire(
        &mut self,
        words: Words<'_>,
        unit_ms: i64,
        absolute: bool,
    ) -> Result<(), Fault> {
        let count = integer(words.word(2)).ok_or(NOT_INTEGER)?;
        let conditions = match Conditions::parse(words) {
            Ok(conditions) => conditions,
            Err(text) => {
                self.replies.error(&text);
                return Ok(());
            }
        };
        let from_ms = if absolute { 0 } else { self.now_ms };
        let ends_ms = match moment(count, unit_ms, from_ms) {
            Some(ends_ms) => ends_ms,
            // The moment is in the far past.
            None if count < 0 && count.checked_mul(unit_ms).is_some() => 0,
            None => {
                let name = String::from_utf8_lossy(words.word(0)).to_ascii_lowercase();
                self.replies.error(&format!("ERR invalid expire time in '{name}' command"));
                return Ok(());
            }
        };
        let now_ms = self.now_ms;
        let decide = |held: Option<Held>| {
            let Some(held) = held.filter(|held| conditions.allow(held.ends_ms, ends_ms)) else {
                return Ok((Change::Keep, 0));
            };
            let over = ends_ms <= now_ms;
            Ok((if over { Change::Delete } else { Change::Set(held.bytes, ends_ms) }, 1))
        };
        let done = self.keyspace().change(words.word(1), decide).await?;
        self.replies.integer(done);
        Ok(())
    }

    /// Replies with -2 if the key does not exist, and -1 if it never expires.
    pub(super) async fn ttl(
        &mut self,
        words: Words<'_>,
        unit_ms: u64,
        absolute: bool,
    ) -> Result<(), Fault> {
        let now_ms = self.now_ms;
        let left = |_: &[u8], ends_ms: u64| match ends_ms {
            0 => -1,
            ends_ms if absolute => ((ends_ms + unit_ms / 2) / unit_ms) as i64,
            ends_ms => ((ends_ms - now_ms + unit_ms / 2) / unit_ms) as i64,
        };
        let left = self.keyspace().show(words.word(1), left).await?;
        self.replies.integer(left.unwrap_or(-2));
        Ok(())
    }

    pub(super) async fn persist(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let decide = |held: Option<Held>| {
            Ok(match held.filter(|held| held.ends_ms != 0) {
                Some(held) => (Change::Set(held.bytes, 0), 1),
                None => (Change::Keep, 0),
            })
        };
        let done = self.keyspace().change(words.word(1), decide).await?;
        self.replies.integer(done);
        Ok(())
    }

    pub(super) async fn dbsize(&mut self) -> Result<(), Fault> {
        let keys = self.client.statistics().await?.keys;
        self.replies.integer(i64::try_from(keys).unwrap_or(i64::MAX));
        Ok(())
    }

    pub(super) async fn flush(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let how = [&b"ASYNC"[..], b"SYNC"];
        let known = |word: &[u8]| how.iter().any(|how| word.eq_ignore_ascii_case(how));
        if words.count() > 2 || !words.from(1).all(known) {
            return Err(SYNTAX);
        }
        self.client.clear().await?;
        self.replies.ok();
        Ok(())
    }
}
