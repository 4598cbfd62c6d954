//! Operations under way: their order, their results, and who waits for them.

use std::sync::Arc;
use std::time::Duration;

use ethermem_clio::offload::Offloads;
use slab::Slab;

use crate::address::ProcessId;
use crate::error::{Error, Wait};
use crate::order::{Sequence, Touched, Tracker};
use crate::tasks::{Inbox, Notify};
use crate::world::{Asker, Op, OpId, Outcome, Progress, Reply, WaitedId, World};

/// A thread's name.
pub(crate) type ThreadId = usize;

/// The state of a pool; see [`crate::Pool`].
pub(crate) struct Core {
    pub(crate) world: Box<dyn World>,
    pub(crate) offloads: Offloads,
    threads: Vec<Thread>,
    processes: u32,
    operations: Vec<Slot>,
    free: Vec<OpId>,
    /// Kept for its memory.
    ended: Vec<(OpId, Outcome)>,
    ready: Vec<OpId>,
    /// Whom to tell once nobody holds the pool.
    told: Vec<Notify>,
    /// Of each list of tasks.
    inboxes: Slab<Arc<Inbox>>,
    turns: (u16, u16),
    /// Operations that have ended.
    ends: u64,
}

struct Thread {
    asker: Asker,
    tracker: Tracker,
}

enum Slot {
    Free,
    Open(Open),
    /// Its result waits for its [`crate::Pending`].
    Ended(Outcome),
}

struct Open {
    thread: ThreadId,
    sequence: Sequence,
    touched: Touched,
    /// While it may not go.
    held: Option<Box<Op>>,
    /// Who waits for it.
    notify: Option<Notify>,
    /// Nobody wants the result.
    forgotten: bool,
}

/// What became of an operation that was submitted.
pub(crate) enum Submitted {
    Ended(Outcome),
    Open(OpId),
}

impl Core {
    pub(crate) fn new(world: Box<dyn World>, offloads: Offloads) -> Core {
        Core {
            world,
            offloads,
            threads: Vec::new(),
            processes: 0,
            operations: Vec::new(),
            free: Vec::new(),
            ended: Vec::new(),
            ready: Vec::new(),
            told: Vec::new(),
            inboxes: Slab::new(),
            turns: (0, 0),
            ends: 0,
        }
    }

    pub(crate) fn new_process(&mut self) -> Result<ProcessId, Error> {
        self.processes += 1;
        self.world.new_process(ProcessId(self.processes))
    }

    /// What a lock says that the thread holds.
    pub(crate) fn lock_word(&self, thread: ThreadId) -> u64 {
        self.world.lock_word(self.threads[thread].asker.process, thread)
    }

    /// Does what is due whether or not anybody waits.
    pub(crate) fn tend(&mut self) {
        self.world.tend();
    }

    /// Goes on with what a machine thread waits for; see [`World::look`].
    pub(crate) fn look(
        &mut self,
        id: &mut WaitedId,
        to: &mut [u8],
    ) -> Result<Result<(), Error>, Duration> {
        let looked = self.world.look(id, to);
        if self.world.has_ended() {
            // Of others, who are told.
            let _ = self.progress();
        }
        self.world.tell(&mut self.told);
        looked
    }

    /// Who waits for it is told when somebody else has its end.
    pub(crate) fn await_end(&mut self, id: &WaitedId, notify: Notify) {
        self.world.await_end(id, notify);
    }

    /// How many operations have ended.
    pub(crate) fn ends(&self) -> u64 {
        self.ends
    }

    /// Nobody uses the pool any more.
    pub(crate) fn leave(&mut self) {
        self.world.leave();
    }

    pub(crate) fn new_thread(&mut self, asker: Asker) -> ThreadId {
        self.threads.push(Thread { asker, tracker: Tracker::default() });
        self.threads.len() - 1
    }

    /// The thread, if nothing of it is under way.
    pub(crate) fn idle(&self, thread: ThreadId) -> Option<Asker> {
        let Thread { asker, tracker } = &self.threads[thread];
        tracker.is_idle().then_some(*asker)
    }

    /// The compute node whose turn it is.
    pub(crate) fn next_compute(&mut self) -> u16 {
        let (nodes, _) = self.world.nodes();
        next(&mut self.turns.0, nodes)
    }

    /// The memory node whose turn it is.
    pub(crate) fn next_memory(&mut self) -> u16 {
        let (_, nodes) = self.world.nodes();
        next(&mut self.turns.1, nodes)
    }

    #[inline]
    pub(crate) fn has_told(&self) -> bool {
        !self.told.is_empty()
    }

    pub(crate) fn take_told(&mut self) -> Vec<Notify> {
        std::mem::take(&mut self.told)
    }

    /// The same, for a list that is empty.
    pub(crate) fn swap_told(&mut self, told: &mut Vec<Notify>) {
        std::mem::swap(&mut self.told, told);
    }

    /// A list of tasks begins: its name.
    pub(crate) fn new_list(&mut self, inbox: Arc<Inbox>) -> u32 {
        self.inboxes.insert(inbox) as u32
    }

    pub(crate) fn end_list(&mut self, list: u32) {
        self.inboxes.remove(list as usize);
    }

    pub(crate) fn inbox(&self, list: u32) -> Option<Arc<Inbox>> {
        self.inboxes.get(list as usize).cloned()
    }

    /// Begins an operation, or has it wait for others of its thread. `notify` is told when it
    /// ended, if that is not at once.
    pub(crate) fn submit(&mut self, thread: ThreadId, op: Op, notify: Option<Notify>) -> Submitted {
        let touched = op.touched();
        let id = self.name();
        let Thread { asker, tracker } = &mut self.threads[thread];
        let known = |other: OpId| match &self.operations[other] {
            Slot::Open(open) => &open.touched,
            Slot::Free | Slot::Ended(_) => unreachable!("what is under way is open"),
        };
        let (sequence, held) = if tracker.is_idle() {
            if let Some(outcome) = self.world.begin(id, *asker, op) {
                self.free.push(id);
                return Submitted::Ended(outcome);
            }
            (tracker.begin(id, &touched, known).0, None)
        } else {
            let (sequence, goes) = tracker.begin(id, &touched, known);
            if goes {
                if let Some(outcome) = self.world.begin(id, *asker, op) {
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
        self.open(id, Open { thread, sequence, touched, held, notify, forgotten: false })
    }

    /// An operation that ends when all of its thread before it have.
    pub(crate) fn release(&mut self, thread: ThreadId, notify: Option<Notify>) -> Submitted {
        if self.idle(thread).is_some() {
            return Submitted::Ended(Ok(Reply::Done));
        }
        self.barrier(thread, None, notify)
    }

    /// The same, and then at the memory nodes.
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
            self.operations.len() - 1
        })
    }

    fn open(&mut self, id: OpId, open: Open) -> Submitted {
        self.operations[id] = Slot::Open(open);
        Submitted::Open(id)
    }

    /// The result of an operation, once; until then `notify` is told when it is there.
    pub(crate) fn take(
        &mut self,
        id: OpId,
        notify: impl FnOnce(Option<Notify>) -> Option<Notify>,
    ) -> Option<Outcome> {
        match &mut self.operations[id] {
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

    /// Nobody will take the result.
    pub(crate) fn forget(&mut self, id: OpId) {
        match &mut self.operations[id] {
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

    /// Goes on until an operation ends. `Some` is how long the machine may rest before; an error
    /// when nothing is under way, so that nothing can end.
    pub(crate) fn progress(&mut self) -> Result<Option<Duration>, Stalled> {
        let mut ended = std::mem::take(&mut self.ended);
        let progress = self.world.progress(&mut ended);
        for (id, outcome) in ended.drain(..) {
            self.settle(id, outcome);
        }
        self.ended = ended;
        self.world.tell(&mut self.told);
        match progress {
            Progress::Ended => Ok(None),
            Progress::Wait(rest) => Ok(Some(rest)),
            Progress::Idle => Err(Stalled),
        }
    }

    /// Goes on, with no other machine thread at the pool, until nothing is under way but what only
    /// others could end.
    pub(crate) fn drain(&mut self) -> Option<(usize, Wait)> {
        while let Ok(rest) = self.progress() {
            if let Some(waits) = self.world.waits() {
                return Some(waits);
            }
            if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
                std::thread::sleep(rest);
            }
        }
        None
    }

    fn settle(&mut self, id: OpId, outcome: Outcome) {
        let thread = self.end(id, outcome);
        if !self.ready.is_empty() {
            self.begin_ready(thread);
        }
    }

    /// Begins what waited. What ends at once may let others of the thread go in turn: they are
    /// behind it in the list, which is why this is a loop.
    fn begin_ready(&mut self, thread: ThreadId) {
        let asker = self.threads[thread].asker;
        let mut begun = 0;
        while let Some(&id) = self.ready.get(begun) {
            begun += 1;
            let Slot::Open(open) = &mut self.operations[id] else {
                unreachable!("what waits is open")
            };
            // A barrier has nothing to do.
            let Some(outcome) = open
                .held
                .take()
                .map_or(Some(Ok(Reply::Done)), |op| self.world.begin(id, asker, *op))
            else {
                continue;
            };
            self.end(id, outcome);
        }
        self.ready.clear();
    }

    /// An operation ended: its result is kept, and what waited for it is ready.
    fn end(&mut self, id: OpId, outcome: Outcome) -> ThreadId {
        let slot = &mut self.operations[id];
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

fn next(turn: &mut u16, nodes: u16) -> u16 {
    let now = *turn % nodes;
    *turn = (now + 1) % nodes;
    now
}

/// Nothing is under way that could end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stalled;
