//! Pools, and what drives them.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use ethermem_clio::offload::{Offload, Offloads};
use ethermem_sim::Kind;
use ethermem_sim::workload::LinkBlocks;
use ethermem_udp::{Maker, Sleeper};
use ethermem_units::Ps;

use crate::attempts::{AccessAttempt, Attention, CodeAttempt, machine_thread, with_waiter};
use crate::core::{Core, Stalled};
use crate::error::{Error, OpenError};
use crate::tasks::{Current, Notify, TaskKey, Tasks};
use crate::thread::Thread;
use crate::url::{self, Place};
use crate::wait::{Attempt, Seat, Step, Unfinished, Why};
use crate::world::{Asker, Local, Remote, Sim, WaitedId, World};

/// Shortest rest for which the machine's thread is put to sleep: below it others are let go first.
const SLEEP_MIN: Duration = Duration::from_micros(20);

/// How often a network is looked after while no thread of the machine waits for it.
const TEND_EVERY: Duration = Duration::from_millis(10);

/// How often a machine thread goes on without rest before it lets others to the pool.
const PASSES_EACH_YIELD: u32 = 64;

/// How long a pool that is closed waits for locks and times.
const CLOSE_WAIT: Duration = Duration::from_secs(2);

thread_local! {
    static PASSES: Cell<u32> = const { Cell::new(0) };
}

/// A pool's state, shared by all that use it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

/// What ends with its last user, in that user's thread.
struct State {
    core: Arc<Mutex<Core>>,
    /// Who of the machine threads that wait drives the pool.
    seat: Seat,
    /// The process that the pool is for, where a fork may not use it.
    maker: Option<Arc<Maker>>,
    /// What to sleep on, where that is better than to sleep.
    sleeper: Option<Sleeper>,
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.is_forked() {
            locked(&self.core).leave();
        }
    }
}

impl State {
    #[inline]
    fn is_forked(&self) -> bool {
        self.maker.as_ref().is_some_and(|maker| !maker.is_here())
    }
}

#[inline]
fn locked(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(core: Core, sleeper: Option<Sleeper>, maker: Option<Arc<Maker>>) -> Shared {
        Shared(Arc::new(State {
            core: Arc::new(Mutex::new(core)),
            seat: Seat::default(),
            maker,
            sleeper,
        }))
    }

    /// To be asked before anything is begun.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Looks after the network now and then, until nobody uses the pool any more.
    fn tend(&self) -> Result<(), OpenError> {
        let core = Arc::downgrade(&self.0.core);
        // Not the state: the last user must not find that it is this thread.
        let tend = move || {
            while let Some(core) = Weak::upgrade(&core) {
                locked(&core).tend();
                drop(core);
                std::thread::sleep(TEND_EVERY);
            }
        };
        let started = std::thread::Builder::new().name("ethermem-tend".to_owned()).spawn(tend);
        let failed = |error| OpenError::NotAllowed { problem: format!("no thread: {error}") };
        started.map(drop).map_err(failed)
    }

    /// Does something to the pool. Who waits is told when it is free again.
    #[inline]
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Core) -> R) -> R {
        let mut core = self.lock();
        let result = act(&mut core);
        if core.has_told() {
            let told = core.take_told();
            drop(core);
            self.tell(told);
        }
        result
    }

    #[inline]
    fn lock(&self) -> MutexGuard<'_, Core> {
        if self.0.is_forked() { self.lock_copy() } else { locked(&self.0.core) }
    }

    /// In a fork: a thread that had the pool at that moment is the parent's, and never gives it
    /// back here.
    #[cold]
    fn lock_copy(&self) -> MutexGuard<'_, Core> {
        match self.0.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(core)) => core.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("{}", Error::Forked),
        }
    }

    /// Where the pool's state is, which tells pools apart.
    #[inline]
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    fn tell(&self, told: Vec<Notify>) {
        Current::forget_poll();
        for notify in told {
            match notify {
                Notify::Task(key) => self.wake(key),
                Notify::Waker(waker) => waker.wake(),
            }
        }
    }

    /// Wakes a task of any machine thread.
    pub(crate) fn wake(&self, key: TaskKey) {
        let inbox = self.lock().inbox(key.list);
        if let Some(inbox) = inbox {
            inbox.wake(key);
        }
    }

    /// See [`Pool::run`].
    pub(crate) fn run<F: Future>(&self, code: F) -> F::Output {
        self.try_run(code, None).unwrap_or_else(|unfinished| panic!("{unfinished}"))
    }

    /// See [`Pool::run_attended`].
    pub(crate) fn try_run<F: Future>(
        &self,
        code: F,
        attention: Option<Attention<'_>>,
    ) -> Result<F::Output, Unfinished> {
        let code = pin!(code);
        self.wait(&mut CodeAttempt { shared: self, code, waker: None, attention })
    }

    /// Waits for what the machine's thread has begun.
    pub(crate) fn wait_for(&self, id: WaitedId, to: &mut [u8]) -> Result<(), Error> {
        let mut access = AccessAttempt { shared: self, id, to, ended: None, was_parked: false };
        self.wait(&mut access).expect("an access ends, or its world says why not")
    }

    /// Waits for anything; the rules are those of [`Seat`].
    pub(crate) fn wait<A: Attempt>(&self, attempt: &mut A) -> Result<A::Output, Unfinished> {
        with_waiter(|waiter| {
            if self.0.is_forked() {
                // A thread that had the seat is the parent's.
                return attempt.poll(waiter, Why::Idle).ok_or(Unfinished::Stalled);
            }
            self.know();
            self.0.seat.wait(waiter, attempt)
        })
    }

    /// This machine thread may wake others.
    pub(crate) fn know(&self) {
        self.0.seat.know(machine_thread());
    }

    /// Goes on until an operation ends, or the machine may rest for a while, and tells who waits.
    pub(crate) fn step(&self) -> Step {
        self.with(step_of)
    }

    /// The same, and gives who is to be told. `told` is empty.
    pub(crate) fn step_telling(&self, told: &mut Vec<Notify>) -> Step {
        let mut core = self.lock();
        let step = step_of(&mut core);
        core.swap_told(told);
        step
    }

    /// Goes on until nothing is under way, for as long as a close waits for other machine threads.
    fn settle(&self) {
        let began = Instant::now();
        while began.elapsed() < CLOSE_WAIT {
            match self.step() {
                Step::Idle { .. } => return,
                Step::Ended => {}
                Step::Rest(rest) => self.rest(rest),
            }
        }
    }

    /// Lets the machine's thread rest as long as it may.
    pub(crate) fn rest(&self, rest: Duration) {
        if rest.is_zero() {
            // Rarely: on a busy machine the others keep what they are offered for long.
            let passes = PASSES.get().wrapping_add(1);
            PASSES.set(passes);
            if passes.is_multiple_of(PASSES_EACH_YIELD) {
                std::thread::yield_now();
            }
        } else if rest < SLEEP_MIN {
            std::thread::yield_now();
        } else {
            match &self.0.sleeper {
                Some(sleeper) => sleeper.sleep(rest),
                None => std::thread::sleep(rest),
            }
        }
    }
}

/// Remote memory, on the fabric that its URL names. Clones are the same pool.
///
/// A pool over a network is its process's alone: in a fork of that process every operation ends
/// with [`Error::Forked`], and nothing is sent. A child opens a pool of its own.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use ethermem::{Permissions, Pool};
///
/// let pool = Pool::open("sim:edm?nodes=2&link_gbps=25")?;
/// let thread = pool.thread()?;
/// let region = thread.alloc(4096, Permissions::READ_WRITE).wait()?;
/// region.write(0, b"hello").wait()?;
/// let before = pool.now();
/// assert_eq!(region.read(0, 5).wait()?, b"hello");
/// // A read request there, 82 ns of DRAM, and one chunk back.
/// assert!(pool.now() - before > ethermem::Ps::from_ns(299 + 82));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Pool {
    shared: Shared,
    url: Arc<str>,
    choice: Option<Arc<str>>,
}

impl Pool {
    /// Opens a pool.
    ///
    /// # Errors
    /// [`OpenError`] with the part of the URL that is wrong, and what is allowed; or that the
    /// memory node is not there.
    pub fn open(url: &str) -> Result<Pool, OpenError> {
        let (mut sleeper, mut choice, mut maker) = (None, None, None);
        let world: Box<dyn World> = match url::parse(url)? {
            Place::Local { memory_bytes } => Box::new(Local::new(memory_bytes)),
            Place::Sim(config) => Box::new(Sim::new(&config)?),
            Place::Remote(config) => {
                let remote = Remote::open(&config)?;
                (sleeper, maker) = (Some(remote.sleeper()), Some(remote.maker()));
                choice = remote.choice().map(Arc::from);
                Box::new(remote)
            }
        };
        let core = Core::new(world, Offloads::built_in());
        let shared = Shared::new(core, sleeper, maker);
        if shared.0.sleeper.is_some() {
            shared.tend()?;
        }
        Ok(Pool { shared, url: url.into(), choice })
    }

    /// What it was opened by.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How the node of `node:` is reached, and what of the other way was measured, or why there is
    /// none: a line for people, as `by ring://eth0/02:00:00:00:00:0a, 1.9 us a round trip, by
    /// udp://host:7400 3.6 us`. `None` where the URL leaves no choice.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        self.choice.as_deref()
    }

    /// A new process's first thread, on the next of the compute nodes in turn.
    ///
    /// # Errors
    /// None but over a network, where the node may be away, or have no place for a process.
    pub fn thread(&self) -> Result<Thread, Error> {
        self.shared.check()?;
        self.thread_on(self.next_compute())
    }

    /// The compute node whose turn it is: threads that are given out in turn spread over all.
    #[must_use]
    pub fn next_compute(&self) -> u16 {
        self.shared.with(Core::next_compute)
    }

    /// A new process's first thread, on a compute node.
    ///
    /// # Errors
    /// [`Error::NoSuchNode`]; else as [`Pool::thread`].
    pub fn thread_on(&self, compute: u16) -> Result<Thread, Error> {
        self.shared.check()?;
        let (computes, _) = self.nodes();
        if compute >= computes {
            let allowed = format!("compute nodes 0 to {}", computes - 1);
            return Err(Error::NoSuchNode { node: compute, allowed });
        }
        let (process, id) = self.shared.with(|core| {
            let process = core.new_process()?;
            Ok((process, core.new_thread(Asker { process, compute })))
        })?;
        Ok(Thread::new(self.shared.clone(), id, process, compute))
    }

    /// How many compute nodes and memory nodes there are.
    #[must_use]
    pub fn nodes(&self) -> (u16, u16) {
        self.shared.with(|core| core.world.nodes())
    }

    /// Time since the pool was opened: the fabric's own where it has one.
    #[must_use]
    pub fn now(&self) -> Ps {
        self.shared.with(|core| core.world.now())
    }

    /// Whether time is a simulated fabric's, which passes in operations and sleep alone.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        self.shared.with(|core| core.world.is_simulated())
    }

    /// Events that the simulated fabric has handled; 0 elsewhere.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.shared.with(|core| core.world.events())
    }

    /// What a message of so many bytes takes of a simulated fabric's links, and how many blocks go
    /// over one in a second; `None` elsewhere.
    #[must_use]
    pub fn link_blocks(&self, kind: Kind, bytes: u64) -> Option<(LinkBlocks, f64)> {
        self.shared.with(|core| core.world.link_blocks(kind, bytes))
    }

    /// Ends the traffic beside, and checks the invariants of a simulated fabric: bytes conserved,
    /// nothing left behind. Over a network, ends all processes of this pool, whose memory the node
    /// takes back. Operations that are under way end first. What waits for a lock of another
    /// thread, or for a time, has 2 s for that.
    ///
    /// # Errors
    /// [`Error::Violated`]; [`Error::NoAnswer`] when the node did not answer;
    /// [`Error::StillWaiting`] with what the pool was closed without.
    pub fn close(self) -> Result<(), Error> {
        self.shared.check()?;
        self.shared.settle();
        let (waits, closed) = self.shared.with(|core| (core.drain(), core.world.close()));
        closed?;
        let waited_ms = CLOSE_WAIT.as_millis() as u64;
        waits.map_or(Ok(()), |(operations, wait)| {
            Err(Error::StillWaiting { operations, wait, waited_ms })
        })
    }

    /// Lets what is under way go on until an operation ends or for a short rest; false when nothing
    /// is under way. For programs that ask now and then ([`crate::Pending::poll_result`]): on a
    /// fabric with a time of its own, it passes here and in waiting, and not between two questions.
    pub fn step(&self) -> bool {
        if self.shared.check().is_err() {
            return false;
        }
        self.shared.know();
        let step = self.shared.step();
        if let Step::Rest(rest) = step {
            self.shared.rest(rest);
        }
        !matches!(step, Step::Idle { .. })
    }

    /// Makes an operation known to the memory nodes of this program, over one of the same name. A
    /// node elsewhere has those that it was started with.
    pub fn register(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| core.offloads.add(name, offload));
    }

    /// The same, unless there is one of this name: for an operation that keeps something, which a
    /// second one would not know.
    pub fn register_once(&self, name: &str, offload: Arc<dyn Offload>) {
        self.shared.with(|core| {
            if core.offloads.get(name).is_none() {
                core.offloads.add(name, offload);
            }
        });
    }

    /// Runs the application's code until it is done, with what it awaits of this pool. Other
    /// machine threads may wait for the same pool: one of them drives it for all.
    ///
    /// # Panics
    /// When the code awaits something that is not of this pool, nothing of it is under way, and no
    /// other machine thread can go on; see [`Pool::try_run`].
    pub fn run<F: Future>(&self, code: F) -> F::Output {
        self.shared.run(code)
    }

    /// As [`Pool::run`], without the panic.
    ///
    /// # Errors
    /// [`Unfinished::Stalled`]: at once where no other machine thread has waited for the pool, and
    /// else after 10 s in which none of them could go on.
    pub fn try_run<F: Future>(&self, code: F) -> Result<F::Output, Unfinished> {
        self.shared.try_run(code, None)
    }

    /// As [`Pool::try_run`], and asks about every 20 ms whether to give up.
    ///
    /// # Errors
    /// As [`Pool::try_run`]; [`Unfinished::Interrupted`] once `is_interrupted` says so.
    pub fn run_attended<F: Future>(
        &self,
        code: F,
        mut is_interrupted: impl FnMut() -> bool,
    ) -> Result<F::Output, Unfinished> {
        self.shared.try_run(code, Some(Attention::new(&mut is_interrupted)))
    }

    /// A list of tasks that run together.
    #[must_use]
    pub fn tasks(&self) -> Tasks {
        Tasks::new(self.shared.clone())
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.url)
    }
}

fn step_of(core: &mut Core) -> Step {
    match core.progress() {
        Ok(None) => Step::Ended,
        Ok(Some(rest)) => Step::Rest(rest),
        Err(Stalled) => Step::Idle { ended: core.ends() },
    }
}
