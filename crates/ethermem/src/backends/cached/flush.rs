//! Flushes: `release`, `fence` and closing write back all that was written, and wait for it.

use ethermem_cxl::cache::Victim;
use ethermem_pool::{Asker, Error, Op, OpId, Progress, Reply};
use ethermem_wire::cxl::LineAddress;
use smallvec::SmallVec;

use super::{Awaits, Cached, Step};

/// Most adjacent lines that are written as one.
const RUN_MAX: usize = 64;

/// A flush.
pub(super) struct Flush {
    pub(super) id: OpId,
    pub(super) asker: Asker,
    /// A fence at the memory node follows.
    is_fence: bool,
    /// Number of dirty places that it must still look at; `None` before it began.
    left: Option<usize>,
    /// It ends with the bytes up to this number; `None` while some are in the cache.
    until: Option<u64>,
}

impl Flush {
    pub(super) fn new(id: OpId, asker: Asker, is_fence: bool) -> Flush {
        Flush { id, asker, is_fence, left: None, until: None }
    }
}

impl Cached {
    pub(super) fn step_flush(&mut self, flush: &mut Flush) -> Step {
        let left = match flush.left {
            Some(left) => left,
            None => {
                self.retry();
                self.cache.dirty_max()
            }
        };
        let left = self.pull(left);
        flush.left = Some(left);
        // Lines that the node does not take fill the list, and each of them was tried.
        let is_stuck = left > 0 && self.leaving.is_idle();
        if left > 0 && !is_stuck {
            return Step::Park(Awaits::Others);
        }
        let newest = self.leaving.newest();
        if self.leaving.is_open(*flush.until.get_or_insert(newest)) {
            return Step::Park(Awaits::Others);
        }
        let process = flush.asker.process;
        let failed = self.leaving.error_of(process);
        let stuck = || self.leaving.failed_process().filter(|_| is_stuck).map(|(_, error)| error);
        if let Some(error) = self.failures.remove(&process).or(failed).or_else(stuck) {
            return Step::Ended(Err(error));
        }
        if flush.is_fence {
            self.send(flush.id, flush.asker, Op::Fence);
            return Step::Gone;
        }
        Step::Ended(Ok(Reply::Done))
    }

    /// Sends at most so many dirty lines, the oldest first, as far as there is room. Returns how
    /// many are left to look at.
    pub(super) fn pull(&mut self, most: usize) -> usize {
        let mut left = most.min(self.cache.dirty_max());
        while left > 0 && !self.leaving.is_full() {
            let before = self.cache.dirty_max();
            let Some(victim) = self.cache.next_dirty() else { return 0 };
            left = left.saturating_sub(before - self.cache.dirty_max());
            self.leave_run(victim);
        }
        left
    }

    /// Sends a line, and the adjacent ones behind it that are wholly dirty, as one write.
    fn leave_run(&mut self, first: Victim) {
        let Some((region, _)) = self.regions.at_line(first.line.number()) else { return };
        let (process, from) = (region.process, region.first);
        let mut run: SmallVec<[u64; 1]> = SmallVec::new();
        let mut next = Some(first);
        while let Some(victim) = next.take() {
            let line = victim.line.number();
            if !self.leaving.add(&victim, process) {
                break;
            }
            run.push(line);
            if !victim.mask.is_full() || run.len() >= RUN_MAX || self.leaving.is_full() {
                break;
            }
            let follows = self.regions.at_line(line + 1).filter(|(region, _)| region.first == from);
            let follower = follows.and_then(|_| LineAddress::new(line + 1).ok());
            next = follower.and_then(|line| {
                let place = self.cache.place_of(line)?;
                let is_dirty = self.cache.masks(line).1.is_full();
                if is_dirty { self.cache.clean_at(place, false) } else { None }
            });
        }
        if !run.is_empty() {
            self.write_back(run);
        }
    }

    /// Writes back everything before the pool ends.
    ///
    /// # Errors
    /// The error of a write.
    pub(super) fn flush_all(&mut self) -> Result<(), Error> {
        self.retry();
        loop {
            let left = self.pull(usize::MAX);
            self.settle_due();
            if self.leaving.is_idle() {
                if left == 0 || self.leaving.has_failed() {
                    break;
                }
                continue;
            }
            let progress = self.inner.progress(&mut self.ended);
            let mut ended = ethermem_pool::Ended::default();
            self.settle_ended(&mut ended);
            match progress {
                Progress::Idle => break,
                Progress::Wait(rest) if !rest.is_zero() => std::thread::sleep(rest),
                Progress::Wait(_) | Progress::Ended => {}
            }
        }
        let failed = self.leaving.failed_process().map(|(_, error)| error);
        let lost = self.failures.drain().map(|(_, error)| error).next();
        lost.or(failed).map_or(Ok(()), Err)
    }
}
