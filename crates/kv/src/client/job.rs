//! A change in progress, and its completion, which any client may do.

use ethermem::{Error, Pending};
use smallvec::SmallVec;

use super::Client;
use crate::call::{Answer, Became, links};
use crate::error::may_have_acted;
use crate::layout::COUNT_AT;
use crate::link::Link;

/// The resources of a client's change. It is updated before each step, so that an abandoned step
/// leaves nothing unaccounted for.
pub(crate) struct Job {
    shard: usize,
    /// Blocks for new records; they are free again unless the change happened.
    pub(super) fresh: SmallVec<[Link; 2]>,
    /// Records that it replaces; they are free if the change happened.
    pub(super) stale: SmallVec<[Link; 2]>,
    pub(super) writes: SmallVec<[Pending<()>; 1]>,
    /// A write had no response and may still reach the memory node, so its block is never free.
    has_lost_write: bool,
    pub(super) end: End,
    /// Change in the number of keys, if the change happened.
    pub(super) added: i64,
}

/// The step that decides.
pub(super) enum End {
    /// The step has not been taken.
    Open,
    /// A bucket is swapped if it still holds this word.
    Swap(Pending<u64>, u64),
    /// The memory node links a record, and updates the count.
    Link(Pending<Vec<u8>>),
    /// Blocks have been requested.
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

    /// True if the change happened; `None` while that is unknown.
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

    /// Records the end of a write.
    pub(super) fn wrote(&mut self, result: &Result<(), Error>) {
        self.has_lost_write |= result.as_ref().is_err_and(may_have_acted);
    }

    /// Blocks that were received are free, as they were before.
    fn taken(&mut self, answer: &[u8]) -> bool {
        if let Some(answer) = Answer::decode(answer) {
            self.fresh.extend(links(answer.bytes));
        }
        false
    }
}

/// True if an answer says that a record was linked.
fn was_linked(answer: &[u8]) -> bool {
    Answer::decode(answer).is_some_and(|answer| answer.became == Became::Done)
}

impl Client {
    /// Waits for what is in flight, and returns whether the change happened. After an error of the
    /// fabric that is unknown, so its blocks count as used for ever.
    pub(super) async fn settle(&mut self) -> bool {
        self.try_settle().await.unwrap_or(false)
    }

    pub(super) async fn try_settle(&mut self) -> Result<bool, Error> {
        let Some(job) = &mut self.job else { return Ok(false) };
        while let Some(write) = job.writes.last_mut() {
            // A block whose write failed is part of no record.
            let result = write.await;
            job.writes.pop();
            job.wrote(&result);
        }
        // No await stands between a result and its consequences, so that both happen or none.
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
            // One count is checked in time, however many follow it.
            match &mut self.shards[job.shard].counting {
                none @ None if job.added > 0 => *none = Some(counting),
                _ => counting.detach(),
            }
        }
        Ok(made)
    }

    /// Takes over what dropped clients have left: their blocks, and the blocks of their changes
    /// once the outcome is known.
    pub(super) fn inherit(&mut self) {
        let Some(left) = self.shared.take_left() else { return };
        left.blocks.into_iter().for_each(|(shard, link)| self.stash(shard, link));
        for mut job in left.jobs {
            match job.poll() {
                // Blocks of a change with an unknown outcome are not free.
                Some(made) => drop(self.finish(job, made)),
                None => self.shared.leave(Vec::new(), Some(job)),
            }
        }
    }
}
