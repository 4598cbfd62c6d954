//! The interface of a backend: it carries out operations and reports when they complete.

use std::any::Any;
use std::os::fd::BorrowedFd;
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
/// The pool calls a backend under a lock, from one machine thread at a time. Four methods are
/// required. The others are for backends that have a shorter path or duties of their own.
pub trait Backend: Send {
    /// Time since the pool was opened.
    fn now(&self) -> Ps;

    /// Begins an operation. Returns `Some` when it completed at once; its id is then not in use.
    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome>;

    /// Runs until an operation completes or a lock is found taken, and adds what completed to
    /// `ended`.
    fn progress(&mut self, ended: &mut Ended) -> Progress;

    /// Number of open operations and what one of them waits for, if every one waits for another
    /// thread or for a time. `None` while any of them completes by itself.
    fn waits(&self) -> Option<(usize, Wait)>;

    /// Creates a process: `next`, unless the memory nodes assign their own numbers.
    ///
    /// # Errors
    /// Errors of the memory nodes; none where the pool assigns the number.
    fn new_process(&mut self, next: ProcessId) -> Result<ProcessId, Error> {
        Ok(next)
    }

    /// Does an access before it returns, and gives the word before an atomic, else 0. Returns
    /// `None` where an access takes time. The pool calls this only while the thread has nothing in
    /// flight.
    fn at_once(&mut self, _: Asker, _: Access<'_>) -> Option<Result<u64, Error>> {
        None
    }

    /// The shorter path for accesses whose caller waits, where the backend has one.
    fn direct(&mut self) -> Option<&mut dyn Direct> {
        None
    }

    /// Number of times that memory of this pool may have been lost: a node restarted, ended a
    /// process, or did not answer. A cache in front of the backend serves nothing that it holds
    /// after the number has changed, until the node has answered.
    fn doubts(&self) -> u64 {
        0
    }

    /// Does periodic work although no thread waits. It must not complete an operation: its waiter
    /// would find nothing in flight before it is notified. Returns the time after which it must be
    /// tended again where no operation begins.
    fn tend(&mut self) -> Duration {
        Duration::MAX
    }

    /// Releases what the pool holds outside this process.
    ///
    /// # Errors
    /// An invariant that does not hold, or a memory node that does not answer.
    fn end(&mut self, _: End) -> Result<(), Error> {
        Ok(())
    }

    /// Access to the concrete backend for the facade, beyond the trait. A backend that wraps
    /// another backend forwards the inner backend's answer.
    fn extension(&self) -> Option<&dyn Any> {
        None
    }
}

/// Accesses whose caller waits for each of them; they need no entry in the lists of operations.
pub trait Direct {
    /// Begins an access while the thread has nothing in flight. The caller lends a write's data
    /// again in each look. Returns `None` where the access must take the path of all operations.
    fn begin(&mut self, asker: Asker, access: Waited<'_>) -> Option<WaitedId>;

    /// Makes progress. Returns how the access ended, with the bytes read in the buffer that the
    /// caller lends, or else how long the machine may rest. Other accesses and operations that
    /// complete are added to `ended`. After its end the id may be reused.
    ///
    /// # Errors
    /// How long the machine may rest.
    fn look(
        &mut self,
        id: WaitedId,
        lent: Lent<'_>,
        ended: &mut Ended,
    ) -> Result<Result<(), Error>, Duration>;
}

/// What a backend does for a pool whose memory is on another machine.
pub trait Network: Send + Sync + UnwindSafe + RefUnwindSafe {
    /// True in the process that opened the pool, false in its forks. The pool asks before every
    /// operation.
    fn is_here(&self) -> bool;

    /// Sleeps until a response may have arrived, or for at most `most`.
    fn sleep(&self, most: Duration);

    /// The descriptor that becomes readable when a response may have arrived, if there is one.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// An opened backend, and what the pool must know of it.
pub struct Opened {
    /// The backend.
    pub backend: Box<dyn Backend>,
    /// Facts that hold as long as the backend is open.
    pub facts: Facts,
}

/// Facts that hold as long as a backend is open.
#[derive(Clone)]
pub struct Facts {
    /// Number of compute nodes.
    pub compute_nodes: u16,
    /// Number of memory nodes.
    pub memory_nodes: u16,
    /// True if time is a simulated fabric's virtual time.
    pub is_simulated: bool,
    /// True if the memory nodes run in-process and can execute registered offloads.
    pub runs_offloads: bool,
    /// True if a write may complete before a memory node has it. [`Op::Flush`] and [`Op::Fence`]
    /// then complete after the nodes have all completed writes.
    pub keeps_writes: bool,
    /// Content of the word of a lock that is held.
    pub lock_words: LockWords,
    /// Present where the memory is on another machine; a background thread then tends the backend.
    pub network: Option<Arc<dyn Network>>,
    /// How one of several ways to the memory was chosen, as a line for people.
    pub choice: Option<Arc<str>>,
}

impl Facts {
    /// Facts of memory nodes in this process, in real time.
    #[must_use]
    pub fn new(compute_nodes: u16, memory_nodes: u16) -> Facts {
        Facts {
            compute_nodes,
            memory_nodes,
            is_simulated: false,
            runs_offloads: true,
            keeps_writes: false,
            lock_words: LockWords::Thread,
            network: None,
            choice: None,
        }
    }
}

/// Content of a lock's word while a thread holds the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockWords {
    /// The thread's number, from 1.
    Thread,
    /// The process in the upper half, so that nodes can recognize a lock whose process died.
    ProcessAndThread,
}

impl LockWords {
    /// The lock word of a thread; `thread` counts from 0 in the pool.
    #[must_use]
    pub fn word(self, process: ProcessId, thread: usize) -> u64 {
        let thread = thread as u64 + 1;
        match self {
            LockWords::Thread => thread,
            LockWords::ProcessAndThread => u64::from(process.0) << 32 | thread,
        }
    }
}

/// Result of [`Backend::progress`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Some operations completed.
    Ended,
    /// Nothing will complete before this much of the machine's time has passed.
    Wait(Duration),
    /// Nothing is in flight.
    Idle,
}

/// Operations and direct accesses that have completed.
#[derive(Debug, Default)]
pub struct Ended {
    /// Completed operations, each with its outcome.
    pub operations: Vec<(OpId, Outcome)>,
    /// Direct accesses whose outcome is returned by their next [`Direct::look`].
    pub waited: Vec<WaitedId>,
}

/// Identifier that a backend gives a direct access; identifiers of completed accesses are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitedId(usize);

impl WaitedId {
    /// An identifier from the access's index in a list of the backend.
    #[must_use]
    pub const fn new(place: usize) -> WaitedId {
        WaitedId(place)
    }

    /// The index in the backend's list.
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
    /// A write of these bytes to an address.
    Write(Address, &'d [u8]),
}

/// Memory that the caller of a direct access lends for one call.
#[derive(Debug)]
pub enum Lent<'b> {
    /// The buffer of a read.
    To(&'b mut [u8]),
    /// The data of a write. Its caller looks again, or else lends them to be copied.
    From(&'b [u8]),
    /// The data of a write whose caller may wait for other machine threads before it looks again.
    /// The backend must copy what it may still need of them.
    Copy {
        /// All data.
        data: &'b [u8],
        /// Those up to this byte must be copied. It grows from call to call up to their length.
        to: usize,
    },
}

impl<'b> Lent<'b> {
    /// The same memory, for a shorter time.
    pub fn again(&mut self) -> Lent<'_> {
        match self {
            Lent::To(to) => Lent::To(to),
            Lent::From(data) => Lent::From(data),
            Lent::Copy { data, to } => Lent::Copy { data, to: *to },
        }
    }

    /// The data of a write.
    #[must_use]
    pub fn data(&self) -> Option<&'b [u8]> {
        match self {
            Lent::To(_) => None,
            Lent::From(data) | Lent::Copy { data, .. } => Some(data),
        }
    }
}

/// An access that may complete before the call that asks for it returns.
#[derive(Debug)]
pub enum Access<'d> {
    /// Fills the buffer.
    Read(Address, &'d mut [u8]),
    /// Writes the bytes.
    Write(Address, &'d [u8]),
    /// Executes an atomic on a word.
    Modify(Address, RmwOperation),
}

/// The reason why a backend ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The pool was closed. Other traffic ends, everything in flight completes, and the final
    /// invariants are checked.
    Closed,
    /// The last user of the pool is gone, closed or not. An error has no recipient.
    Dropped,
}
