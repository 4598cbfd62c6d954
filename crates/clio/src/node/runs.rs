//! Operations and slow-path requests that are done in slices: the runs in progress, and their
//! order.
//!
//! A run begins at once while all runs of its datagram together have done less than a slice of
//! work. Later runs, and a run that needs more than a slice, are continued by `tend`, one slice per
//! call, with tenants in turn. So a request waits for at most two slices of its own datagram, two
//! of each datagram before it, and one of `tend`.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use ethermem_units::Ns;
use ethermem_wire::clio::ProcessId;

use super::execute::Asker;
use super::extend::{Ended, Extended, body};
use super::machine::{Busy, Node};
use super::recent::{Known, Name, Outcome};
use super::slow::{SLOW_STEPS, Slow};
use super::tenants::Tenant;
use crate::memory::SpaceId;
use crate::offload::{NodeMemory, OffloadError, SLICE_WORK, Sliced};

/// Maximum runs in progress of all tenants.
const RUNS_MAX: usize = 64;
/// Maximum runs in progress of one tenant.
const RUNS_OF_TENANT_MAX: usize = 16;

/// Maximum processes without a client whose memory is taken back at one time. Others wait as they
/// are: dead, with their memory.
const ENDS_MAX: usize = 4;

/// A run: an operation or a slow-path request that has begun.
pub(super) struct ActiveRun {
    /// The request that started it; `None` if no request waits for its end.
    pub(super) name: Option<Name>,
    /// The requester.
    pub(super) caller: Asker,
    /// The process for which it acts: the caller, a process of the operation's own, or the process
    /// that a range is shared with.
    pub(super) acts: Asker,
    pub(super) job: Job,
}

/// Work that is done in slices.
pub(super) enum Job {
    /// An operation. Dropping it stops it where it is.
    Offload(Box<dyn Sliced>),
    /// A slow-path request. Cancelled, it returns what it has taken.
    Memory(Slow),
}

/// The end of an operation whose result had no place.
struct Left {
    name: Name,
    space: SpaceId,
    until: Ns,
    ended: Ended,
}

/// The runs in progress.
#[derive(Default)]
pub(super) struct Runs {
    /// Runs that wait for a slice, the next first.
    waiting: VecDeque<ActiveRun>,
    left: Vec<Left>,
    /// The processes of operations that have a space of their own.
    own: BTreeMap<(Tenant, String), (ProcessId, SpaceId)>,
    /// Work with which runs of this datagram may still begin.
    budget: u64,
    /// The tenant of the last slice.
    last: Option<Tenant>,
}

impl Runs {
    /// Begins a datagram.
    pub(super) fn datagram(&mut self) {
        self.budget = SLICE_WORK;
    }

    /// True if the runs of this datagram have used its budget.
    pub(super) fn datagram_is_over(&self) -> bool {
        self.budget == 0
    }

    /// Subtracts the work of an operation of this datagram.
    pub(super) fn worked(&mut self, work: u64) {
        self.budget = self.budget.saturating_sub(work);
    }

    pub(super) fn wait_for_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// True if a request's operation is in progress.
    pub(super) fn has(&self, name: Name) -> bool {
        self.waiting.iter().any(|run| run.name == Some(name))
    }

    /// The work with which operations of this datagram may still begin.
    pub(super) fn budget(&self) -> u64 {
        self.budget
    }

    pub(super) fn wait(&mut self, run: ActiveRun) {
        self.waiting.push_back(run);
    }

    /// True if the memory of another dead process may be taken back.
    pub(super) fn may_end_another(&self) -> bool {
        let ends = |run: &&ActiveRun| run.name.is_none() && run.ends();
        self.waiting.iter().filter(ends).count() < ENDS_MAX
    }

    /// The next run: the first run of the next tenant in turn.
    fn next(&mut self) -> Option<ActiveRun> {
        let last = self.last.map_or(0, |tenant| u32::from(tenant.index()) + 1);
        // Tenants go in order, from the one after the last and around.
        let turn = |run: &ActiveRun| u32::from(run.caller.2.index()).wrapping_sub(last);
        let places = self.waiting.iter().enumerate();
        let (at, tenant) = places
            .map(|(at, run)| (at, turn(run)))
            .min_by_key(|run| run.1)
            .map(|(at, _)| (at, self.waiting[at].caller.2))?;
        self.last = Some(tenant);
        self.waiting.remove(at)
    }

    /// The end of a request's operation, if it is kept here.
    pub(super) fn left(&self, name: Name) -> Option<&Ended> {
        self.left.iter().find(|left| left.name == name).map(|left| &left.ended)
    }

    pub(super) fn has_room(&self, tenant: Tenant) -> bool {
        let waiting = self.waiting.iter().filter(|run| !run.ends()).map(|run| run.caller.2);
        let left = self.left.iter().map(|left| left.name.tenant);
        let own = waiting.chain(left).filter(|&other| other == tenant).count();
        self.waiting.len() + self.left.len() < RUNS_MAX && own < RUNS_OF_TENANT_MAX
    }

    /// True if a process of a tenant may end now. Its operations end with it and make room, so a
    /// tenant whose runs are all in progress can end its processes.
    pub(super) fn has_room_to_end(&self, (space, _, tenant): Asker) -> bool {
        let ends = |run: &&ActiveRun| run.name.is_some() && run.ends() && run.caller.2 == tenant;
        let makes_room =
            |run: &ActiveRun| run.caller.0 == space && matches!(run.job, Job::Offload(_));
        self.waiting.iter().filter(ends).count() < RUNS_OF_TENANT_MAX
            && (self.waiting.len() + self.left.len() < RUNS_MAX
                || self.waiting.iter().any(makes_room))
    }

    /// Removes a process, and stops everything that acts for it.
    pub(super) fn forget(&mut self, space: SpaceId) {
        self.give_up(|who| who.0 == space);
        self.left.retain(|left| left.space != space);
        self.own.retain(|_, (_, own)| *own != space);
    }

    /// Stops the operations of dead processes where they are, and cancels their slow-path requests.
    fn give_up(&mut self, is_dead: impl Fn(Asker) -> bool) {
        self.waiting.retain_mut(|run| {
            if !is_dead(run.caller) && !is_dead(run.acts) {
                return true;
            }
            match &mut run.job {
                Job::Offload(_) => false,
                Job::Memory(slow) => {
                    slow.give_up();
                    true
                }
            }
        });
    }

    /// Number of processes that belong to operations, not to clients.
    pub(super) fn own_processes(&self) -> usize {
        self.own.len()
    }

    /// The space that belongs to a tenant's operation of this name, which was removed.
    pub(super) fn own_space(&self, tenant: Tenant, name: &str) -> Option<SpaceId> {
        self.own.get(&(tenant, name.to_owned())).map(|(_, space)| *space)
    }
}

impl ActiveRun {
    /// True if it takes back all memory of a process.
    fn ends(&self) -> bool {
        matches!(&self.job, Job::Memory(slow) if slow.ends())
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// The space of its own in which a tenant's operation acts; it is created at first use.
    pub(super) fn own_space(
        &mut self,
        now: Ns,
        tenant: Tenant,
        name: &str,
    ) -> Result<Asker, Outcome> {
        let key = (tenant, name.to_owned());
        if let Some(&(process, space)) = self.runs.own.get(&key) {
            return Ok((space, process, tenant));
        }
        let process = match self.create_process(now, tenant) {
            Outcome::Created(process) => process,
            refused => return Err(refused),
        };
        let space = self.processes.alive(now, process, tenant).expect("it was just made");
        self.processes.keep(space);
        self.runs.own.insert(key, (process, space));
        Ok((space, process, tenant))
    }

    /// Begins an operation: runs its first slice, if its datagram has budget left. Returns its end,
    /// or the answer for the time being.
    pub(super) fn begin_run(&mut self, mut run: ActiveRun) -> Result<Ended, Outcome> {
        if !self.runs.datagram_is_over() {
            let (ended, work) = self.step(&mut run, SLOW_STEPS);
            self.runs.worked(work);
            if let Some(ended) = ended {
                return Ok(ended);
            }
            self.runs.budget = 0;
        }
        if !self.runs.has_room(run.caller.2) {
            return Err(self.busy(Busy::Runs));
        }
        self.runs.waiting.push_back(run);
        Err(Busy::Running.refused())
    }

    /// Runs a slice of the next operation.
    pub(super) fn run_slice(&mut self, now: Ns) {
        self.place_left(now);
        // A process whose lease is over may have lost its memory and its locks to another process.
        let processes = &self.processes;
        self.runs.give_up(|who| processes.alive(now, who.1, who.2) != Some(who.0));
        let Some(mut run) = self.runs.next() else { return };
        match (self.step(&mut run, SLOW_STEPS).0, run.name) {
            (Some(ended), Some(name)) => {
                if let (Job::Memory(_), Err(outcome)) = (&run.job, &ended) {
                    self.counters.executed += 1;
                    if !matches!(outcome, Outcome::Refused(..)) {
                        self.tenants.executed(run.caller.2, name.opcode);
                    }
                }
                self.keep_end(now, name, run.caller.0, ended);
            }
            (Some(_), None) => {}
            (None, _) => self.runs.waiting.push_back(run),
        }
    }

    /// Runs a slice of a run. Returns its end, if that was the last slice, and its work. A
    /// cancelled run ends without an answer.
    pub(super) fn step(&mut self, run: &mut ActiveRun, steps: u64) -> (Option<Ended>, u64) {
        match &mut run.job {
            Job::Offload(job) => {
                let (caller, acts) = (run.caller, run.acts);
                self.step_offload((caller, acts), &mut **job)
            }
            Job::Memory(slow) => {
                let (ended, work) = self.step_slow(run.caller, slow, steps);
                (ended.map(Err), work)
            }
        }
    }

    fn step_offload(
        &mut self,
        (caller, acts): (Asker, Asker),
        job: &mut dyn Sliced,
    ) -> (Option<Ended>, u64) {
        let before = job.fuel_used();
        let mut view = Extended::new(self, acts);
        let mut memory = NodeMemory::new(&mut view);
        let stepped = job.step(&mut memory);
        let work = memory.work();
        self.counters.offload_slices += 1;
        let fuel = job.fuel_used().saturating_sub(before);
        self.tenants.burned(caller.2, fuel);
        // Until an operation counts fuel, its work is unknown.
        let work = if fuel > 0 { SLICE_WORK } else { work };
        let Poll::Ready(ended) = stepped else { return (None, work) };
        if let Err(OffloadError::Stopped { why, .. }) = &ended {
            self.counters.offload_stopped[*why as usize] += 1;
        }
        let ended = body(ended, self.config.data_bytes_max as usize);
        self.ran(caller.2, &ended);
        (Some(ended), work)
    }

    /// Keeps the end of an operation until its caller acknowledges it or its time is over.
    pub(super) fn keep_end(&mut self, now: Ns, name: Name, space: SpaceId, ended: Ended) {
        let until = self.kept_until(now);
        match self.recent.find(now, name) {
            Known::New(place) if self.recent.has_room_for_results(now, name.tenant) => {
                match ended {
                    Ok(result) => self.recent.keep_result(place, name, until, result),
                    Err(refused) => self.recent.keep(place, name, until, refused),
                }
            }
            Known::New(_) | Known::Full => {
                self.runs.left.push(Left { name, space, until, ended });
            }
            // The client reused the number for another request, which takes precedence.
            Known::Executed(..) | Known::Reused => {}
        }
    }

    /// Moves ends without a place into places that came free.
    fn place_left(&mut self, now: Ns) {
        if self.runs.left.is_empty() {
            return;
        }
        for Left { name, space, until, ended } in std::mem::take(&mut self.runs.left) {
            if now <= until {
                self.keep_end(now, name, space, ended);
            }
        }
    }

    /// The answer to a request whose operation has begun before; `None` for another request.
    pub(super) fn known_run(&self, name: Name) -> Option<Ended> {
        if self.runs.has(name) {
            return Some(Err(Busy::Running.refused()));
        }
        self.runs.left(name).cloned()
    }
}
