//! `SET` and its shorter forms.

use ethermem_kv::When;

use super::Context;
use crate::keyspace::{Change, Fault, Held, NOT_INTEGER, SYNTAX};
use crate::number::integer;
use crate::request::Words;

/// Expiry of a new value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ends {
    Never,
    /// At this time in milliseconds since 1970.
    At(u64),
    /// As the previous value.
    Keep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Options {
    ends: Ends,
    /// Store only if the key is absent, or only if it is present.
    absent: bool,
    present: bool,
    /// Reply with the previous value.
    gets: bool,
}

/// The moment of a duration from now on, or of a time since 1970, in milliseconds.
pub(super) fn moment(count: i64, unit_ms: i64, from_ms: u64) -> Option<u64> {
    let ms = count.checked_mul(unit_ms)?.checked_add(i64::try_from(from_ms).ok()?)?;
    u64::try_from(ms).ok()
}

fn life(word: &[u8], unit_ms: i64, from_ms: u64, refused: Fault) -> Result<Ends, Fault> {
    let count = integer(word).ok_or(NOT_INTEGER)?;
    if count <= 0 {
        return Err(refused);
    }
    moment(count, unit_ms, from_ms).map(Ends::At).ok_or(refused)
}

impl Options {
    fn parse(words: Words<'_>, now_ms: u64) -> Result<Options, Fault> {
        let refused = || Fault::Text("ERR invalid expire time in 'set' command");
        let mut options = Options { ends: Ends::Never, absent: false, present: false, gets: false };
        let mut rest = words.from(3);
        while let Some(word) = rest.next() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            let units =
                [("EX", 1000, now_ms), ("PX", 1, now_ms), ("EXAT", 1000, 0), ("PXAT", 1, 0)];
            if is("NX") && !options.present {
                options.absent = true;
            } else if is("XX") && !options.absent {
                options.present = true;
            } else if is("GET") {
                options.gets = true;
            } else if is("KEEPTTL") && options.ends == Ends::Never {
                options.ends = Ends::Keep;
            } else if let Some((_, unit_ms, from_ms)) = units.into_iter().find(|unit| is(unit.0)) {
                if options.ends != Ends::Never {
                    return Err(SYNTAX);
                }
                let count = rest.next().ok_or(SYNTAX)?;
                options.ends = life(count, unit_ms, from_ms, refused())?;
            } else {
                return Err(SYNTAX);
            }
        }
        Ok(options)
    }

    fn decide(self, held: Option<Held>, value: &[u8]) -> (Change, (bool, Option<Vec<u8>>)) {
        let refused = (self.absent && held.is_some()) || (self.present && held.is_none());
        let ends_ms = match self.ends {
            Ends::Never => 0,
            Ends::At(ms) => ms,
            Ends::Keep => held.as_ref().map_or(0, |held| held.ends_ms),
        };
        let before = held.map(|held| held.bytes);
        if refused {
            return (Change::Keep, (false, before));
        }
        (Change::Set(value.to_vec(), ends_ms), (true, before))
    }
}

impl Context<'_> {
    pub(super) async fn set(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let (key, value) = (words.word(1), words.word(2));
        if words.count() == 3 {
            self.client.write(key, value, 0, When::Always).await?;
            self.replies.ok();
            return Ok(());
        }
        let options = Options::parse(words, self.now_ms)?;
        let decide = |held| Ok(options.decide(held, value));
        let (done, before) = self.keyspace().change(key, decide).await?;
        if options.gets {
            self.reply_optional(before.as_deref());
        } else if done {
            self.replies.ok();
        } else {
            self.replies.null();
        }
        Ok(())
    }

    pub(super) async fn setex(&mut self, words: Words<'_>, unit_ms: i64) -> Result<(), Fault> {
        let refused = Fault::Text(match unit_ms {
            1 => "ERR invalid expire time in 'psetex' command",
            _ => "ERR invalid expire time in 'setex' command",
        });
        let Ends::At(ends_ms) = life(words.word(2), unit_ms, self.now_ms, refused)? else {
            unreachable!("a life ends")
        };
        self.client.write(words.word(1), words.word(3), ends_ms, When::Always).await?;
        self.replies.ok();
        Ok(())
    }

    pub(super) async fn setnx(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let options = Options { ends: Ends::Never, absent: true, present: false, gets: false };
        let decide = |held| Ok(options.decide(held, words.word(2)));
        let (done, _) = self.keyspace().change(words.word(1), decide).await?;
        self.replies.integer(done.into());
        Ok(())
    }
}
