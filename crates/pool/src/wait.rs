//! Waiting: which machine thread drives the pool, who is woken, and when nobody can go on.
//!
//! Leader and followers: of all machine threads that wait, one has the seat and drives the pool;
//! the others are parked. The rules and their invariants are in `docs/internals/pool.md`. The
//! module knows nothing of pools, so that `model/tests/wait.rs` can check every interleaving of it.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Wake;
use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, Ordering};

/// The seat is taken.
const DRIVEN: u32 = 1;
/// A parked waiter was called to the seat, and has not come yet.
const CALLED: u32 = 2;
/// One parked waiter.
const PARKED: u32 = 4;
/// How often a waiter that found nothing under way looks again while others may go on.
const RECHECK: Duration = Duration::from_millis(10);
/// So many looks in a row, 10 s, must find that nobody goes on before a stall is told.
const RECHECKS: u32 = 1_000;
/// How often a parked waiter that can be interrupted asks whether it is.
const ATTEND: Duration = Duration::from_millis(20);

/// What one step of the pool was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Operations ended, and their waiters were woken.
    Ended,
    /// Nothing ends before so much of the machine's time has passed.
    Rest(Duration),
    /// Nothing is under way; so many operations have ended since the pool was opened.
    Idle {
        /// Tells whether any ended between two such steps.
        ended: u64,
    },
}

/// Why a waiter asks for its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It begins, was woken, or has made a step.
    Woken,
    /// Nothing is under way: whatever it waits for must be asked, woken or not.
    Idle,
}

/// What a machine thread waits for.
pub(crate) trait Attempt {
    /// What it gives.
    type Output;

    /// Whether asking runs code of the application, which may take long and may wait in turn: the
    /// seat is free meanwhile. Such a one asks only when it was woken.
    const RUNS_CODE: bool;

    /// The result, if it is there. What ends later wakes the waiter where code is run.
    fn poll(&mut self, waiter: &Arc<Waiter>, why: Why) -> Option<Self::Output>;

    /// As `poll`, and what ends later wakes the waiter in any case: before it is parked.
    fn poll_to_park(&mut self, waiter: &Arc<Waiter>) -> Option<Self::Output>;

    /// Has the pool make a step, and wakes whoever waits for what ended.
    fn step(&mut self) -> Step;

    /// Lets the machine thread rest.
    fn rest(&mut self, most: Duration);

    /// Whether it can be interrupted.
    fn attends(&self) -> bool {
        false
    }

    /// Whether it is interrupted.
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

/// Why a machine thread waits no more, without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// Nothing of the pool is under way, and no other thread that waits for the pool can go on.
    #[error("the code waits for something that is not of this pool")]
    Stalled,
    /// The caller interrupted it.
    #[error("the wait was interrupted")]
    Interrupted,
}

/// One machine thread's waiting, to be woken.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    woken: AtomicBool,
    parking: Mutex<Parking>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Parking {
    is_parked: bool,
    /// The seat may be free.
    is_called: bool,
}

impl Waiter {
    /// As [`Waiter::ring`], by the machine thread that waits.
    pub(crate) fn mark(&self) {
        self.woken.store(true, Ordering::Release);
    }

    /// Something that it waits for may be there.
    pub(crate) fn ring(&self) {
        self.mark();
        let parking = self.parking.lock().unwrap_or_else(PoisonError::into_inner);
        if parking.is_parked {
            self.bell.notify_one();
        }
    }

    fn call(&self) {
        let mut parking = self.parking.lock().unwrap_or_else(PoisonError::into_inner);
        parking.is_called = true;
        if parking.is_parked {
            self.bell.notify_one();
        }
    }

    fn is_woken(&self) -> bool {
        self.woken.load(Ordering::Acquire)
    }

    fn take_woken(&self) -> bool {
        self.is_woken() && self.woken.swap(false, Ordering::AcqRel)
    }

    /// Until it is woken or called, or for so long.
    fn park(&self, most: Option<Duration>) {
        let mut parking = self.parking.lock().unwrap_or_else(PoisonError::into_inner);
        parking.is_parked = true;
        while !self.is_woken() && !parking.is_called {
            let Some(most) = most else {
                parking = self.bell.wait(parking).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = self.bell.wait_timeout(parking, most);
            parking = waited.unwrap_or_else(PoisonError::into_inner).0;
            break;
        }
        parking.is_parked = false;
        parking.is_called = false;
    }
}

impl Wake for Waiter {
    fn wake(self: Arc<Waiter>) {
        self.ring();
    }

    fn wake_by_ref(self: &Arc<Waiter>) {
        self.ring();
    }
}

/// The seat of a pool's driver, and who waits for it.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// [`DRIVEN`], [`CALLED`], and how many are parked: one word, so that who leaves the seat and
    /// who parks cannot miss one another.
    word: AtomicU32,
    /// As many as the word says while the lock is free.
    parked: Mutex<VecDeque<Arc<Waiter>>>,
    /// Machine threads inside that may still go on.
    going: AtomicUsize,
    /// The first machine thread that waited; 0 is none.
    first: AtomicUsize,
    /// Others have, too: somebody outside may wake who waits.
    is_shared: AtomicBool,
}

impl Seat {
    /// A machine thread, by a number that no other has, uses the pool.
    pub(crate) fn know(&self, machine_thread: usize) {
        let known = self.first.load(Ordering::Relaxed);
        if known == machine_thread {
            return;
        }
        if known != 0
            || self
                .first
                .compare_exchange(0, machine_thread, Ordering::Relaxed, Ordering::Relaxed)
                .is_err_and(|other| other != machine_thread)
        {
            self.is_shared.store(true, Ordering::Relaxed);
        }
    }

    /// Waits for a result, driving the pool whenever nobody else does.
    ///
    /// # Errors
    /// [`Unfinished`].
    pub(crate) fn wait<A: Attempt>(
        &self,
        waiter: &Arc<Waiter>,
        attempt: &mut A,
    ) -> Result<A::Output, Unfinished> {
        let mut place = Place::enter(self, waiter);
        let mut why = Why::Woken;
        loop {
            if A::RUNS_CODE {
                place.leave_seat();
            }
            // Before it asks: what ends from here on wakes it again.
            waiter.take_woken();
            if let Some(output) = attempt.poll(waiter, why) {
                return Ok(output);
            }
            why = loop {
                match place.go_on(attempt)? {
                    Next::Again => {}
                    Next::Poll(why) => break why,
                    Next::Done(output) => return Ok(output),
                }
            };
        }
    }

    fn take(&self) -> bool {
        self.word.fetch_or(DRIVEN, Ordering::AcqRel) & DRIVEN == 0
    }

    /// Frees the seat, and calls one of those that are parked unless one was called already.
    fn free(&self) {
        let mut word = self.word.load(Ordering::Relaxed);
        let calls = loop {
            let calls = word >= PARKED && word & CALLED == 0;
            let next = word & !DRIVEN | if calls { CALLED } else { 0 };
            match self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => break calls,
                Err(other) => word = other,
            }
        };
        if calls {
            self.call();
        }
    }

    fn call(&self) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let called = parked.pop_front();
        match &called {
            Some(_) => self.word.fetch_sub(PARKED, Ordering::AcqRel),
            // It was woken meanwhile, and looks for the seat by itself.
            None => self.word.fetch_and(!CALLED, Ordering::AcqRel),
        };
        drop(parked);
        if let Some(called) = called {
            called.call();
        }
    }
}

/// What a waiter does next.
enum Next<T> {
    /// It goes on.
    Again,
    /// It asks for its result.
    Poll(Why),
    /// It has it.
    Done(T),
}

/// A machine thread inside. However it leaves, by a result, an interrupt or a panic, it leaves the
/// seat to another.
struct Place<'s> {
    seat: &'s Seat,
    waiter: &'s Arc<Waiter>,
    drives: bool,
    /// It counts among those that may go on.
    is_going: bool,
    /// How many operations had ended when it found nothing under way; since then it has asked.
    idle: Option<u64>,
    /// So often in a row it has found that nobody goes on.
    rechecks: u32,
}

impl<'s> Place<'s> {
    fn enter(seat: &'s Seat, waiter: &'s Arc<Waiter>) -> Place<'s> {
        seat.going.fetch_add(1, Ordering::AcqRel);
        Place { seat, waiter, drives: false, is_going: true, idle: None, rechecks: 0 }
    }

    fn go_on<A: Attempt>(&mut self, attempt: &mut A) -> Result<Next<A::Output>, Unfinished> {
        if attempt.is_interrupted() {
            return Err(Unfinished::Interrupted);
        }
        if !self.drives && !self.take_seat() {
            if let Some(output) = attempt.poll_to_park(self.waiter) {
                return Ok(Next::Done(output));
            }
            self.park_behind(attempt.attends().then_some(ATTEND));
            return Ok(self.next::<A>());
        }
        match attempt.step() {
            Step::Ended => self.revive(),
            Step::Rest(most) => {
                self.revive();
                if !self.waiter.is_woken() {
                    attempt.rest(most);
                }
            }
            Step::Idle { ended } if self.idle == Some(ended) && !self.waiter.is_woken() => {
                self.stall()?;
                return Ok(Next::Poll(Why::Idle));
            }
            Step::Idle { ended } => {
                self.idle = Some(ended);
                return Ok(Next::Poll(Why::Idle));
            }
        }
        Ok(self.next::<A>())
    }

    fn next<A: Attempt>(&self) -> Next<A::Output> {
        if A::RUNS_CODE && !self.waiter.is_woken() { Next::Again } else { Next::Poll(Why::Woken) }
    }

    fn take_seat(&mut self) -> bool {
        self.drives = self.seat.take();
        self.drives
    }

    fn leave_seat(&mut self) {
        if std::mem::take(&mut self.drives) {
            self.seat.free();
        }
    }

    /// Until it is woken, or called to the seat, or for so long. It may have the seat then.
    fn park_behind(&mut self, most: Option<Duration>) {
        let seat = self.seat;
        let lock = || seat.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parked = lock();
        parked.push_back(Arc::clone(self.waiter));
        if seat.word.fetch_add(PARKED, Ordering::AcqRel) & DRIVEN == 0 {
            // Nobody would call it.
            parked.pop_back();
            seat.word.fetch_sub(PARKED, Ordering::AcqRel);
            return;
        }
        drop(parked);
        self.waiter.park(most);
        let mut parked = lock();
        if let Some(at) = parked.iter().position(|one| Arc::ptr_eq(one, self.waiter)) {
            parked.remove(at);
            seat.word.fetch_sub(PARKED, Ordering::AcqRel);
            return;
        }
        drop(parked);
        // It was called: it takes the seat, or who has taken it calls the next.
        seat.word.fetch_and(!CALLED, Ordering::AcqRel);
        self.take_seat();
    }

    /// Something is under way.
    fn revive(&mut self) {
        (self.idle, self.rechecks) = (None, 0);
        if !std::mem::replace(&mut self.is_going, true) {
            self.seat.going.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Nothing is under way, it has asked since, and it was not woken: only others can help it.
    fn stall(&mut self) -> Result<(), Unfinished> {
        if !self.seat.is_shared.load(Ordering::Relaxed) {
            return Err(Unfinished::Stalled);
        }
        self.leave_seat();
        if std::mem::take(&mut self.is_going) {
            self.seat.going.fetch_sub(1, Ordering::AcqRel);
        }
        self.waiter.park(Some(RECHECK));
        if self.waiter.is_woken() {
            self.revive();
            return Ok(());
        }
        let others_go_on = self.seat.going.load(Ordering::Acquire) > 0;
        self.rechecks = if others_go_on { 0 } else { self.rechecks + 1 };
        if self.rechecks > RECHECKS { Err(Unfinished::Stalled) } else { Ok(()) }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.leave_seat();
        if self.is_going {
            self.seat.going.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
