//! Waiting: which machine thread drives the pool, when waiters are woken, and what is a stall.
//!
//! The scheme is leader and followers: one of the waiting machine threads has the seat and drives
//! the pool; the others are parked. The rules and their invariants are in `docs/internals/pool.md`.
//! The module knows nothing of pools, so that `model/tests/wait.rs` can check every interleaving of
//! it.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::task::Wake;
use std::time::Duration;

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, Ordering};

/// The seat is taken.
const DRIVEN: u32 = 1;
/// A parked waiter was called to the seat, and has not taken it yet.
const CALLED: u32 = 2;
/// One parked waiter.
const PARKED: u32 = 4;
/// How often a waiter that found nothing in flight rechecks while other threads may proceed.
const RECHECK: Duration = Duration::from_millis(10);
/// Number of consecutive rechecks, 10 s in all, without progress before a stall is reported.
const RECHECKS: u32 = 1_000;
/// How often a parked interruptible waiter polls for an interrupt.
const ATTEND: Duration = Duration::from_millis(20);

/// Result of one step of the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Operations completed, and their waiters were woken.
    Ended,
    /// Nothing completes before this much of the machine's time has passed.
    Rest(Duration),
    /// Nothing is in flight.
    Idle {
        /// Number of operations completed since the pool was opened; tells whether any completed
        /// between two steps.
        ended: u64,
    },
}

/// The reason why a waiter polls for its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// It begins, was woken, or has made a step.
    Woken,
    /// Nothing is in flight: every result must be polled, whether or not the waiter was woken.
    Idle,
}

/// What a machine thread waits for.
pub(crate) trait Attempt {
    /// Type of the result.
    type Output;

    /// True if a poll runs application code, which may take long and may itself wait. The seat is
    /// free meanwhile. Such a waiter polls only after it was woken.
    const RUNS_CODE: bool;

    /// Returns the result, if it is there. If code is run, a later completion wakes the waiter.
    fn poll(&mut self, waiter: &Arc<Waiter>, why: Why) -> Option<Self::Output>;

    /// As `poll`, before the waiter parks: a later completion wakes the waiter in any case.
    fn poll_to_park(&mut self, waiter: &Arc<Waiter>) -> Option<Self::Output>;

    /// Lets the pool make a step, and wakes the waiters of what completed.
    fn step(&mut self) -> Step;

    /// Lets the machine thread rest.
    fn rest(&mut self, most: Duration);

    /// True if the wait is interruptible.
    fn attends(&self) -> bool {
        false
    }

    /// True if the caller interrupts the wait.
    fn is_interrupted(&mut self) -> bool {
        false
    }
}

/// The reason why a wait ended without a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unfinished {
    /// Nothing of the pool is in flight, and no other thread that waits for the pool can proceed.
    #[error("the code waits for something that is not of this pool")]
    Stalled,
    /// The caller interrupted the wait.
    #[error("the wait was interrupted")]
    Interrupted,
}

/// The parking place of one machine thread.
#[derive(Debug, Default)]
pub(crate) struct Waiter {
    woken: AtomicBool,
    parking: Mutex<Parking>,
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Parking {
    is_parked: bool,
    /// True if the waiter was called to the seat.
    is_called: bool,
}

impl Waiter {
    /// As [`Waiter::ring`], but called by the waiting machine thread itself.
    pub(crate) fn mark(&self) {
        self.woken.store(true, Ordering::Release);
    }

    /// Wakes the waiter, because its result may be there.
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

    /// Parks until woken or called, or for at most `most`.
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

/// The seat of a pool's driver, and the queue of parked waiters.
#[derive(Debug, Default)]
pub(crate) struct Seat {
    /// [`DRIVEN`], [`CALLED`], and the number of parked waiters. They are one word, so that a
    /// thread that leaves the seat and a thread that parks cannot miss one another.
    word: AtomicU32,
    /// The parked waiters: as many as the word counts while the lock is free.
    parked: Mutex<VecDeque<Arc<Waiter>>>,
    /// Number of waiting machine threads that may still proceed.
    going: AtomicUsize,
    /// Number of the first machine thread that waited; 0 is none.
    first: AtomicUsize,
    /// True if other threads have waited too, so that one outside may wake a waiter.
    is_shared: AtomicBool,
}

impl Seat {
    /// Registers a machine thread of the pool by its unique number.
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

    /// Waits for a result, and drives the pool whenever no other thread does.
    ///
    /// # Errors
    /// [`Unfinished`].
    pub(crate) fn wait<A: Attempt>(
        &self,
        waiter: &Arc<Waiter>,
        attempt: &mut A,
    ) -> Result<A::Output, Unfinished> {
        let mut place = WaitingThread::enter(self, waiter);
        let mut why = Why::Woken;
        loop {
            if A::RUNS_CODE {
                place.leave_seat();
            }
            // The flag is cleared before the poll: what completes from here on sets it again.
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

    /// Frees the seat, and calls a parked waiter unless one was called already.
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

/// A waiter's next action.
enum Next<T> {
    /// Loop again.
    Again,
    /// Poll for the result.
    Poll(Why),
    /// Return the result.
    Done(T),
}

/// A machine thread in the wait. Whether it leaves by a result, an interrupt or a panic, it passes
/// the seat on.
struct WaitingThread<'s> {
    seat: &'s Seat,
    waiter: &'s Arc<Waiter>,
    drives: bool,
    /// True if it is counted among the threads that may proceed.
    is_going: bool,
    /// Number of completed operations when it found nothing in flight; it has polled since.
    idle: Option<u64>,
    /// Number of consecutive rechecks without progress.
    rechecks: u32,
}

impl<'s> WaitingThread<'s> {
    fn enter(seat: &'s Seat, waiter: &'s Arc<Waiter>) -> WaitingThread<'s> {
        seat.going.fetch_add(1, Ordering::AcqRel);
        WaitingThread { seat, waiter, drives: false, is_going: true, idle: None, rechecks: 0 }
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

    /// Parks until woken, called to the seat, or for at most `most`. It may have the seat
    /// afterwards.
    fn park_behind(&mut self, most: Option<Duration>) {
        let seat = self.seat;
        let lock = || seat.parked.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parked = lock();
        parked.push_back(Arc::clone(self.waiter));
        if seat.word.fetch_add(PARKED, Ordering::AcqRel) & DRIVEN == 0 {
            // No thread drives the pool, so none would call this waiter.
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
        // It was called. It takes the seat, or the thread that has taken it calls the next.
        seat.word.fetch_and(!CALLED, Ordering::AcqRel);
        self.take_seat();
    }

    /// Notes that something is in flight again.
    fn revive(&mut self) {
        (self.idle, self.rechecks) = (None, 0);
        if !std::mem::replace(&mut self.is_going, true) {
            self.seat.going.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Handles a stall: nothing is in flight, it has polled since, and only other threads can wake
    /// it.
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

impl Drop for WaitingThread<'_> {
    fn drop(&mut self) {
        self.leave_seat();
        if self.is_going {
            self.seat.going.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::check;

    fn seat(machine_threads: std::ops::Range<usize>) -> Seat {
        let seat = Seat::default();
        machine_threads.for_each(|thread| seat.know(thread));
        seat
    }

    fn word(seat: &Seat) -> u32 {
        seat.word.load(Ordering::Acquire)
    }

    fn going(seat: &Seat) -> usize {
        seat.going.load(Ordering::Acquire)
    }

    /// One recheck of a thread that was called, so that it does not park.
    fn stall(place: &mut WaitingThread<'_>) -> Result<(), Unfinished> {
        place.waiter.call();
        place.stall()
    }

    #[test]
    fn one_machine_thread_shares_the_pool_with_nobody_however_often_it_waits() {
        check(|| {
            let seat = Seat::default();
            for (machine_thread, is_shared) in [(7, false), (7, false), (9, true), (7, true)] {
                seat.know(machine_thread);
                assert_eq!(seat.is_shared.load(Ordering::Relaxed), is_shared);
            }
        });
    }

    #[test]
    fn a_thread_that_only_others_can_wake_is_told_of_a_stall_after_all_rechecks() {
        check(|| {
            let (seat, waiter) = (seat(1..3), Arc::default());
            let mut place = WaitingThread::enter(&seat, &waiter);
            assert!(place.take_seat());
            place.rechecks = RECHECKS - 2;
            for rechecks in [RECHECKS - 1, RECHECKS] {
                assert_eq!(stall(&mut place), Ok(()));
                assert_eq!((place.rechecks, going(&seat), word(&seat)), (rechecks, 0, 0));
            }
            assert_eq!(stall(&mut place), Err(Unfinished::Stalled));
            drop(place);
            assert_eq!((going(&seat), word(&seat)), (0, 0));
        });
    }

    #[test]
    fn nobody_is_told_of_a_stall_while_another_thread_may_proceed() {
        check(|| {
            let (seat, waiters) = (seat(1..3), [Arc::default(), Arc::default()]);
            let (mut place, other) = (
                WaitingThread::enter(&seat, &waiters[0]),
                WaitingThread::enter(&seat, &waiters[1]),
            );
            for rechecks in [RECHECKS, RECHECKS + 1] {
                place.rechecks = rechecks;
                assert_eq!((stall(&mut place), place.rechecks), (Ok(()), 0));
            }
            drop(other);
            assert_eq!((stall(&mut place), place.rechecks), (Ok(()), 1));
        });
    }

    #[test]
    fn a_thread_that_was_woken_may_proceed_again() {
        check(|| {
            let (seat, waiter) = (seat(1..3), Arc::<Waiter>::default());
            let mut place = WaitingThread::enter(&seat, &waiter);
            assert_eq!((stall(&mut place), going(&seat)), (Ok(()), 0));
            place.idle = Some(5);
            waiter.mark();
            assert_eq!((place.stall(), going(&seat)), (Ok(()), 1));
            assert_eq!((place.idle, place.rechecks), (None, 0));
            place.revive();
            assert_eq!(going(&seat), 1, "it is counted once");
            assert!(waiter.take_woken() && !waiter.take_woken() && !waiter.is_woken());
        });
    }

    #[test]
    fn who_leaves_the_seat_calls_one_parked_thread_and_no_second() {
        check(|| {
            let (seat, waiter) = (Seat::default(), Arc::<Waiter>::default());
            assert!(seat.take() && !seat.take());
            seat.free();
            assert_eq!(word(&seat), 0, "nobody is parked");
            assert!(seat.take());
            for _ in 0..2 {
                seat.parked.lock().expect("no panic").push_back(Arc::clone(&waiter));
                seat.word.fetch_add(PARKED, Ordering::AcqRel);
            }
            seat.free();
            assert_eq!(word(&seat), CALLED | PARKED);
            assert!(waiter.parking.lock().expect("no panic").is_called);
            assert!(seat.take(), "the seat is free until the called thread takes it");
            seat.free();
            assert_eq!(word(&seat), CALLED | PARKED, "one was called already");
            assert_eq!(seat.parked.lock().expect("no panic").len(), 1);
        });
    }

    /// A parked thread was woken, and left the queue before it could be called.
    #[test]
    fn a_call_that_finds_nobody_is_taken_back() {
        check(|| {
            let seat = Seat::default();
            assert!(seat.take());
            seat.word.fetch_or(CALLED, Ordering::AcqRel);
            seat.call();
            assert_eq!(word(&seat), DRIVEN);
        });
    }

    #[test]
    fn nobody_parks_where_no_thread_drives_and_whoever_was_woken_leaves_the_queue() {
        check(|| {
            let (seat, waiter) = (Seat::default(), Arc::<Waiter>::default());
            let mut place = WaitingThread::enter(&seat, &waiter);
            place.park_behind(None);
            assert!(!place.drives);
            assert_eq!((word(&seat), seat.parked.lock().expect("no panic").len()), (0, 0));
            assert!(seat.take());
            waiter.ring();
            place.park_behind(None);
            assert_eq!((word(&seat), seat.parked.lock().expect("no panic").len()), (DRIVEN, 0));
        });
    }
}
