//! What a kind of pool brings: where operations go, and when they are done.

use std::any::Any;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use ethermem_units::Ps;
use ethermem_wire::RmwOperation;

use crate::address::{Address, ProcessId};
use crate::error::{Error, Wait};
use crate::operation::{Asker, Op, OpId, Outcome, Segment};

/// A kind of pool: it carries out operations.
///
/// The pool calls it under a lock, by one machine thread at a time. Four methods are required; the
/// others are for backends that have a shorter way, or duties of their own.
pub trait Backend: Send {
    /// Time since the pool was opened.
    fn now(&self) -> Ps;

    /// Begins an operation. `Some` when it ended at once, and its id stays free.
    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome>;

    /// Goes on until an operation ends, or a lock is found taken, and adds what ended.
    fn progress(&mut self, ended: &mut Ended) -> Progress;

    /// How many operations are open and what one of them waits for, if each waits for another
    /// thread or for a time; `None` while any of them ends by itself.
    fn waits(&self) -> Option<(usize, Wait)>;

    /// Makes a process: the one with this number, unless the memory nodes give out their own.
    ///
    /// # Errors
    /// Those of the memory nodes; none where the number is the pool's.
    fn new_process(&mut self, next: ProcessId) -> Result<ProcessId, Error> {
        Ok(next)
    }

    /// Does an access before it returns, and gives the word before an atomic, else 0. `None` where
    /// an access takes time. The pool asks only while nothing of the thread is in flight.
    fn at_once(&mut self, _: Asker, _: Access<'_>) -> Option<Result<u64, Error>> {
        None
    }

    /// The shorter way for accesses whose caller waits, where the backend has one.
    fn direct(&mut self) -> Option<&mut dyn Direct> {
        None
    }

    /// Does what is due although no thread waits. It ends no operation: its waiter would find
    /// nothing in flight before it is told.
    fn tend(&mut self) {}

    /// Gives back what the pool holds elsewhere.
    ///
    /// # Errors
    /// An invariant that does not hold, or a memory node that does not answer.
    fn end(&mut self, _: End) -> Result<(), Error> {
        Ok(())
    }

    /// What the facade knows this backend by, beyond the trait. A backend that wraps another one
    /// passes on the answer of that one.
    fn extension(&self) -> Option<&dyn Any> {
        None
    }
}

/// Accesses whose caller waits for each: they need no place in the lists of operations.
pub trait Direct {
    /// Begins an access; `None` where it must go the way of all operations. Nothing of the thread
    /// is in flight.
    fn begin(&mut self, asker: Asker, access: Waited<'_>) -> Option<WaitedId>;

    /// Goes on: how the access ended, with what was read in `to`; else how long the machine may
    /// rest. What ends of others is added to `ended`. After its end the id may be given again.
    ///
    /// # Errors
    /// How long the machine may rest.
    fn look(
        &mut self,
        id: WaitedId,
        to: &mut [u8],
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration>;
}

/// What a backend does for a pool whose memory is on another machine.
pub trait Network: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// True in the process that opened the pool, false in its forks. Asked with every operation.
    fn is_here(&self) -> bool;

    /// Sleeps until an answer may be there, or for so long.
    fn sleep(&self, most: Duration);
}

/// A backend, and what the pool must know of it.
pub struct Opened {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// What holds for it as long as it is open.
    pub facts: Facts,
}

/// What holds for a backend as long as it is open.
#[derive(Clone)]
pub struct Facts {
    /// How many compute nodes there are.
    pub compute_nodes: u16,
    /// How many memory nodes there are.
    pub memory_nodes: u16,
    /// Whether time is a simulated fabric's.
    pub is_simulated: bool,
    /// Whether the memory nodes are in this program, and run the operations that it registers.
    pub runs_offloads: bool,
    /// What the word of a lock that is held says.
    pub lock_words: LockWords,
    /// Where the memory is on another machine: the pool then tends the backend by a thread.
    pub network: Option<Arc<dyn Network>>,
    /// How one of several ways to the memory was chosen, as a line for people.
    pub choice: Option<Arc<str>>,
}

impl Facts {
    /// Those of nodes in this program, in real time.
    #[must_use]
    pub fn new(compute_nodes: u16, memory_nodes: u16) -> Facts {
        Facts {
            compute_nodes,
            memory_nodes,
            is_simulated: false,
            runs_offloads: true,
            lock_words: LockWords::Thread,
            network: None,
            choice: None,
        }
    }
}

/// What the word of a lock says while a thread holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWords {
    /// The thread's number, from 1.
    Thread,
    /// The process in the upper half, so that nodes can tell a lock whose process died.
    ProcessAndThread,
}

impl LockWords {
    /// The word of a thread, whose number in the pool is from 0.
    #[must_use]
    pub fn word(self, process: ProcessId, thread: usize) -> u64 {
        let thread = thread as u64 + 1;
        match self {
            LockWords::Thread => thread,
            LockWords::ProcessAndThread => u64::from(process.0) << 32 | thread,
        }
    }
}

/// What a backend did when it was told to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some operations ended.
    Ended,
    /// Nothing will end before so much of the machine's time has passed.
    Wait(Duration),
    /// Nothing is in flight.
    Idle,
}

/// What has ended.
#[derive(Debug, Default)]
pub struct Ended {
    /// Operations, each with its outcome.
    pub operations: Vec<(OpId, Outcome)>,
    /// Direct accesses whose outcome their own next look finds.
    pub waited: Vec<WaitedId>,
}

/// The name that a backend gives a direct access; names of accesses that ended are given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitedId(usize);

impl WaitedId {
    /// A name by the access's place in a list of the backend's.
    #[must_use]
    pub const fn new(place: usize) -> WaitedId {
        WaitedId(place)
    }

    /// The place.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0
    }
}

/// An access that its caller waits for.
#[derive(Clone, Copy, Debug)]
pub enum Waited<'d> {
    /// A read of one place.
    Read(Segment),
    /// A write of these bytes.
    Write(Address, &'d [u8]),
}

/// An access that may end before the call that asks for it returns.
#[derive(Debug)]
pub enum Access<'d> {
    /// Fills the buffer.
    Read(Address, &'d mut [u8]),
    /// Writes the bytes.
    Write(Address, &'d [u8]),
    /// Executes an atomic on a word.
    Modify(Address, RmwOperation),
}

/// Why a backend ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The pool was closed: other traffic ends, all that is in flight passes, and what must hold
    /// then is checked.
    Closed,
    /// The last user of the pool is gone, closed or not: nobody hears of an error.
    Dropped,
}
