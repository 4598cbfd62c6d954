//! `SET` and its shorter forms.

use std::ops::ControlFlow;

use ethermem_kv::When;

use super::{Command, Context};
use crate::info::{Failure, Touch};
use crate::keyspace::{Change, Fault, Held, NOT_INTEGER, SYNTAX};
use crate::number::integer;
use crate::request::Words;
use crate::together::Role;

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
        let refused = Fault::Text("ERR invalid expire time in 'set' command");
        let mut options = Options { ends: Ends::Never, absent: false, present: false, gets: false };
        let mut expiry = None;
        let mut rest = words.from(3);
        while let Some(word) = rest.next() {
            let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
            if is("NX") && !options.present {
                options.absent = true;
            } else if is("XX") && !options.absent {
                options.present = true;
            } else if is("GET") {
                options.gets = true;
            } else if is("KEEPTTL") && expiry.is_none() {
                options.ends = Ends::Keep;
            } else if options.ends == Ends::Never {
                expiry = Some(Expiry::parse(expiry, word, &mut rest)?);
            } else {
                return Err(SYNTAX);
            }
        }
        if let Some(expiry) = expiry {
            options.ends = expiry.ends(now_ms, refused)?;
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

/// The expiry that a request states, before its count is read.
#[derive(Clone, Copy, Debug)]
struct Expiry<'w> {
    unit: &'static Unit,
    count: &'w [u8],
}

/// A word for an expiry.
#[derive(Debug)]
struct Unit {
    name: &'static str,
    ms: i64,
    /// True if it counts from now on, and not from 1970.
    is_from_now: bool,
}

const fn unit(name: &'static str, ms: i64, is_from_now: bool) -> Unit {
    Unit { name, ms, is_from_now }
}

static UNITS: [Unit; 4] = [
    unit("EX", 1000, true),
    unit("PX", 1, true),
    unit("EXAT", 1000, false),
    unit("PXAT", 1, false),
];

impl<'w> Expiry<'w> {
    /// The expiry that `name` and the next word state. As in Redis, a request may repeat a word,
    /// and the last count is the one that is looked at, but it may not have two words.
    fn parse(
        before: Option<Expiry<'w>>,
        name: &[u8],
        rest: &mut impl Iterator<Item = &'w [u8]>,
    ) -> Result<Expiry<'w>, Fault> {
        let unit = UNITS.iter().find(|unit| name.eq_ignore_ascii_case(unit.name.as_bytes()));
        let unit = unit.filter(|unit| before.is_none_or(|before| before.unit.name == unit.name));
        let (unit, count) = unit.zip(rest.next()).ok_or(SYNTAX)?;
        Ok(Expiry { unit, count })
    }

    fn ends(self, now_ms: u64, refused: Fault) -> Result<Ends, Fault> {
        let from_ms = if self.unit.is_from_now { now_ms } else { 0 };
        life(self.count, self.unit.ms, from_ms, refused)
    }
}

/// The option of `GETEX`, before its time is read.
#[derive(Clone, Copy, Debug)]
enum NewExpiry<'w> {
    Kept,
    Removed,
    Set(Expiry<'w>),
}

impl<'w> NewExpiry<'w> {
    fn parse(words: Words<'w>) -> Result<NewExpiry<'w>, Fault> {
        let mut new = NewExpiry::Kept;
        let mut rest = words.from(2);
        while let Some(word) = rest.next() {
            new = match new {
                NewExpiry::Kept | NewExpiry::Removed if word.eq_ignore_ascii_case(b"PERSIST") => {
                    NewExpiry::Removed
                }
                NewExpiry::Kept => NewExpiry::Set(Expiry::parse(None, word, &mut rest)?),
                NewExpiry::Removed => return Err(SYNTAX),
                NewExpiry::Set(set) => NewExpiry::Set(Expiry::parse(Some(set), word, &mut rest)?),
            };
        }
        Ok(new)
    }

    fn ends(self, now_ms: u64) -> Result<Ends, Fault> {
        let refused = Fault::Text("ERR invalid expire time in 'getex' command");
        match self {
            NewExpiry::Kept => Ok(Ends::Keep),
            NewExpiry::Removed => Ok(Ends::Never),
            NewExpiry::Set(expiry) => expiry.ends(now_ms, refused),
        }
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

    /// A plain `SET` on a memory node, with those of the same key that wait for the same turn.
    pub(super) async fn set_together(
        &mut self,
        command: &'static Command,
        key: &[u8],
        role: Role<Result<(), Failure>>,
    ) -> ControlFlow<()> {
        let outcome = match role {
            Role::Follows(group) => group.outcome().await,
            Role::Leads(group) => {
                let _turn = self.state.turn(Touch::Changes(key)).await;
                let value = self.state.together.close(key);
                let outcome = match self.state.absence() {
                    Some(absence) => Err(Failure::Absent(absence)),
                    None => {
                        let written = self.client.write(key, &value, 0, When::Always).await;
                        written.map(|_| ()).map_err(Failure::Store)
                    }
                };
                group.end(outcome.clone());
                outcome
            }
        };
        let answered = match outcome {
            Ok(()) => {
                self.replies.ok();
                ControlFlow::Continue(())
            }
            Err(Failure::Store(error)) => self.failed(&error.into()),
            Err(Failure::Absent(absence)) => {
                self.replies.error(&absence.text());
                return ControlFlow::Continue(());
            }
        };
        self.state.end(self.client, command, None);
        answered
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

    /// The value of a key, whose expiry is set, removed by `PERSIST`, or kept without an option.
    /// As in Redis, the time of an absent key is not looked at.
    pub(super) async fn getex(&mut self, words: Words<'_>) -> Result<(), Fault> {
        let new = NewExpiry::parse(words)?;
        let now_ms = self.now_ms;
        let decide = |held: Option<Held>| {
            let Some(held) = held else { return Ok((Change::Keep, None)) };
            let change = match new.ends(now_ms)? {
                Ends::Keep => Change::Keep,
                Ends::Never if held.ends_ms == 0 => Change::Keep,
                Ends::Never => Change::Set(held.bytes.clone(), 0),
                Ends::At(ms) if ms <= now_ms => Change::Delete,
                Ends::At(ms) => Change::Set(held.bytes.clone(), ms),
            };
            Ok((change, Some(held.bytes)))
        };
        let found = self.keyspace().change(words.word(1), decide).await?;
        self.reply_optional(found.as_deref());
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
