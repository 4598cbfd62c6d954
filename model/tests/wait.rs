//! The rules of waiting, in every order in which machine threads may go on: `src/wait.rs` as it
//! is, on loom's primitives, over a pool that is a counter.

mod sync {
    /// The tests at the foot of `wait.rs` run here, too.
    pub(crate) use loom::model as check;
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
    pub(crate) use loom::sync::{Condvar, Mutex};
}

#[path = "../../crates/pool/src/wait.rs"]
mod wait;

use std::sync::Arc;
use std::time::Duration;

use loom::sync::Mutex;
use loom::thread;
use wait::{Attempt, Seat, Step, Unfinished, Waiter, Why};

/// Operations under way end one a step, in their order, by whoever makes the step.
#[derive(Default)]
struct Pool {
    seat: Seat,
    core: Mutex<Core>,
}

#[derive(Default)]
struct Core {
    under_way: Vec<usize>,
    /// By the operation: who waits for it, and whether it ended.
    operations: Vec<(Option<Arc<Waiter>>, bool)>,
    ends: u64,
    /// The driver was told once to rest before the next operation ends.
    rested: bool,
}

impl Pool {
    fn submit(&self) -> usize {
        let mut core = self.core.lock().unwrap();
        let id = core.operations.len();
        core.operations.push((None, false));
        core.under_way.push(id);
        id
    }

    fn has_ended(&self, id: usize, waiter: Option<&Arc<Waiter>>) -> bool {
        let mut core = self.core.lock().unwrap();
        let operation = &mut core.operations[id];
        if let Some(waiter) = waiter {
            operation.0 = Some(Arc::clone(waiter));
        }
        operation.1
    }

    /// As the pool does it: what ended is marked under the lock, and told after it.
    fn step(&self) -> Step {
        let mut core = self.core.lock().unwrap();
        if core.under_way.is_empty() {
            return Step::Idle { ended: core.ends };
        }
        if !std::mem::replace(&mut core.rested, true) {
            return Step::Rest(Duration::ZERO);
        }
        core.rested = false;
        let id = core.under_way.remove(0);
        core.ends += 1;
        core.operations[id].1 = true;
        let waiter = core.operations[id].0.take();
        drop(core);
        if let Some(waiter) = waiter {
            waiter.ring();
        }
        Step::Ended
    }
}

/// Several operations one after the other, each submitted when the one before has ended, as
/// `unlock` and every operation of a store is.
struct Composed<'p> {
    pool: &'p Pool,
    left: usize,
    open: Option<usize>,
    /// The caller gives up after so many questions.
    patience: Option<usize>,
}

impl<'p> Composed<'p> {
    fn new(pool: &'p Pool, operations: usize) -> Composed<'p> {
        Composed { pool, left: operations, open: None, patience: None }
    }
}

impl Attempt for Composed<'_> {
    type Output = ();

    const RUNS_CODE: bool = true;

    fn poll(&mut self, waiter: &Arc<Waiter>, _: Why) -> Option<()> {
        loop {
            if let Some(open) = self.open {
                if !self.pool.has_ended(open, Some(waiter)) {
                    return None;
                }
                self.open = None;
            }
            if self.left == 0 {
                return Some(());
            }
            self.left -= 1;
            self.open = Some(self.pool.submit());
        }
    }

    fn poll_to_park(&mut self, _: &Arc<Waiter>) -> Option<()> {
        None
    }

    fn step(&mut self) -> Step {
        self.pool.step()
    }

    fn rest(&mut self, _: Duration) {}

    fn is_interrupted(&mut self) -> bool {
        match &mut self.patience {
            Some(0) => true,
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }
}

/// One operation that was submitted before it is waited for.
struct Plain<'p>(&'p Pool, usize);

impl Attempt for Plain<'_> {
    type Output = ();

    const RUNS_CODE: bool = false;

    fn poll(&mut self, _: &Arc<Waiter>, _: Why) -> Option<()> {
        self.0.has_ended(self.1, None).then_some(())
    }

    fn poll_to_park(&mut self, waiter: &Arc<Waiter>) -> Option<()> {
        self.0.has_ended(self.1, Some(waiter)).then_some(())
    }

    fn step(&mut self) -> Step {
        self.0.step()
    }

    fn rest(&mut self, _: Duration) {}
}

/// What only another machine thread brings, by a waker.
struct Gift<'p> {
    pool: &'p Pool,
    gift: &'p Mutex<(bool, Option<Arc<Waiter>>)>,
}

impl Attempt for Gift<'_> {
    type Output = ();

    const RUNS_CODE: bool = true;

    fn poll(&mut self, waiter: &Arc<Waiter>, _: Why) -> Option<()> {
        let mut gift = self.gift.lock().unwrap();
        gift.1 = Some(Arc::clone(waiter));
        gift.0.then_some(())
    }

    fn poll_to_park(&mut self, _: &Arc<Waiter>) -> Option<()> {
        None
    }

    fn step(&mut self) -> Step {
        self.pool.step()
    }

    fn rest(&mut self, _: Duration) {}
}

fn wait<A: Attempt>(
    pool: &Pool,
    machine_thread: usize,
    attempt: &mut A,
) -> Result<A::Output, Unfinished> {
    pool.seat.know(machine_thread);
    pool.seat.wait(&Arc::default(), attempt)
}

/// Checks `model` in every order with so many switches away from a thread that could go on.
fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// No operation is lost, no thread is told of a stall, and no thread stays parked: loom fails where
/// all threads are.
#[test]
fn what_another_thread_ends_is_not_lost() {
    check(3, || {
        let pool = Arc::new(Pool::default());
        let other = Arc::clone(&pool);
        let composed = thread::spawn(move || wait(&other, 1, &mut Composed::new(&other, 2)));
        assert_eq!(wait(&pool, 2, &mut Composed::new(&pool, 2)), Ok(()));
        assert_eq!(composed.join().unwrap(), Ok(()));
    });
}

/// The driver's own operation ends first or last, and the parked one is called or woken.
#[test]
fn a_driver_hands_over_when_its_own_operation_ended() {
    check(3, || {
        let pool = Arc::new(Pool::default());
        let ids = [pool.submit(), pool.submit()];
        let other = Arc::clone(&pool);
        let plain = thread::spawn(move || wait(&other, 1, &mut Plain(&other, ids[1])));
        assert_eq!(wait(&pool, 2, &mut Plain(&pool, ids[0])), Ok(()));
        assert_eq!(plain.join().unwrap(), Ok(()));
    });
}

#[test]
fn three_threads_pass_the_seat_on() {
    check(2, || {
        let pool = Arc::new(Pool::default());
        let threads: Vec<_> = (1..3)
            .map(|number| {
                let pool = Arc::clone(&pool);
                thread::spawn(move || {
                    let id = pool.submit();
                    wait(&pool, number, &mut Plain(&pool, id))
                })
            })
            .collect();
        assert_eq!(wait(&pool, 3, &mut Composed::new(&pool, 1)), Ok(()));
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Ok(()));
        }
    });
}

/// One that drives, or is parked, or was just called, goes away without a result.
#[test]
fn a_waiter_that_gives_up_leaves_the_seat() {
    for patience in 0..3 {
        check(3, move || {
            let pool = Arc::new(Pool::default());
            let other = Arc::clone(&pool);
            let leaves = thread::spawn(move || {
                let mut composed = Composed::new(&other, 2);
                composed.patience = Some(patience);
                wait(&other, 1, &mut composed)
            });
            assert_eq!(wait(&pool, 2, &mut Composed::new(&pool, 2)), Ok(()));
            let left = leaves.join().unwrap();
            assert!(matches!(left, Ok(()) | Err(Unfinished::Interrupted)), "{left:?}");
        });
    }
}

/// What a thread waits for while nothing is under way comes from another that waits for the pool.
#[test]
fn who_waits_for_another_thread_is_woken_by_it() {
    check(3, || {
        let pool = Arc::new(Pool::default());
        let gift = Arc::new(Mutex::new((false, None::<Arc<Waiter>>)));
        pool.seat.know(1);
        pool.seat.know(2);
        let (other, given) = (Arc::clone(&pool), Arc::clone(&gift));
        let gives = thread::spawn(move || {
            wait(&other, 1, &mut Composed::new(&other, 1))?;
            let mut gift = given.lock().unwrap();
            gift.0 = true;
            let waiter = gift.1.take();
            drop(gift);
            if let Some(waiter) = waiter {
                waiter.ring();
            }
            Ok::<(), Unfinished>(())
        });
        assert_eq!(wait(&pool, 2, &mut Gift { pool: &pool, gift: &gift }), Ok(()));
        assert_eq!(gives.join().unwrap(), Ok(()));
    });
}

#[test]
fn who_is_alone_and_waits_for_nothing_is_told() {
    check(1, || {
        let pool = Pool::default();
        let gift = Mutex::new((false, None));
        assert_eq!(wait(&pool, 1, &mut Composed::new(&pool, 2)), Ok(()));
        let stalled = wait(&pool, 1, &mut Gift { pool: &pool, gift: &gift });
        assert_eq!(stalled, Err(Unfinished::Stalled));
    });
}
