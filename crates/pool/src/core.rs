//! The operations of a pool: their order, their results, and their waiters.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use ethermem_offload::Offload;
use ethermem_units::Ps;
use slab::Slab;

use crate::address::{Address, ProcessId};
use crate::backend::{
    Access, Backend, End, Ended, Facts, Lent, Opened, Progress, Waited, WaitedId,
};
use crate::error::{Error, Wait};
use crate::notify::{Inbox, Notify};
use crate::operation::{Asker, Op, OpId, Outcome, Reply};
use crate::order::{Sequence, Touched, Tracker};

/// How often a network is tended while no machine thread waits for it.
const TEND_EVERY: Duration = Duration::from_millis(10);

/// How often it is tended while no operation begins.
const TEND_IDLE: Duration = Duration::from_millis(250);

/// Without an operation for so many times, a pool counts as idle.
const QUIET_TICKS: u32 = 2;

/// Index of a thread in the pool, from 0.
pub(crate) type ThreadId = usize;

/// The state of a pool; see [`crate::Pool`].
pub(crate) struct Core {
    backend: Box<dyn Backend>,
    pub(crate) facts: Facts,
    offloads: BTreeMap<String, Arc<dyn Offload>>,
    threads: Vec<Thread>,
    processes: u32,
    operations: Vec<Slot>,
    free: Vec<OpId>,
    /// Reused to avoid reallocation.
    ended: Ended,
    ready: Vec<OpId>,
    /// Waiters to notify once the pool's lock is released.
    told: Vec<Notify>,
    /// Machine threads parked until their access has completed.
    parked: Vec<(WaitedId, Notify)>,
    /// One inbox for each list of tasks.
    inboxes: Slab<Arc<Inbox>>,
    turns: (u16, u16),
    /// Number of operations that have completed.
    ends: u64,
    /// True if no operation began since the backend was last tended.
    is_quiet: bool,
    /// How often in succession the backend was tended and no operation had begun.
    quiet_ticks: u32,
    /// The thread that tends the backend, while it takes a long rest.
    tender: Option<std::thread::Thread>,
}

struct Thread {
    asker: Asker,
    tracker: Tracker,
}

enum Slot {
    Free,
    Open(Open),
    /// The result waits for its [`crate::Pending`].
    Ended(Outcome),
}

struct Open {
    thread: ThreadId,
    sequence: Sequence,
    touched: Touched,
    /// The operation, while an earlier one blocks it.
    held: Option<Box<Op>>,
    /// Waiter to notify when the operation completes.
    notify: Option<Notify>,
    /// The result was discarded in advance.
    forgotten: bool,
}

/// Result of submitting an operation.
pub(crate) enum Submitted {
    Ended(Outcome),
    Open(OpId),
}

impl Core {
    pub(crate) fn new(Opened { backend, facts }: Opened) -> Core {
        let built_in = ethermem_offload::built_in().into_iter();
        Core {
            backend,
            facts,
            offloads: built_in.map(|(name, offload)| (name.to_owned(), offload)).collect(),
            threads: Vec::new(),
            processes: 0,
            operations: Vec::new(),
            free: Vec::new(),
            ended: Ended::default(),
            ready: Vec::new(),
            told: Vec::new(),
            parked: Vec::new(),
            inboxes: Slab::new(),
            turns: (0, 0),
            ends: 0,
            is_quiet: false,
            quiet_ticks: 0,
            tender: None,
        }
    }

    pub(crate) fn new_process(&mut self) -> Result<ProcessId, Error> {
        self.processes += 1;
        self.backend.new_process(ProcessId(self.processes))
    }

    /// Lock word that the thread writes when it takes a lock.
    pub(crate) fn lock_word(&self, thread: ThreadId) -> u64 {
        self.facts.lock_words.word(self.threads[thread].asker.process, thread)
    }

    /// Lets the backend do periodic work although no thread waits, and returns for how long
    /// `tender`, the thread that does so, may rest. It is unparked if an operation begins before
    /// the end of a long rest.
    pub(crate) fn tend(&mut self, tender: &std::thread::Thread) -> Duration {
        let most = self.backend.tend();
        self.quiet_ticks = if self.is_quiet { self.quiet_ticks.saturating_add(1) } else { 0 };
        self.is_quiet = true;
        let rests = self.quiet_ticks >= QUIET_TICKS && most > TEND_EVERY;
        self.tender = rests.then(|| tender.clone());
        if rests { most.min(TEND_IDLE) } else { TEND_EVERY }
    }

    /// Ends a long rest of the thread that tends the backend.
    #[inline]
    fn ends_quiet(&mut self) {
        self.is_quiet = false;
        if let Some(tender) = self.tender.take() {
            tender.unpark();
        }
    }

    /// Does an access that takes no time, for a thread with nothing in flight.
    pub(crate) fn at_once(
        &mut self,
        thread: ThreadId,
        access: Access<'_>,
    ) -> Option<Result<u64, Error>> {
        let asker = self.idle(thread)?;
        self.backend.at_once(asker, access)
    }

    /// Begins an access whose caller waits by [`Core::look`], where the backend has the shorter
    /// path.
    pub(crate) fn begin_waited(
        &mut self,
        thread: ThreadId,
        access: Waited<'_>,
    ) -> Option<WaitedId> {
        let asker = self.idle(thread)?;
        self.backend.direct()?.begin(asker, access)
    }

    /// Makes progress on an access that a machine thread waits for.
    pub(crate) fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
    ) -> Result<Result<(), Error>, Duration> {
        let direct = self.backend.direct().expect("the access was begun by it");
        let looked = direct.look(id, lent, &mut self.ended);
        if looked.is_ok() && !self.parked.is_empty() {
            self.parked.retain(|(parked, _)| *parked != id);
        }
        self.settle_ended();
        looked
    }

    /// Registers `notify`, for when another machine thread completes the access.
    pub(crate) fn await_end(&mut self, id: WaitedId, notify: Notify) {
        self.parked.retain(|(parked, _)| *parked != id);
        self.parked.push((id, notify));
    }

    /// Number of operations that have completed.
    pub(crate) fn ends(&self) -> u64 {
        self.ends
    }

    /// Ends the backend.
    pub(crate) fn leave(&mut self, why: End) -> Result<(), Error> {
        self.backend.end(why)
    }

    /// Time since the pool was opened.
    pub(crate) fn now(&self) -> Ps {
        self.backend.now()
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.backend
    }

    pub(crate) fn register(&mut self, name: &str, offload: Arc<dyn Offload>) {
        self.offloads.insert(name.to_owned(), offload);
    }

    pub(crate) fn offload(&self, name: &str) -> Option<&Arc<dyn Offload>> {
        self.offloads.get(name)
    }

    /// The offload `name` at the node of `at`, if the nodes run in-process.
    ///
    /// # Errors
    /// [`Error::Unmapped`]; [`Error::NoSuchOffload`] where the nodes know no such name.
    pub(crate) fn offload_at(
        &self,
        name: &str,
        at: Address,
    ) -> Result<Option<Arc<dyn Offload>>, Error> {
        if at.memory() >= self.facts.memory_nodes || at == Address::NULL {
            return Err(Error::Unmapped { address: at, bytes: 0 });
        }
        let found = self.offload(name);
        if found.is_none() && self.facts.runs_offloads {
            let allowed = self.offloads.keys().cloned().collect::<Vec<_>>().join(", ");
            return Err(Error::NoSuchOffload { name: name.to_owned(), allowed });
        }
        Ok(found.cloned())
    }

    /// Checks that compute node `node` exists.
    pub(crate) fn check_compute(&self, node: u16) -> Result<(), Error> {
        check_node(node, self.facts.compute_nodes, "compute")
    }

    /// Checks that memory node `node` exists.
    pub(crate) fn check_memory(&self, node: u16) -> Result<(), Error> {
        check_node(node, self.facts.memory_nodes, "memory")
    }

    pub(crate) fn new_thread(&mut self, asker: Asker) -> ThreadId {
        self.threads.push(Thread { asker, tracker: Tracker::default() });
        self.threads.len() - 1
    }

    /// The thread's identity, if it has nothing in flight.
    pub(crate) fn idle(&self, thread: ThreadId) -> Option<Asker> {
        let Thread { asker, tracker } = &self.threads[thread];
        tracker.is_idle().then_some(*asker)
    }

    /// The next compute node in round-robin order.
    pub(crate) fn next_compute(&mut self) -> u16 {
        next(&mut self.turns.0, self.facts.compute_nodes)
    }

    /// The next memory node in round-robin order.
    pub(crate) fn next_memory(&mut self) -> u16 {
        next(&mut self.turns.1, self.facts.memory_nodes)
    }

    #[inline]
    pub(crate) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    pub(crate) fn take_told(&mut self) -> Vec<Notify> {
        std::mem::take(&mut self.told)
    }

    /// As [`Core::take_told`], into a list that is empty.
    pub(crate) fn swap_told(&mut self, told: &mut Vec<Notify>) {
        std::mem::swap(&mut self.told, told);
    }

    /// Registers a list of tasks and returns its index.
    pub(crate) fn new_list(&mut self, inbox: Arc<Inbox>) -> u32 {
        self.inboxes.insert(inbox) as u32
    }

    pub(crate) fn end_list(&mut self, list: u32) {
        self.inboxes.remove(list as usize);
    }

    pub(crate) fn inbox(&self, list: u32) -> Option<Arc<Inbox>> {
        self.inboxes.get(list as usize).cloned()
    }

    /// Begins an operation, or queues it behind others of its thread. `notify` is notified when it
    /// completes, unless it completes at once.
    pub(crate) fn submit(&mut self, thread: ThreadId, op: Op, notify: Option<Notify>) -> Submitted {
        let touched = Touched::by(&op);
        let id = self.name();
        let Thread { asker, tracker } = &mut self.threads[thread];
        let known = |other: OpId| match &self.operations[other.place()] {
            Slot::Open(open) => &open.touched,
            Slot::Free | Slot::Ended(_) => unreachable!("what is under way is open"),
        };
        let (sequence, held) = if tracker.is_idle() {
            if let Some(outcome) = self.backend.begin(id, *asker, op) {
                self.free.push(id);
                return Submitted::Ended(outcome);
            }
            (tracker.begin(id, &touched, known).0, None)
        } else {
            let (sequence, goes) = tracker.begin(id, &touched, known);
            if goes {
                if let Some(outcome) = self.backend.begin(id, *asker, op) {
                    tracker.end(sequence, &touched, &mut self.ready);
                    self.free.push(id);
                    self.begin_ready(thread);
                    return Submitted::Ended(outcome);
                }
                (sequence, None)
            } else {
                (sequence, Some(Box::new(op)))
            }
        };
        self.ends_quiet();
        self.open(id, Open { thread, sequence, touched, held, notify, forgotten: false })
    }

    /// An operation that completes when all earlier ones of its thread have, and the memory nodes
    /// have what they wrote.
    pub(crate) fn release(&mut self, thread: ThreadId, notify: Option<Notify>) -> Submitted {
        match (self.idle(thread).is_some(), self.facts.keeps_writes) {
            (true, false) => Submitted::Ended(Ok(Reply::Done)),
            (true, true) => self.submit(thread, Op::Flush, notify),
            (false, keeps) => self.barrier(thread, keeps.then(|| Box::new(Op::Flush)), notify),
        }
    }

    /// As [`Core::release`], followed by a fence at the memory nodes.
    pub(crate) fn fence(&mut self, thread: ThreadId, notify: Option<Notify>) -> Submitted {
        if self.idle(thread).is_some() {
            return self.submit(thread, Op::Fence, notify);
        }
        self.barrier(thread, Some(Box::new(Op::Fence)), notify)
    }

    fn barrier(
        &mut self,
        thread: ThreadId,
        held: Option<Box<Op>>,
        notify: Option<Notify>,
    ) -> Submitted {
        let id = self.name();
        let (sequence, _) = self.threads[thread].tracker.barrier(id);
        let touched = Touched::default();
        self.open(id, Open { thread, sequence, touched, held, notify, forgotten: false })
    }

    fn name(&mut self) -> OpId {
        self.free.pop().unwrap_or_else(|| {
            self.operations.push(Slot::Free);
            OpId::new(self.operations.len() - 1)
        })
    }

    fn open(&mut self, id: OpId, open: Open) -> Submitted {
        self.operations[id.place()] = Slot::Open(open);
        Submitted::Open(id)
    }

    /// Takes the result of an operation. If it is not there yet, `notify` is notified when it is.
    pub(crate) fn take(
        &mut self,
        id: OpId,
        notify: impl FnOnce(Option<Notify>) -> Option<Notify>,
    ) -> Option<Outcome> {
        match &mut self.operations[id.place()] {
            Slot::Open(open) => {
                open.notify = notify(open.notify.take());
                None
            }
            slot @ Slot::Ended(_) => {
                let Slot::Ended(outcome) = std::mem::replace(slot, Slot::Free) else {
                    unreachable!("it is")
                };
                self.free.push(id);
                Some(outcome)
            }
            Slot::Free => unreachable!("a result is taken once"),
        }
    }

    /// Discards the result of an operation in advance.
    pub(crate) fn forget(&mut self, id: OpId) {
        match &mut self.operations[id.place()] {
            Slot::Open(open) => {
                open.forgotten = true;
                open.notify = None;
            }
            slot => {
                *slot = Slot::Free;
                self.free.push(id);
            }
        }
    }

    /// Runs until an operation completes. `Some` is how long the machine may rest first. Fails when
    /// nothing is in flight, so that nothing can complete.
    pub(crate) fn progress(&mut self) -> Result<Option<Duration>, Stalled> {
        let progress = self.backend.progress(&mut self.ended);
        self.settle_ended();
        match progress {
            Progress::Ended => Ok(None),
            Progress::Wait(rest) => Ok(Some(rest)),
            Progress::Idle => Err(Stalled),
        }
    }

    /// Runs, with no other machine thread at the pool, until all that is in flight waits for other
    /// threads or for a time.
    pub(crate) fn drain(&mut self) -> Option<(usize, Wait)> {
        while let Ok(rest) = self.progress() {
            if let Some(waits) = self.backend.waits() {
                return Some(waits);
            }
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                std::thread::sleep(rest);
            }
        }
        None
    }

    /// Records what the backend reports as completed.
    fn settle_ended(&mut self) {
        if !self.ended.operations.is_empty() {
            let mut operations = std::mem::take(&mut self.ended.operations);
            for (id, outcome) in operations.drain(..) {
                self.settle(id, outcome);
            }
            self.ended.operations = operations;
        }
        if !self.ended.waited.is_empty() {
            let waited = &self.ended.waited;
            let due = self.parked.extract_if(.., |(id, _)| waited.contains(id));
            self.told.extend(due.map(|(_, notify)| notify));
            self.ended.waited.clear();
        }
    }

    fn settle(&mut self, id: OpId, outcome: Outcome) {
        let thread = self.end(id, outcome);
        if !self.ready.is_empty() {
            self.begin_ready(thread);
        }
    }

    /// Begins operations that became ready. One that completes at once may make others of the
    /// thread ready; they are appended to the list, which is why this is a loop.
    fn begin_ready(&mut self, thread: ThreadId) {
        let asker = self.threads[thread].asker;
        let mut begun = 0;
        while let Some(&id) = self.ready.get(begun) {
            begun += 1;
            let Slot::Open(open) = &mut self.operations[id.place()] else {
                unreachable!("what waits is open")
            };
            // A barrier carries no operation.
            let Some(outcome) = open
                .held
                .take()
                .map_or(Some(Ok(Reply::Done)), |op| self.backend.begin(id, asker, *op))
            else {
                continue;
            };
            self.end(id, outcome);
        }
        self.ready.clear();
    }

    /// Ends an operation: its result is stored, and operations that waited for it become ready.
    fn end(&mut self, id: OpId, outcome: Outcome) -> ThreadId {
        let slot = &mut self.operations[id.place()];
        let Slot::Open(open) = slot else { unreachable!("it was open") };
        let thread = open.thread;
        self.ends += 1;
        self.threads[thread].tracker.end(open.sequence, &open.touched, &mut self.ready);
        self.told.extend(open.notify.take());
        if open.forgotten {
            *slot = Slot::Free;
            self.free.push(id);
        } else {
            *slot = Slot::Ended(outcome);
        }
        thread
    }
}

fn check_node(node: u16, nodes: u16, kind: &str) -> Result<(), Error> {
    if node < nodes {
        return Ok(());
    }
    Err(Error::NoSuchNode { node, allowed: format!("{kind} nodes 0 to {}", nodes - 1) })
}

fn next(turn: &mut u16, nodes: u16) -> u16 {
    let now = *turn % nodes;
    *turn = (now + 1) % nodes;
    now
}

/// Nothing is in flight that could complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stalled;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::opened;

    #[test]
    fn what_is_left_when_a_pool_ends_is_counted_and_what_completes_is_not() {
        let (opened, stepped) = opened();
        let mut core = Core::new(opened);
        let thread = core.new_thread(Asker { process: ProcessId(1), compute: 0 });
        assert_eq!(core.drain(), None);
        for _ in 0..3 {
            let sleep = core.submit(thread, Op::Sleep(Ps(1)), None);
            assert!(matches!(sleep, Submitted::Open(_)));
        }
        stepped.end(1);
        assert_eq!(core.drain(), Some((2, Wait::Sleep)));
        stepped.end(0);
        stepped.end(2);
        assert_eq!((core.drain(), core.ends()), (None, 3));
    }

    #[test]
    fn an_idle_pool_is_tended_seldom_until_an_operation_begins() {
        let (opened, _stepped) = opened();
        let mut core = Core::new(opened);
        let thread = core.new_thread(Asker { process: ProcessId(1), compute: 0 });
        let here = std::thread::current();
        let quiet = |core: &mut Core| (0..=QUIET_TICKS).map(|_| core.tend(&here)).collect();
        let rests: Vec<Duration> = quiet(&mut core);
        let (last, before) = rests.split_last().expect("several");
        assert!(before.iter().all(|rest| *rest == TEND_EVERY), "{rests:?}");
        assert_eq!(*last, TEND_IDLE);
        assert!(matches!(core.submit(thread, Op::Sleep(Ps(1)), None), Submitted::Open(_)));
        // It was unparked, so the rest is over at once.
        let began = std::time::Instant::now();
        std::thread::park_timeout(Duration::from_secs(60));
        assert!(began.elapsed() < Duration::from_secs(30));
        assert_eq!(core.tend(&here), TEND_EVERY);
        let rests: Vec<Duration> = quiet(&mut core);
        assert_eq!(rests.last(), Some(&TEND_IDLE), "{rests:?}");
    }
}
