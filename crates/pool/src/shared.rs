//! A pool's state, shared by all its users: its lock, its driver, and how the machine thread rests.

use std::cell::{Cell, RefCell};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

use crate::backend::{End, Network};
use crate::core::{Core, Stalled};
use crate::error::Error;
use crate::notify::{Current, Notify, TaskKey};
use crate::wait::{Attempt, Seat, Step, Unfinished, Waiter, Why};

/// Shortest rest for which the machine thread sleeps. For a shorter one it yields.
const SLEEP_MIN: Duration = Duration::from_micros(20);

/// Number of steps without rest after which a machine thread lets others reach the pool.
const PASSES_EACH_YIELD: u32 = 64;

thread_local! {
    static PASSES: Cell<u32> = const { Cell::new(0) };
    static WAITER: RefCell<Option<Arc<Waiter>>> = const { RefCell::new(None) };
    static HERE: Cell<u8> = const { Cell::new(0) };
}

/// A number unique to this machine thread as long as it lives.
pub(crate) fn machine_thread() -> usize {
    HERE.with(|here| std::ptr::from_ref(here).addr())
}

/// Calls `wait` with this machine thread's waiter. A nested wait gets a waiter of its own.
pub(crate) fn with_waiter<R>(wait: impl FnOnce(&Arc<Waiter>) -> R) -> R {
    let waiter = WAITER.take().unwrap_or_default();
    let result = wait(&waiter);
    WAITER.set(Some(waiter));
    result
}

/// A reference to a pool's state, shared by all its users.
#[derive(Clone)]
pub(crate) struct Shared(Arc<State>);

/// The state, dropped with its last user, in that user's thread.
struct State {
    core: Arc<Mutex<Core>>,
    /// The seat decides which of the waiting machine threads drives the pool.
    seat: Seat,
    /// Present where the memory is on another machine; a fork must not use such a pool.
    network: Option<Arc<dyn Network>>,
}

impl Drop for State {
    fn drop(&mut self) {
        if !self.is_forked() {
            // An error has no recipient any more.
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
    /// Wraps a pool's state, and starts its background thread where its memory is on another
    /// machine.
    ///
    /// # Errors
    /// When the background thread cannot be started.
    pub(crate) fn new(core: Core) -> io::Result<Shared> {
        let network = core.facts.network.clone();
        let core = Arc::new(Mutex::new(core));
        let shared = Shared(Arc::new(State { core, seat: Seat::default(), network }));
        if shared.0.network.is_some() {
            shared.tend()?;
        }
        Ok(shared)
    }

    /// Checks that the pool may be used here, before anything begins.
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.0.is_forked() { Err(Error::Forked) } else { Ok(()) }
    }

    /// Starts a thread that tends the network until the pool's last user is gone.
    fn tend(&self) -> io::Result<()> {
        let core = Arc::downgrade(&self.0.core);
        // The thread must not hold the state: the last user must not be this thread.
        let tend = move || {
            let here = std::thread::current();
            while let Some(core) = Weak::upgrade(&core) {
                let rest = locked(&core).tend(&here);
                drop(core);
                std::thread::park_timeout(rest);
            }
        };
        std::thread::Builder::new().name("ethermem-tend".to_owned()).spawn(tend).map(drop)
    }

    /// Calls `act` on the pool. Waiters are notified after its lock is released.
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

    /// Locks the pool in a fork. A thread that held the lock at the time of the fork exists only in
    /// the parent, and never releases it here.
    #[cold]
    fn lock_copy(&self) -> MutexGuard<'_, Core> {
        match self.0.core.try_lock() {
            Ok(core) => core,
            Err(TryLockError::Poisoned(core)) => core.into_inner(),
            Err(TryLockError::WouldBlock) => panic!("{}", Error::Forked),
        }
    }

    /// Address of the pool's state, which identifies a pool.
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

    /// Waits until `attempt` succeeds; [`Seat`] has the rules.
    pub(crate) fn wait<A: Attempt>(&self, attempt: &mut A) -> Result<A::Output, Unfinished> {
        with_waiter(|waiter| {
            if self.0.is_forked() {
                // The thread that held the seat exists only in the parent.
                return attempt.poll(waiter, Why::Idle).ok_or(Unfinished::Stalled);
            }
            self.know();
            self.0.seat.wait(waiter, attempt)
        })
    }

    /// Registers this machine thread as one that may wake others.
    pub(crate) fn know(&self) {
        self.0.seat.know(machine_thread());
    }

    /// Runs until an operation completes or the machine may rest, and notifies waiters.
    pub(crate) fn step(&self) -> Step {
        self.with(step_of)
    }

    /// As [`Shared::step`], and returns the waiters to notify in `told`, which must be empty.
    pub(crate) fn step_telling(&self, told: &mut Vec<Notify>) -> Step {
        let mut core = self.lock();
        let step = step_of(&mut core);
        core.swap_told(told);
        step
    }

    /// Runs until nothing is in flight, for at most `most`.
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

    /// Lets the machine thread rest for at most `rest`.
    pub(crate) fn rest(&self, rest: Duration) {
        if rest.is_zero() {
            // Yielding is rare: on a busy machine other threads keep the CPU for long.
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
