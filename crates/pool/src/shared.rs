//! A pool's state, shared by all that use it: its lock, who drives it, and how the machine rests.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use crate::backend::{End, Network};
use crate::core::{Core, Stalled};
use crate::error::Error;
use crate::notify::{Current, Notify, TaskKey};
use crate::wait::{Attempt, Seat, Step, Unfinished, Waiter, Why};

/// Shortest rest for which the machine's thread is put to sleep: below it others are let go first.
const SLEEP_MIN: Duration = Duration::from_micros(20);

/// How often a network is looked after while no thread of the machine waits for it.
const TEND_EVERY: Duration = Duration::from_millis(10);

/// How often a machine thread goes on without rest before it lets others to the pool.
const PASSES_EACH_YIELD: u32 = 64;

thread_local! {
    static PASSES: Cell<u32> = const { Cell::new(0) };
    static WAITER: RefCell<Option<Arc<Waiter>>> = const { RefCell::new(None) };
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// A number of this machine thread that no other has while it lives.
pub(crate) fn machine_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Calls `wait` with this machine thread's waiter; a wait inside of a wait has one of its own.
pub(crate) fn with_waiter<R>(wait: impl FnOnce(&Arc<Waiter>) -> R) -> R {
    let waiter = WAITER.take().unwrap_or_default();
    let result = wait(&waiter);
    WAITER.set(Some(waiter));
    result
}

/// A pool's state, shared by all that use it.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

/// What ends with its last user, in that user's thread.
struct State {
    core: Arc<Mutex<Core>>,
    /// Who of the machine threads that wait drives the pool.
    seat: Seat,
    /// Where the memory is on another machine: a fork may not use the pool then.
    network: Option<Arc<dyn Network>>,
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.is_forked() {
            // Nobody is left to hear of an error.
            let _ = locked(&self.core).leave(End::Dropped);
        }
    }
}

impl State {
    #[inline]
    fn is_forked(&self) -> bool {
        self.network.as_ref().is_some_and(|network| !network.is_here())
    }
}

#[inline]
fn locked(core: &Mutex<Core>) -> MutexGuard<'_, Core> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Shares a pool's state, and has it tended where its memory is on another machine.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(crate) fn new(core: Core) -> io::Result<Shared> {
        let network = core.facts.network.clone();
        let core = Arc::new(Mutex::new(core));
        let shared = Shared(Arc::new(State { core, seat: Seat::default(), network }));
        if shared.0.network.is_some() {
            shared.tend()?;
        }
        Ok(shared)
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
    fn tend(&self) -> io::Result<()> {
        let core = Arc::downgrade(&self.0.core);
        // Not the state: the last user must not find that it is this thread.
        let tend = move || {
            while let Some(core) = Weak::upgrade(&core) {
                locked(&core).tend();
                drop(core);
                std::thread::sleep(TEND_EVERY);
            }
        };
        std::thread::Builder::new().name("ethermem-tend".to_owned()).spawn(tend).map(drop)
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

    /// Goes on until nothing is under way, for so long at most.
    pub(crate) fn settle(&self, most: Duration) {
        let began = Instant::now();
        while began.elapsed() < most {
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
            match &self.0.network {
                Some(network) => network.sleep(rest),
                None => std::thread::sleep(rest),
            }
        }
    }
}

fn step_of(core: &mut Core) -> Step {
    match core.progress() {
        Ok(None) => Step::Ended,
        Ok(Some(rest)) => Step::Rest(rest),
        Err(Stalled) => Step::Idle { ended: core.ends() },
    }
}
