//! A change under way, and what is to be done when it has ended, whoever sees it end.

use ethermem::{Error, Pending};
use smallvec::SmallVec;

use super::Client;
use crate::call::{Answer, Became, links};
use crate::error::may_have_acted;
use crate::layout::COUNT_AT;
use crate::link::Link;

/// What a client has in its hands while it changes something. It is filled before each step, so
/// that a step that is not waited for leaves nothing behind that nobody knows.
pub(crate) struct Job {
    shard: usize,
    /// Blocks for new records: free unless the change is made.
    pub(super) fresh: SmallVec<[Link; 2]>,
    /// Records that it replaces: free if it is made.
    pub(super) stale: SmallVec<[Link; 2]>,
    pub(super) writes: SmallVec<[Pending<()>; 1]>,
    /// A write had no answer: it may come to the memory node yet, so its block is never free.
    has_lost_write: bool,
    pub(super) end: End,
    /// Keys more, or fewer, if it is made.
    pub(super) added: i64,
}

/// The step that decides.
pub(super) enum End {
    /// It has not been taken.
    Open,
    /// A bucket is swapped, if it is still this.
    Swap(Pending<u64>, u64),
    /// The memory node links a record, and counts.
    Link(Pending<Vec<u8>>),
    /// Blocks have been asked for.
    Take(Pending<Vec<u8>>),
}

impl Job {
    pub(super) fn new(shard: usize) -> Job {
        Job {
            shard,
            fresh: SmallVec::new(),
            stale: SmallVec::new(),
            writes: SmallVec::new(),
            has_lost_write: false,
            end: End::Open,
            added: 0,
        }
    }

    /// Whether the change was made, if that is known by now.
    fn poll(&mut self) -> Option<Result<bool, Error>> {
        while let Some(write) = self.writes.last_mut() {
            let result = write.poll_result()?;
            self.writes.pop();
            self.wrote(&result);
        }
        Some(match &mut self.end {
            End::Open => Ok(false),
            End::Swap(pending, expected) => {
                let expected = *expected;
                pending.poll_result()?.map(|before| before == expected)
            }
            End::Link(pending) => pending.poll_result()?.map(|answer| was_linked(&answer)),
            End::Take(pending) => {
                let answer = pending.poll_result()?;
                answer.map(|answer| self.taken(&answer))
            }
        })
    }

    /// A write has ended.
    pub(super) fn wrote(&mut self, result: &Result<(), Error>) {
        self.has_lost_write |= result.as_ref().is_err_and(may_have_acted);
    }

    /// Blocks that came are as free as they were.
    fn taken(&mut self, answer: &[u8]) -> bool {
        if let Some(answer) = Answer::decode(answer) {
            self.fresh.extend(links(answer.bytes));
        }
        false
    }
}

/// Whether an answer says that a record was linked.
fn was_linked(answer: &[u8]) -> bool {
    Answer::decode(answer).is_some_and(|answer| answer.became == Became::Done)
}

impl Client {
    /// Waits for what is under way, and says whether it was done. An error of the fabric: nobody
    /// knows, so its blocks stay as they are, in use for ever.
    pub(super) async fn settle(&mut self) -> bool {
        self.try_settle().await.unwrap_or(false)
    }

    pub(super) async fn try_settle(&mut self) -> Result<bool, Error> {
        let Some(job) = &mut self.job else { return Ok(false) };
        while let Some(write) = job.writes.last_mut() {
            // A write that failed is no part of a record.
            let result = write.await;
            job.writes.pop();
            job.wrote(&result);
        }
        // Nothing is awaited between a result and what follows from it.
        let made = match &mut job.end {
            End::Open => Ok(false),
            End::Swap(pending, expected) => {
                let expected = *expected;
                pending.await.map(|before| before == expected)
            }
            End::Link(pending) => pending.await.map(|answer| was_linked(&answer)),
            End::Take(pending) => {
                let answer = pending.await;
                answer.map(|answer| job.taken(&answer))
            }
        };
        let job = self.job.take().expect("it was there");
        self.finish(job, made)
    }

    fn finish(&mut self, job: Job, made: Result<bool, Error>) -> Result<bool, Error> {
        let made = made?;
        let counted_here = matches!(job.end, End::Swap(..));
        let free = match made {
            true => job.stale,
            false if job.has_lost_write => SmallVec::new(),
            false => job.fresh,
        };
        free.into_iter().for_each(|link| self.stash(job.shard, link));
        if made && counted_here && job.added != 0 {
            let count = self.header(job.shard).add(COUNT_AT);
            let counting = self.thread.fetch_add(count, job.added as u64);
            // One is looked at in its time, however many follow it.
            match &mut self.shards[job.shard].counting {
                none @ None if job.added > 0 => *none = Some(counting),
                _ => counting.detach(),
            }
        }
        Ok(made)
    }

    /// Takes what clients that are gone have left: their blocks, and those of their changes once
    /// it is known how they ended.
    pub(super) fn inherit(&mut self) {
        let Some(left) = self.shared.take_left() else { return };
        left.blocks.into_iter().for_each(|(shard, link)| self.stash(shard, link));
        for mut job in left.jobs {
            match job.poll() {
                // Blocks of a change that nobody knows the end of are not free.
                Some(made) => drop(self.finish(job, made)),
                None => self.shared.leave(Vec::new(), Some(job)),
            }
        }
    }
}
