//! Several operations by one message to a memory node, in order.

use super::{Client, Entry, Hashed, Version};
use crate::call::{Answer, Became, MANY_BYTES_MAX, Request, What, When, append_part, parts};
use crate::error::{Error, may_have_acted};
use crate::record::{Apart, is_apart};

/// An operation that can go together with others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation<'k> {
    /// Reads the value of a key.
    Read(&'k [u8]),
    /// Stores a value for a key, whether or not the key exists, with the tag 0.
    Put(&'k [u8], &'k [u8]),
}

/// What became of an [`Operation`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome<'b> {
    /// The value that was read, if the key exists.
    Read(Option<Entry<'b>>),
    /// The value was stored.
    Put,
}

impl Client {
    /// Does as many of the first operations as go together, and shows the outcome of each, in
    /// order. They are done at their memory node one after the other with nothing between them,
    /// whichever side walks the index. Returns their number. It is 0 if the first one must be done
    /// by itself: its value or key is too long, no other one goes with it, or memory must be added
    /// for it.
    ///
    /// An error is shown for each operation that the message carried. Nothing was changed by one,
    /// unless its error is [`Error::Uncertain`].
    pub async fn together<'k>(
        &mut self,
        operations: impl IntoIterator<Item = Operation<'k>>,
        mut show: impl FnMut(usize, Result<Outcome<'_>, Error>),
    ) -> usize {
        self.settle().await;
        let mut message = Vec::new();
        let mut sent: Vec<(Hashed<'k>, bool)> = Vec::new();
        for operation in operations {
            let Some(hashed) = self.goes(operation, sent.first().map(|(first, _)| first.shard))
            else {
                break;
            };
            let request = self.request_of(hashed, operation);
            let before = message.len();
            append_part(&mut message, |to| request.append(to));
            if message.len() > MANY_BYTES_MAX {
                message.truncate(before);
                break;
            }
            sent.push((hashed, matches!(operation, Operation::Put(..))));
        }
        if sent.len() < 2 {
            return 0;
        }
        let shard = sent[0].0.shard;
        let header = self.header(shard);
        let request = Request { value: &message, ..Request::new(What::Many, header) };
        let answered = self.call(&request).await;
        let puts = sent.iter().any(|(_, puts)| *puts);
        let bad =
            || if puts { Error::uncertain_answer(header.memory()) } else { bad_answer(header) };
        let answered = match &answered {
            Ok(bytes) => Answer::decode(bytes).ok_or_else(bad),
            // The first operation was refused, and by itself it gets its own error.
            Err(error) if !may_have_acted(error) => return 0,
            Err(error) => Err(Error::of_decision(error.clone())),
        };
        let answer = match answered {
            Ok(answer) => answer,
            Err(error) => {
                for (at, (_, puts)) in sent.iter().enumerate() {
                    show(at, Err(if *puts { error.clone() } else { error.of_a_read() }));
                }
                return sent.len();
            }
        };
        self.show_answers(&sent, &answer, show).await
    }

    /// The key of an operation that can go with those of this shard.
    fn goes<'k>(&self, operation: Operation<'k>, shard: Option<usize>) -> Option<Hashed<'k>> {
        let (key, is_short) = match operation {
            Operation::Read(key) => (key, true),
            Operation::Put(key, value) => (key, !is_apart(key, value)),
        };
        let hashed = self.hashed(key).ok()?;
        (is_short && shard.is_none_or(|shard| shard == hashed.shard)).then_some(hashed)
    }

    fn request_of<'k>(&self, hashed: Hashed<'k>, operation: Operation<'k>) -> Request<'k> {
        let header = self.header(hashed.shard);
        match operation {
            Operation::Read(_) => hashed.request(What::Get, header),
            Operation::Put(_, value) => {
                Request { value, ..hashed.request(What::Put, header) }.when(When::Always)
            }
        }
    }

    /// Shows the outcomes of the first operations, which the memory node has answered.
    async fn show_answers(
        &mut self,
        sent: &[(Hashed<'_>, bool)],
        answers: &Answer<'_>,
        mut show: impl FnMut(usize, Result<Outcome<'_>, Error>),
    ) -> usize {
        let shard = sent[0].0.shard;
        let header = self.header(shard);
        let (mut count, mut wants_table) = (0, false);
        for ((hashed, puts), part) in sent.iter().zip(parts(answers.bytes)) {
            let answer = Answer::decode(part);
            let Some(answer) = answer.filter(|answer| answer.became != Became::NeedsRegion) else {
                break;
            };
            wants_table |= answer.wants_table;
            let entry = |value| {
                let link = answer.link()?;
                Some(Entry { value, tag: answer.tag, version: Version(link) })
            };
            match answer.became {
                _ if *puts => show(count, Ok(Outcome::Put)),
                Became::Elsewhere => {
                    let fetched = self.fetch_of(*hashed, &answer).await;
                    match fetched {
                        Ok(Some(bytes)) => show(count, Ok(Outcome::Read(entry(&bytes)))),
                        Ok(None) => break,
                        Err(error) => show(count, Err(error)),
                    }
                }
                _ => show(count, Ok(Outcome::Read(entry(answer.bytes)))),
            }
            count += 1;
        }
        if wants_table {
            self.grow_if_wanted(shard, true).await;
        }
        debug_assert!(count as u64 <= answers.operand, "as many as {header:?} has answered");
        count
    }

    /// A value that is stored apart; `None` if it has just been replaced.
    async fn fetch_of(
        &mut self,
        hashed: Hashed<'_>,
        answer: &Answer<'_>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let header = self.header(hashed.shard);
        let apart = Apart::from_bytes(answer.bytes).ok_or_else(|| bad_answer(header))?;
        let bytes = self.fetch_apart(header.memory(), apart).await?;
        Ok(apart.parse(&bytes).map(<[u8]>::to_vec))
    }
}

fn bad_answer(header: ethermem::Address) -> Error {
    Error::BadAnswer { memory: header.memory() }
}
