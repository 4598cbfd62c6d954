//! Requests of the slow path: allocation, release, sharing, and the end of a process. Each is a
//! task of the memory, done a slice at a time.

use std::task::Poll;

use ethermem_units::Ns;
use ethermem_wire::clio::{ClioStatus, Permissions, ProcessId};

use super::execute::{Asker, refused};
use super::machine::{Busy, Node};
use super::recent::{Name, Outcome};
use super::runs::{ActiveRun, Job};
use crate::memory::{AllocateError, BeginError, Ended, Failed, ShareError, SpaceId, Steps, Task};

/// Work of a slice, in accesses to a bucket of the page table: some hundred microseconds if no
/// access hits a cache.
pub(super) const SLOW_STEPS: u64 = 1 << 10;
/// Maximum pages that an operation at the node may allocate at once, within its slice.
const OFFLOAD_PAGES_MAX: u64 = 1 << 13;

/// A request of the slow path that has begun.
pub(super) struct Slow {
    task: Task,
    what: What,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// An allocation; this many bytes are charged to the tenant since it began.
    Allocate(u64),
    Release,
    Share,
    End,
}

impl Slow {
    pub(super) fn give_up(&mut self) {
        self.task.cancel();
    }

    pub(super) fn ends(&self) -> bool {
        self.what == What::End
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// Begins a request. Returns its outcome if its first slice completed it, otherwise *running*.
    fn begin_slow(
        &mut self,
        name: Option<Name>,
        (caller, acts): (Asker, Asker),
        (task, what): (Task, What),
    ) -> Outcome {
        let job = Job::Memory(Slow { task, what });
        let mut run = ActiveRun { name, caller, acts, job };
        let budget = self.runs.budget().min(SLOW_STEPS);
        if budget > 0 {
            let (ended, work) = self.step(&mut run, budget);
            self.runs.worked(work);
            if let Some(Err(outcome)) = ended {
                return outcome;
            }
        }
        self.runs.wait(run);
        Busy::Running.refused()
    }

    /// Runs a slice of a request. Returns its outcome, if that was the last slice, and its work.
    pub(super) fn step_slow(
        &mut self,
        caller: Asker,
        slow: &mut Slow,
        steps: u64,
    ) -> (Option<Outcome>, u64) {
        self.counters.slow_slices += 1;
        let mut steps = Steps::new(steps);
        let stepped = self.memory.step(&mut slow.task, &mut steps);
        let Poll::Ready(ended) = stepped else { return (None, steps.taken()) };
        (Some(self.slow_ended(caller, slow.what, ended)), steps.taken())
    }

    fn slow_ended(
        &mut self,
        (space, process, tenant): Asker,
        what: What,
        ended: Result<Ended, Failed>,
    ) -> Outcome {
        let page_bytes = self.config.memory.page.bytes();
        match (what, ended) {
            (What::Allocate(_) | What::Share, Ok(ended)) => Outcome::Address(ended.address),
            (What::Release, Ok(ended)) => {
                self.tenants.give_memory(tenant, ended.pages_released * page_bytes);
                Outcome::Done
            }
            (What::End, Ok(ended)) => {
                self.tenants.give_memory(tenant, ended.pages_released * page_bytes);
                self.tenants.give_process(tenant);
                self.processes.remove(space);
                Outcome::Done
            }
            (what, Err(failed)) => {
                if let What::Allocate(bytes) = what {
                    self.tenants.give_memory(tenant, bytes);
                }
                match failed {
                    Failed::Refused(error) => self.allocate_refused(error),
                    // The requester, or the process to share with, is dead.
                    Failed::Cancelled => refused(ClioStatus::NoSuchProcess, process.0.into()),
                }
            }
        }
    }

    pub(super) fn allocate(
        &mut self,
        name: Option<Name>,
        caller: Asker,
        bytes: u64,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Outcome {
        if !self.runs.has_room(caller.2) {
            return self.busy(Busy::Runs);
        }
        match self.begin_allocation(caller, bytes, at, permissions) {
            Ok((task, whole)) => {
                self.begin_slow(name, (caller, caller), (task, What::Allocate(whole)))
            }
            Err(outcome) => outcome,
        }
    }

    /// An allocation that has begun, and the bytes that it takes of its tenant's quota.
    fn begin_allocation(
        &mut self,
        (space, _, tenant): Asker,
        bytes: u64,
        at: Option<u64>,
        permissions: Permissions,
    ) -> Result<(Task, u64), Outcome> {
        let left = self.tenants.memory_left(tenant);
        let page_bytes = self.config.memory.page.bytes();
        let Some(whole) = bytes.checked_next_multiple_of(page_bytes) else {
            return Err(refused(ClioStatus::Full, self.free_to_say()));
        };
        if whole > left {
            return Err(refused(ClioStatus::Quota, left));
        }
        let whose = (tenant.index(), space);
        let begun = Task::allocate(self.memory.map_mut(), whose, bytes, at, permissions);
        let task = begun.map_err(|error| self.allocate_refused(error))?;
        self.tenants.take_memory(tenant, whole);
        Ok((task, whole))
    }

    /// Allocates for an operation at the node, all at once: at most as much as a slice does.
    pub(super) fn allocate_now(
        &mut self,
        caller: Asker,
        bytes: u64,
        permissions: Permissions,
    ) -> Result<Outcome, String> {
        let most = OFFLOAD_PAGES_MAX * self.config.memory.page.bytes();
        if bytes > most && bytes <= self.tenants.memory_left(caller.2) {
            return Err(format!("{bytes} B: an operation must ask for at most {most} B at once"));
        }
        let (task, whole) = match self.begin_allocation(caller, bytes, None, permissions) {
            Ok(begun) => begun,
            Err(outcome) => return Ok(outcome),
        };
        let mut slow = Slow { task, what: What::Allocate(whole) };
        let (outcome, _) = self.step_slow(caller, &mut slow, u64::MAX);
        Ok(outcome.expect("an allocation waits for no other task"))
    }

    pub(super) fn release(&mut self, name: Option<Name>, caller: Asker, address: u64) -> Outcome {
        if !self.runs.has_room(caller.2) {
            return self.busy(Busy::Runs);
        }
        match Task::release(self.memory.map_mut(), caller.0, address) {
            Ok(task) => self.begin_slow(name, (caller, caller), (task, What::Release)),
            Err(BeginError::Held) => self.busy(Busy::Held),
            Err(BeginError::Refused(_)) => refused(ClioStatus::Unmapped, 0),
        }
    }

    pub(super) fn share(
        &mut self,
        now: Ns,
        (name, caller): (Option<Name>, Asker),
        address: u64,
        (with, at, permissions): (ProcessId, Option<u64>, Permissions),
    ) -> Outcome {
        // A tenant can share only with its own processes: it has no right to addresses of others.
        let Some(other) = self.processes.alive(now, with, caller.2) else {
            return refused(ClioStatus::NoSuchProcess, with.0.into());
        };
        if !self.runs.has_room(caller.2) {
            return self.busy(Busy::Runs);
        }
        let owned = (caller.0, address);
        match Task::share(self.memory.map_mut(), owned, other, at, permissions) {
            Ok(task) => {
                let acts = (other, with, caller.2);
                self.begin_slow(name, (caller, acts), (task, What::Share))
            }
            Err(BeginError::Held) => self.busy(Busy::Held),
            Err(BeginError::Refused(error)) => match error {
                ShareError::NotOwned(_) => refused(ClioStatus::Unmapped, 0),
                ShareError::Permission { .. } => refused(ClioStatus::Permission, 0),
                ShareError::Address(error) => self.allocate_refused(error),
            },
        }
    }

    /// Ends a process at its own request. It is dead at once; the answer comes when all its memory
    /// is taken back.
    pub(super) fn end_process(&mut self, name: Option<Name>, caller: Asker) -> Outcome {
        if !self.runs.has_room_to_end(caller) {
            return self.busy(Busy::Runs);
        }
        self.begin_end(caller.0);
        self.begin_slow(name, (caller, caller), (Task::end(caller.0), What::End))
    }

    fn begin_end(&mut self, space: SpaceId) {
        self.processes.begin_end(space);
        self.runs.forget(space);
    }

    /// Begins to take back the memory of a dead process, if there is one among this many places and
    /// few are in progress. Returns whether there was one.
    pub(super) fn end_dead(&mut self, now: Ns, places: usize) -> bool {
        if !self.runs.may_end_another() {
            return false;
        }
        let Some(dead) = self.processes.dead(now, places) else { return false };
        self.counters.lapsed += u64::from(dead.has_lapsed);
        let (caller, space) = (dead.caller, dead.caller.0);
        self.begin_end(space);
        let job = Job::Memory(Slow { task: Task::end(space), what: What::End });
        self.runs.wait(ActiveRun { name: None, caller, acts: caller, job });
        true
    }

    /// The number of free bytes. It is 0 where the number would reveal the use of other tenants.
    fn free_to_say(&self) -> u64 {
        if self.tenants.count() == 1 { self.memory.map().free_bytes() } else { 0 }
    }

    fn allocate_refused(&self, error: AllocateError) -> Outcome {
        match error {
            AllocateError::Empty => refused(ClioStatus::BadLength, 0),
            AllocateError::Full { .. } => refused(ClioStatus::Full, self.free_to_say()),
            AllocateError::BadAddress { .. } | AllocateError::Taken { .. } => {
                refused(ClioStatus::AddressTaken, 0)
            }
            AllocateError::Overflows { page } => refused(ClioStatus::AddressOverflows, page),
            // The number of ranges tried would reveal how much memory others have.
            AllocateError::NoRange { .. } => refused(ClioStatus::AddressOverflows, 0),
        }
    }
}
