//! Operations that are done a slice at a time: those that have begun, and whose turn it is.
//!
//! Operations are begun as they come as long as all of their datagram have done less than a slice
//! together; then, and of one that is not done after a slice, the others are done by `tend`, one
//! each time. So nobody waits for more than two slices of his own datagram, two of each datagram
//! before it, and one of `tend`.

use std::collections::{BTreeMap, VecDeque};
use std::task::Poll;

use ethermem_units::Ns;
use ethermem_wire::clio::ProcessId;

use super::execute::Asker;
use super::extend::{Ended, Extended, body};
use super::machine::{Busy, Node};
use super::recent::{Known, Name, Outcome};
use super::tenants::Tenant;
use crate::memory::SpaceId;
use crate::offload::{NodeMemory, OffloadError, SLICE_WORK, Sliced};

/// Operations of all tenants that have begun and not ended.
const RUNS_MAX: usize = 64;
/// The same of one tenant.
const RUNS_OF_TENANT_MAX: usize = 16;

/// An operation that has begun.
pub(super) struct Run {
    /// The request that asked for it.
    pub(super) name: Name,
    /// Who asked.
    pub(super) caller: Asker,
    /// For whom it acts: the caller, or a process of its own.
    pub(super) acts: Asker,
    pub(super) job: Box<dyn Sliced>,
}

/// The end of an operation for whose result there was no place.
struct Left {
    name: Name,
    space: SpaceId,
    until: Ns,
    ended: Ended,
}

/// See the module.
#[derive(Default)]
pub(super) struct Runs {
    /// The next first.
    waiting: VecDeque<Run>,
    left: Vec<Left>,
    /// Processes in which operations act that have a space of their own.
    own: BTreeMap<(Tenant, String), (ProcessId, SpaceId)>,
    /// Work that operations of this datagram may still begin with.
    budget: u64,
}

impl Runs {
    /// A datagram begins.
    pub(super) fn datagram(&mut self) {
        self.budget = SLICE_WORK;
    }

    /// Whether operations of this datagram have had what all of a datagram may have.
    pub(super) fn datagram_is_over(&self) -> bool {
        self.budget == 0
    }

    /// An operation of this datagram did work.
    pub(super) fn worked(&mut self, work: u64) {
        self.budget = self.budget.saturating_sub(work);
    }

    pub(super) fn wait_for_work(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Whether a request's operation has begun and not ended.
    pub(super) fn has(&self, name: Name) -> bool {
        self.waiting.iter().any(|run| run.name == name)
    }

    /// The end of a request's operation, if it is here.
    pub(super) fn left(&self, name: Name) -> Option<&Ended> {
        self.left.iter().find(|left| left.name == name).map(|left| &left.ended)
    }

    pub(super) fn has_room(&self, tenant: Tenant) -> bool {
        let waiting = self.waiting.iter().map(|run| run.name.tenant);
        let left = self.left.iter().map(|left| left.name.tenant);
        let own = waiting.chain(left).filter(|&other| other == tenant).count();
        self.waiting.len() + self.left.len() < RUNS_MAX && own < RUNS_OF_TENANT_MAX
    }

    /// A process is no more, and nothing acts for it.
    pub(super) fn forget(&mut self, space: SpaceId) {
        self.waiting.retain(|run| run.caller.0 != space && run.acts.0 != space);
        self.left.retain(|left| left.space != space);
        self.own.retain(|_, (_, own)| *own != space);
    }

    /// How many processes are of operations, and not of clients.
    pub(super) fn own_processes(&self) -> usize {
        self.own.len()
    }

    /// The space of an operation of this name, which is gone.
    pub(super) fn own_space(&self, tenant: Tenant, name: &str) -> Option<SpaceId> {
        self.own.get(&(tenant, name.to_owned())).map(|(_, space)| *space)
    }
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> Node<B> {
    /// The space of a tenant's own in which an operation acts: made when it is first asked for.
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
        self.processes.keep(process);
        let space = self.processes.alive(now, process).expect("it was just made");
        self.runs.own.insert(key, (process, space));
        Ok((space, process, tenant))
    }

    /// Begins an operation: does its first slice, if its datagram has one left. Its end, if that
    /// was all of it; else what is answered meanwhile.
    pub(super) fn begin_run(&mut self, mut run: Run) -> Result<Ended, Outcome> {
        if !self.runs.datagram_is_over() {
            let (ended, work) = self.step(&mut run);
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

    /// Does a slice of the operation whose turn it is.
    pub(super) fn run_slice(&mut self, now: Ns) {
        self.place_left(now);
        // Of one whose lease is over the memory may be another's by now, and so may its locks.
        let lives = |who: Asker| self.processes.alive(now, who.1) == Some(who.0);
        self.runs.waiting.retain(|run| lives(run.caller) && lives(run.acts));
        let Some(mut run) = self.runs.waiting.pop_front() else { return };
        match self.step(&mut run).0 {
            Some(ended) => self.keep_end(now, run.name, run.caller.0, ended),
            None => self.runs.waiting.push_back(run),
        }
    }

    /// Does a slice of an operation: its end, if that was the last, and how much work it was.
    fn step(&mut self, run: &mut Run) -> (Option<Ended>, u64) {
        let before = run.job.fuel_used();
        let mut view = Extended::new(self, run.acts);
        let mut memory = NodeMemory::new(&mut view);
        let stepped = run.job.step(&mut memory);
        let work = memory.work();
        self.counters.offload_slices += 1;
        let fuel = run.job.fuel_used().saturating_sub(before);
        self.tenants.burned(run.caller.2, fuel);
        // How long it takes until it has fuel to count, nobody knows.
        let work = if fuel > 0 { SLICE_WORK } else { work };
        let Poll::Ready(ended) = stepped else { return (None, work) };
        if let Err(OffloadError::Stopped { why, .. }) = &ended {
            self.counters.offload_stopped[*why as usize] += 1;
        }
        let ended = body(ended, self.config.data_bytes_max as usize);
        self.ran(run.caller.2, &ended);
        (Some(ended), work)
    }

    /// Keeps how an operation ended, until its caller has heard or the time for it is over.
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
            // The client used the number a second time, for something else: that one counts.
            Known::Executed(..) | Known::Reused => {}
        }
    }

    /// Ends for which there was no place are kept as soon as there is.
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

    /// What is answered to a request whose operation has begun before; `None` of another.
    pub(super) fn known_run(&self, name: Name) -> Option<Ended> {
        if self.runs.has(name) {
            return Some(Err(Busy::Running.refused()));
        }
        self.runs.left(name).cloned()
    }
}
