//! Tests of the pool over a backend whose operations complete when the test says so.

mod interrupts;
mod operations;
mod tasks;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::ThreadId;
use std::time::Duration;

use ethermem_units::Ps;

use crate::{
    Access, Address, Asker, Backend, Direct, End, Ended, Error, Facts, Lent, Network, Op, OpId,
    Opened, Outcome, Pending, Pool, Progress, Reply, Thread, Wait, Waited, WaitedId,
};

/// Number of rests without a completion after which a test has failed: some thread waits for ever.
const RESTS_MAX: u32 = 100_000;
/// Long enough that a test's threads do not take the processor from each other.
const REST: Duration = Duration::from_micros(50);

const NOW: Ps = Ps(42);

/// The backend, as its test sees it.
#[derive(Clone, Default)]
pub(crate) struct Stepped(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Every operation that began and takes time, in this order.
    begun: Vec<(OpId, Op)>,
    /// Of those, the ones in flight, by their index.
    open: Vec<usize>,
    /// Of those, the ones that complete at the next progress.
    due: Vec<usize>,
    rests: u32,
    /// Number of looks at each direct access; absent without a direct path.
    direct: Option<Vec<u32>>,
    /// Number of direct accesses that have completed, except for the first.
    direct_done: usize,
    /// Copies of a write's data that were asked for: the access, and up to which byte.
    copies: Vec<(WaitedId, usize)>,
    /// Number of their threads that have returned.
    direct_returned: usize,
    /// Machine threads that drove the pool.
    drivers: HashSet<ThreadId>,
    tended: Option<mpsc::Sender<()>>,
    end: Option<Error>,
}

/// A pool of three compute nodes and two memory nodes.
pub(crate) fn pool() -> (Pool, Stepped) {
    pool_with(Facts::new(3, 2))
}

fn pool_with(facts: Facts) -> (Pool, Stepped) {
    let stepped = Stepped::default();
    let backend = Box::new(stepped.clone());
    let pool = Pool::new(Opened { backend, facts }).expect("a pool without a thread");
    (pool, stepped)
}

/// The backend of such a pool.
pub(crate) fn opened() -> (Opened, Stepped) {
    let stepped = Stepped::default();
    (Opened { backend: Box::new(stepped.clone()), facts: Facts::new(3, 2) }, stepped)
}

impl Stepped {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The operation that began as number `index` completes at the next progress.
    pub(crate) fn end(&self, index: usize) {
        let mut state = self.state();
        let at = state.open.iter().position(|open| *open == index).expect("it is in flight");
        state.open.remove(at);
        state.due.push(index);
    }

    /// Places of all operations that began.
    fn places(&self) -> Vec<usize> {
        self.state().begun.iter().map(|(id, _)| id.place()).collect()
    }

    fn rests(&self) -> u32 {
        self.state().rests
    }
}

/// Begins an operation on no page.
fn sleep(thread: &Thread) -> Pending<()> {
    thread.sleep(Ps(1))
}

impl Backend for Stepped {
    fn now(&self) -> Ps {
        NOW
    }

    /// A fence and an allocation complete at once.
    fn begin(&mut self, id: OpId, _: Asker, op: Op) -> Option<Outcome> {
        match op {
            Op::Fence | Op::Flush => return Some(Ok(Reply::Done)),
            Op::Alloc { memory, .. } => {
                return Some(Ok(Reply::Address(Address::new(memory, 4096))));
            }
            _ => {}
        }
        let mut state = self.state();
        let index = state.begun.len();
        state.begun.push((id, op));
        state.open.push(index);
        None
    }

    fn progress(&mut self, ended: &mut Ended) -> Progress {
        let mut state = self.state();
        state.drivers.insert(std::thread::current().id());
        if state.due.is_empty() && state.open.is_empty() {
            return Progress::Idle;
        }
        if state.due.is_empty() {
            state.rests += 1;
            assert!(state.rests < RESTS_MAX, "a thread waits for ever");
            return Progress::Wait(REST);
        }
        for index in std::mem::take(&mut state.due) {
            let (id, op) = &state.begun[index];
            let reply = match op {
                Op::Read(segments) => {
                    let bytes = segments.iter().map(|segment| segment.bytes as usize).sum();
                    Reply::Bytes(vec![index as u8; bytes])
                }
                Op::Modify(..) => Reply::Word(index as u64),
                _ => Reply::Done,
            };
            ended.operations.push((*id, Ok(reply)));
        }
        Progress::Ended
    }

    fn waits(&self) -> Option<(usize, Wait)> {
        let open = self.state().open.len();
        (open > 0).then_some((open, Wait::Sleep))
    }

    /// An access of node 1 takes no time.
    fn at_once(&mut self, _: Asker, access: Access<'_>) -> Option<Result<u64, Error>> {
        match access {
            Access::Read(from, to) if from.memory() == 1 => {
                to.fill(9);
                Some(Ok(0))
            }
            Access::Modify(word, _) if word.memory() == 1 => Some(Ok(7)),
            _ => None,
        }
    }

    fn direct(&mut self) -> Option<&mut dyn Direct> {
        let has_direct = self.state().direct.is_some();
        if has_direct { Some(self) } else { None }
    }

    fn tend(&mut self) -> Duration {
        if let Some(tended) = &self.state().tended {
            // The test may have ended.
            let _ = tended.send(());
        }
        Duration::MAX
    }

    fn end(&mut self, _: End) -> Result<(), Error> {
        self.state().end.clone().map_or(Ok(()), Err)
    }
}

/// Three accesses by as many machine threads. A look at the first completes one of the others, once
/// that was looked at and the threads of those before it have returned. The first completes when
/// all others have returned.
impl Direct for Stepped {
    fn begin(&mut self, _: Asker, _: Waited<'_>) -> Option<WaitedId> {
        let mut state = self.state();
        let accesses = state.direct.as_mut()?;
        accesses.push(0);
        Some(WaitedId::new(accesses.len() - 1))
    }

    fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration> {
        let mut state = self.state();
        let state = &mut *state;
        if let Lent::Copy { to, .. } = lent {
            state.copies.push((id, to));
        }
        state.rests += 1;
        assert!(state.rests < RESTS_MAX, "a thread waits for ever");
        let looks = state.direct.as_mut().expect("the access was begun");
        looks[id.place()] += 1;
        let next = state.direct_returned + 1;
        let are_both_seen = [1, 2].iter().all(|at| looks.get(*at).is_some_and(|looks| *looks > 0));
        if id.place() == 0 && are_both_seen && next < 3 && state.direct_done < next {
            state.direct_done = next;
            ended.waited.push(WaitedId::new(next));
        }
        let has_ended = match id.place() {
            0 => state.direct_returned == 2,
            other => state.direct_done >= other,
        };
        if has_ended { Ok(Ok(())) } else { Err(REST) }
    }
}

/// A network on which nothing arrives by itself.
struct Quiet;

impl Network for Quiet {
    fn is_here(&self) -> bool {
        true
    }

    fn sleep(&self, most: Duration) {
        std::thread::sleep(most);
    }
}
