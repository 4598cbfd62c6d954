//! Plain `GET`s and `SET`s that follow each other: one message carries many of them.
//!
//! The memory node does them in order, with nothing between them, so a client sees what it would
//! see if each had waited for the reply before it.

use std::ops::ControlFlow;

use ethermem_kv::{Error, KEY_BYTES_MAX, Operation, Outcome};

use super::{Command, Context, Id, fail};
use crate::info::Touch;
use crate::keyspace::{Fault, is_over};
use crate::request::Words;

/// Most requests that are taken ahead of their replies.
pub(crate) const RUN_MAX: usize = 64;

/// The operation of a request that can go with others.
fn plain(words: Words<'_>) -> Option<Operation<'_>> {
    let is = |name: &[u8]| words.word(0).eq_ignore_ascii_case(name);
    let operation = match words.count() {
        2 if is(b"GET") => Operation::Read(words.word(1)),
        3 if is(b"SET") => Operation::Put(words.word(1), words.word(2)),
        _ => return None,
    };
    (words.word(1).len() <= KEY_BYTES_MAX).then_some(operation)
}

/// True for a request that can go with others.
pub(crate) fn is_plain(words: Words<'_>) -> bool {
    plain(words).is_some()
}

impl Context<'_> {
    /// Executes the first of these plain requests, and those that go with it, with a reply each.
    /// Returns their number. Breaks as [`Context::execute`] does.
    pub(crate) async fn execute_first(&mut self, run: &[Words<'_>]) -> (usize, ControlFlow<()>) {
        if run.len() > 1 {
            let (done, flow) = self.execute_together(run).await;
            if done > 0 {
                return (done, flow);
            }
        }
        (1, self.execute(run[0]).await)
    }

    /// Executes as many of the first requests as go together, maybe none.
    async fn execute_together(&mut self, run: &[Words<'_>]) -> (usize, ControlFlow<()>) {
        let Context { state, client, replies, now_ms, .. } = self;
        let _turn = state.turn(Touch::Sees).await;
        if state.absence().is_some() {
            return (0, ControlFlow::Continue(()));
        }
        let mut flow = ControlFlow::Continue(());
        let show = |_, outcome: Result<Outcome<'_>, Error>| match outcome {
            Ok(Outcome::Read(Some(entry))) if !is_over(entry.tag, *now_ms) => {
                replies.bulk(entry.value);
            }
            Ok(Outcome::Read(_)) => replies.null(),
            Ok(Outcome::Put) => replies.ok(),
            Err(error) => {
                if fail(state, replies, &error.into()).is_break() {
                    flow = ControlFlow::Break(());
                }
            }
        };
        let done = client.together(run.iter().filter_map(|words| plain(*words)), show).await;
        let gets = run[..done].iter().filter(|words| words.count() == 2).count();
        for (id, times) in [(Id::Get, gets), (Id::Set, done - gets)] {
            state.count(Command::of(id), times as u64);
        }
        (done, flow)
    }

    /// Reads the values of as many of the first keys as go together, maybe none.
    pub(super) async fn read_first<'w>(
        &mut self,
        keys: impl Iterator<Item = &'w [u8]>,
        values: &mut Vec<Option<Vec<u8>>>,
    ) -> Result<(), Fault> {
        let now_ms = self.now_ms;
        let mut failed = None;
        let show = |_, outcome: Result<Outcome<'_>, Error>| match outcome {
            Ok(Outcome::Read(entry)) => {
                let live = entry.filter(|entry| !is_over(entry.tag, now_ms));
                values.push(live.map(|entry| entry.value.to_vec()));
            }
            Ok(Outcome::Put) => unreachable!("all of them read"),
            Err(error) => failed = Some(error),
        };
        self.client.together(keys.take(RUN_MAX).map(Operation::Read), show).await;
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}
