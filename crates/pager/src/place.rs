//! Where pager and program run: wherever the scheduler puts them, or together on one processor.
//!
//! Each fault wakes the pager and then the thread again. On two processors both may have halted
//! meanwhile; on one the kernel switches from one to the other. Which is better depends on the
//! machine and on the program, so it is measured. See docs/internals/pager.md, "One processor".

use std::time::{Duration, Instant};

use nix::sched::CpuSet;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::Pid;
use rustc_hash::FxHashSet;
use smallvec::SmallVec;

use crate::affinity::{self, Heirs};
use crate::pager::Pager;
use crate::peer::Peer;
use crate::process::Process;

/// Where pager and program run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// Wherever the scheduler puts them.
    Free,
    /// On one processor while that serves more faults in the same time.
    #[default]
    Measured,
    /// On one processor while few threads make most faults.
    Together,
}

/// Duration of a measurement.
const EPOCH: Duration = Duration::from_millis(10);
/// With fewer faults than these in an epoch there is little to gain.
const FAULTS_LEAST: u32 = 8;
/// Threads that may be bound.
const THREADS_MAX: usize = 4;
/// Threads of which faults are counted by thread; those of others are in the sum alone.
const COUNTED_MAX: usize = 16;
/// Share of the faults that the threads must have, in percent: to be bound, and to stay so.
const PERCENT_TO_BIND: u32 = 90;
const PERCENT_TO_STAY: u32 = 80;
/// Epochs and faults that are measured in each place before they are compared.
const TRIAL_EPOCHS: u32 = 2;
const TRIAL_FAULTS: u32 = 64;
/// How many more faults, in percent, must be served bound: in the first trial, and in later ones.
const GAIN_FIRST: u32 = 125;
const GAIN_LATER: u32 = 110;
/// How long the result of a trial holds. It doubles with each equal result.
const HOLDS: Duration = Duration::from_millis(250);
const HOLDS_MAX: Duration = Duration::from_secs(4);
/// A look for heirs takes at most one part in this many of the time.
const LOOK_SHARE: u32 = 50;
/// How long heirs are looked for after a release. A thread that began bound may become visible
/// later: a fork copies its parent's page table before.
const LOOKED_FOR_AFTER: Duration = Duration::from_secs(1);

/// Time that this thread has run. A look that others interrupt is not more work.
fn processor_time() -> Duration {
    let spent = |part: TimeVal| Duration::from_micros(part.num_microseconds().unsigned_abs());
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    usage.map_or(Duration::ZERO, |it| spent(it.user_time()) + spent(it.system_time()))
}

/// Faults of an epoch by thread.
#[derive(Debug, Default)]
struct Tally {
    threads: SmallVec<[(usize, u32, u32); COUNTED_MAX]>,
    all: u32,
}

impl Tally {
    fn count(&mut self, process: usize, thread: u32) {
        self.all += 1;
        let is_full = self.threads.len() == COUNTED_MAX;
        let known = self.threads.iter_mut().find(|(id, of, _)| (*id, *of) == (process, thread));
        match known {
            Some((.., faults)) => *faults += 1,
            None if is_full => {}
            None => self.threads.push((process, thread, 1)),
        }
    }

    /// The process and the few threads that made nearly all faults, if there were enough.
    fn few(&mut self) -> Option<(usize, SmallVec<[u32; THREADS_MAX]>)> {
        self.threads.sort_unstable_by_key(|(.., faults)| std::cmp::Reverse(*faults));
        let (process, ..) = *self.threads.first()?;
        let of_process = self.threads.iter().filter(|(id, ..)| *id == process);
        let (mut faults, mut few) = (0, SmallVec::new());
        for (_, thread, of_thread) in of_process.take(THREADS_MAX) {
            if is_share(faults, self.all, PERCENT_TO_BIND) {
                break;
            }
            few.push(*thread);
            faults += of_thread;
        }
        let is_most = is_share(faults, self.all, PERCENT_TO_BIND);
        (is_most && self.all >= FAULTS_LEAST).then_some((process, few))
    }

    /// True if `threads` of `process` made most of the faults, and there were enough.
    fn is_of(&self, process: usize, threads: &[u32]) -> bool {
        let of = self.threads.iter().filter(|(id, of, _)| *id == process && threads.contains(of));
        let faults = of.map(|(.., faults)| faults).sum();
        is_share(faults, self.all, PERCENT_TO_STAY) && self.all >= FAULTS_LEAST
    }
}

fn is_share(part: u32, all: u32, percent: u32) -> bool {
    u64::from(part) * 100 >= u64::from(all) * u64::from(percent) && part > 0
}

/// Faults and time of epochs.
#[derive(Clone, Copy, Debug)]
struct Served {
    epochs: u32,
    faults: u32,
    took: Duration,
}

impl Served {
    const NONE: Served = Served { epochs: 0, faults: 0, took: Duration::ZERO };

    fn is_enough(&self) -> bool {
        self.epochs >= TRIAL_EPOCHS && self.faults >= TRIAL_FAULTS
    }

    fn add(&mut self, other: Served) {
        self.epochs += other.epochs;
        self.faults += other.faults;
        self.took += other.took;
    }

    /// True if at least `percent` as many faults were served in the same time as by `other`.
    fn is_faster(&self, other: &Served, percent: u32) -> bool {
        let crossed = |one: &Served, other: &Served| u128::from(one.faults) * other.took.as_nanos();
        crossed(self, other) * 100 >= crossed(other, self) * u128::from(percent)
    }
}

#[derive(Debug)]
enum State {
    /// Both places are tried in turn.
    Trial { free: Served, together: Served },
    /// One place was found better, for now.
    Settled { together: bool, until: Instant },
}

const NEW_TRIAL: State = State::Trial { free: Served::NONE, together: Served::NONE };

/// Chooses a place by what was served in each.
#[derive(Debug)]
struct Policy {
    how: Placement,
    state: State,
    /// Result of the last trial, and how long it holds.
    result: Option<(bool, Duration)>,
}

impl Policy {
    fn new(how: Placement) -> Policy {
        Policy { how, state: NEW_TRIAL, result: None }
    }

    /// Takes what an epoch has `served`, `None` if it had few faults or those of many threads, and
    /// whether pager and threads were together in it. Returns whether they are to be in the next.
    fn after(&mut self, now: Instant, served: Option<Served>, was_together: bool) -> bool {
        match (self.how, served) {
            (Placement::Free, _) | (_, None) => false,
            (Placement::Together, _) => true,
            (Placement::Measured, Some(served)) => self.measured(now, served, was_together),
        }
    }

    fn measured(&mut self, now: Instant, served: Served, was_together: bool) -> bool {
        if let State::Settled { together, until } = self.state {
            if now < until {
                return together;
            }
            self.state = NEW_TRIAL;
        }
        let State::Trial { free, together } = &mut self.state else { return false };
        let place = if was_together { &mut *together } else { &mut *free };
        place.add(served);
        if !free.is_enough() || !together.is_enough() {
            return together.faults < free.faults;
        }
        let gain = if self.result.is_none() { GAIN_FIRST } else { GAIN_LATER };
        let is_better = together.is_faster(free, gain);
        let holds = match self.result {
            Some((last, holds)) if last == is_better => (holds * 2).min(HOLDS_MAX),
            _ => HOLDS,
        };
        self.result = Some((is_better, holds));
        self.state = State::Settled { together: is_better, until: now + holds };
        is_better
    }

    /// Records that the threads could not be bound.
    fn refuse(&mut self, now: Instant) {
        self.state = State::Settled { together: false, until: now + HOLDS_MAX };
    }
}

/// Threads that are bound to one processor with the pager.
struct Bound {
    process: usize,
    peer: Peer,
    /// The threads as faults name them.
    said: SmallVec<[u32; THREADS_MAX]>,
    /// The same threads as numbered here, and the agent's.
    threads: SmallVec<[Pid; THREADS_MAX + 1]>,
    narrow: CpuSet,
    wide: CpuSet,
    /// The pager's own processors before.
    own: CpuSet,
    since: Instant,
}

impl Bound {
    /// Threads of a process that may be bound with this thread: not where the program chose
    /// processors for some of its threads itself.
    fn new(id: usize, process: &Process, said: &[u32]) -> Option<Bound> {
        let agent = Pid::from_raw(process.agent_thread.cast_signed());
        let peer = process.agent.as_ref().filter(|_| agent.as_raw() != 0)?.peer.again().ok()?;
        let mut threads: SmallVec<[Pid; THREADS_MAX + 1]> =
            said.iter().filter_map(|said| peer.thread(u64::from(*said))).collect();
        let first = *threads.first()?;
        if threads.len() < said.len() {
            return None;
        }
        threads.push(agent);
        let (wide, own) = (affinity::of(first)?, affinity::own()?);
        if peer.threads().into_iter().any(|it| affinity::of(it) != Some(wide)) {
            return None;
        }
        let both: Vec<_> = affinity::processors(&wide)
            .filter(|processor| own.is_set(*processor).unwrap_or(false))
            .collect();
        let last = affinity::last_processor(&peer, first);
        let processor = last.filter(|last| both.contains(last)).or(both.first().copied())?;
        let narrow = affinity::only(processor)?;
        let (said, since) = (SmallVec::from_slice(said), Instant::now());
        let bound = Bound { process: id, peer, said, threads, narrow, wide, own, since };
        (both.len() > 1).then_some(bound)
    }

    /// Binds the threads; returns whether all are bound.
    fn begin(&self) -> bool {
        let swap = |thread: &Pid| affinity::swap(&self.peer, *thread, &self.wide, &self.narrow);
        affinity::set_own(&self.narrow) && self.threads.iter().all(swap)
    }

    /// True if all threads that live have still the processor that they were given.
    fn is_kept(&self) -> bool {
        self.threads.iter().all(|it| affinity::of(*it).is_none_or(|set| set == self.narrow))
    }

    /// Gives all threads back what they had.
    fn release(&self) {
        for thread in &self.threads {
            affinity::swap(&self.peer, *thread, &self.narrow, &self.wide);
        }
        affinity::set_own(&self.own);
    }
}

/// What the pager knows of places, and its threads that are bound.
pub(crate) struct Place {
    policy: Policy,
    tally: Tally,
    epoch: Instant,
    bound: Option<Bound>,
    heirs: Option<Heirs>,
    next_look: Instant,
    /// Threads are bound at this time at the earliest: where there are many processes, looking for
    /// heirs takes long.
    next_bind: Instant,
    /// Time of the last release.
    released: Instant,
    /// Processes that choose the processors of their threads themselves.
    own_choice: FxHashSet<usize>,
    together: Duration,
}

impl Place {
    pub(crate) fn new(how: Placement) -> Place {
        let how = if affinity::tells_children() { how } else { Placement::Free };
        let now = Instant::now();
        Place {
            policy: Policy::new(how),
            tally: Tally::default(),
            epoch: now,
            bound: None,
            heirs: None,
            next_look: now,
            next_bind: now,
            released: now,
            own_choice: FxHashSet::default(),
            together: Duration::ZERO,
        }
    }

    /// Counts a fault.
    pub(crate) fn faulted(&mut self, process: usize, thread: u32) {
        self.tally.count(process, thread);
    }

    /// A process has announced itself and waits. It may be an heir.
    pub(crate) fn greet(&mut self, peer: &Peer) {
        if self.bound.as_ref().is_some_and(|bound| bound.peer.number() == peer.number()) {
            // A bound thread executed a program.
            self.release();
        }
        if let Some(heirs) = &mut self.heirs {
            heirs.look_at(peer);
        }
    }

    /// Time for which threads have been bound.
    pub(crate) fn together(&self) -> Duration {
        self.together + self.bound.as_ref().map_or(Duration::ZERO, |it| it.since.elapsed())
    }

    /// Gives bound threads back their processors.
    pub(crate) fn release(&mut self) {
        if let Some(bound) = self.bound.take() {
            self.together += bound.since.elapsed();
            bound.release();
            self.released = Instant::now();
            self.look(self.released);
        }
    }

    /// Binds threads; returns whether they are bound.
    fn bind(&mut self, bound: Bound) -> bool {
        let before = processor_time();
        let (narrow, wide) = (bound.narrow, bound.wide);
        if !self.heirs.as_mut().is_some_and(|heirs| heirs.add(narrow, wide)) {
            self.heirs = Some(Heirs::new(narrow, wide));
        }
        let is_bound = bound.begin();
        self.bound = Some(bound);
        let took = processor_time().saturating_sub(before);
        self.next_look = Instant::now() + EPOCH;
        self.next_bind = Instant::now() + took * LOOK_SHARE;
        if !is_bound {
            self.release();
        }
        is_bound
    }

    /// Looks for heirs, and sets the time of the next look.
    fn look(&mut self, now: Instant) {
        let Some(heirs) = &mut self.heirs else { return };
        let before = processor_time();
        heirs.look();
        let took = processor_time().saturating_sub(before);
        self.next_look = now + EPOCH.max(took * LOOK_SHARE);
        if self.bound.is_none() && now > self.released + LOOKED_FOR_AFTER {
            self.heirs = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.release();
    }
}

impl Pager<'_> {
    /// Ends an epoch if it is time, and binds or releases threads.
    pub(crate) fn place_anew(&mut self, now: Instant) {
        let place = &mut self.place;
        if place.policy.how == Placement::Free {
            return;
        }
        if place.heirs.is_some() && now >= place.next_look {
            place.look(now);
        }
        let took = now.saturating_duration_since(place.epoch);
        if took < EPOCH {
            return;
        }
        let mut tally = std::mem::take(&mut place.tally);
        place.epoch = now;
        let few = match &place.bound {
            Some(bound) if !bound.is_kept() => {
                place.own_choice.insert(bound.process);
                None
            }
            Some(bound) if tally.is_of(bound.process, &bound.said) => Some((bound.process, None)),
            Some(_) => None,
            None if now < place.next_bind => None,
            None => tally.few().map(|(process, threads)| (process, Some(threads))),
        };
        let few = few.filter(|(process, _)| !place.own_choice.contains(process));
        let served = few.is_some().then_some(Served { epochs: 1, faults: tally.all, took });
        let is_together = place.policy.after(now, served, place.bound.is_some());
        match few {
            Some((process, Some(threads))) if is_together => {
                let served = self.processes.get(&process);
                let bound = served.and_then(|it| Bound::new(process, it, &threads));
                if !bound.is_some_and(|bound| self.place.bind(bound)) {
                    self.place.policy.refuse(now);
                }
            }
            _ if !is_together => self.place.release(),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
