//! Where operations go, and when they are done.

mod local;
mod remote;
mod sim;

use std::sync::Arc;
use std::time::Duration;

use ethermem_clio::offload::Offload;
use ethermem_clio::transport::OperationId;
use ethermem_edm::RmwOperation;
use ethermem_sim::Kind;
use ethermem_sim::workload::LinkBlocks;
use ethermem_units::Ps;
use smallvec::SmallVec;

pub(crate) use local::Local;
pub use remote::OFFLOAD_BYTES_MAX;
use remote::Tries;
pub(crate) use remote::{Remote, RemoteConfig, Way};
pub(crate) use sim::{Sim, SimConfig};

use crate::address::{Address, Permissions, ProcessId};
use crate::error::{Error, Wait};
use crate::order::Touched;
use crate::tasks::Notify;

/// The name of an operation that is under way: those of operations that ended are used again.
pub(crate) type OpId = usize;

/// Bytes of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first byte.
    pub address: Address,
    /// How many.
    pub bytes: u64,
}

/// Places, one after the other; most operations have one.
pub(crate) type Segments = SmallVec<[Segment; 1]>;

/// What a thread asks for.
pub(crate) enum Op {
    /// The bytes of all parts, one after the other.
    Read(Segments),
    /// The same for writing.
    Write(Segments, Vec<u8>),
    Modify(Address, RmwOperation),
    /// Stores `holder` into the word once it is zero.
    Lock {
        word: Address,
        holder: u64,
    },
    Alloc {
        memory: u16,
        bytes: u64,
        permissions: Permissions,
    },
    Free(Address, u64),
    Share {
        region: Segment,
        with: ProcessId,
        permissions: Permissions,
    },
    Offload {
        memory: u16,
        /// What of the memory it may touch, for the order of the thread.
        touches: Segments,
        name: String,
        /// What it does, where the nodes are in this program.
        offload: Option<Arc<dyn Offload>>,
        arguments: Vec<u8>,
    },
    /// All memory nodes have done what came before.
    Fence,
    /// Until a time.
    Sleep(Ps),
}

impl Op {
    /// What must be ordered with it.
    pub(crate) fn touched(&self) -> Touched {
        let all = |segments: &[Segment], writes| match segments {
            [one] => Touched::bytes(one.address.0, one.bytes, writes),
            parts => Touched::parts(parts.iter().map(|s| (s.address.0, s.bytes)), writes),
        };
        match self {
            Op::Read(segments) => all(segments, false),
            Op::Write(segments, _) | Op::Offload { touches: segments, .. } => all(segments, true),
            Op::Modify(address, _) | Op::Lock { word: address, .. } => {
                Touched::bytes(address.0, 8, true)
            }
            Op::Free(address, bytes) => Touched::bytes(address.0, *bytes, true),
            Op::Share { region, .. } => all(&[*region], true),
            Op::Alloc { .. } | Op::Fence | Op::Sleep(_) => Touched::default(),
        }
    }
}

/// What an operation gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    Done,
    Bytes(Vec<u8>),
    Word(u64),
    Address(Address),
}

impl Reply {
    /// That of a read or an offload.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Reply::Bytes(bytes) => bytes,
            _ => unreachable!("a read gives bytes"),
        }
    }

    /// That of an atomic.
    pub(crate) fn into_word(self) -> u64 {
        match self {
            Reply::Word(word) => word,
            _ => unreachable!("an atomic gives a word"),
        }
    }
}

/// How an operation ended.
pub(crate) type Outcome = Result<Reply, Error>;

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker {
    pub(crate) process: ProcessId,
    /// The compute node, from 0.
    pub(crate) compute: u16,
}

/// What a world did when it was told to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// Some operations ended.
    Ended,
    /// Nothing will end before so much of the machine's time has passed.
    Wait(Duration),
    /// Nothing is under way.
    Idle,
}

/// What a machine thread waits for at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Waited<'d> {
    Read(Segment),
    Write(Address, &'d [u8]),
}

/// What became of it at once.
pub(crate) enum Begun {
    /// A read's bytes are where they were wanted.
    Ended(Result<(), Error>),
    Open(WaitedId),
}

/// One that was begun.
pub(crate) struct WaitedId {
    operation: OperationId,
    process: ProcessId,
    segment: Segment,
    is_read: bool,
    tries: Tries,
}

/// A kind of pool.
pub(crate) trait World: Send {
    /// Time since the pool was opened.
    fn now(&self) -> Ps;

    /// How many compute nodes and memory nodes there are.
    fn nodes(&self) -> (u16, u16);

    /// A new process: the one with this number, unless the nodes give out their own.
    fn new_process(&mut self, next: ProcessId) -> Result<ProcessId, Error> {
        Ok(next)
    }

    /// What the word of a lock says while a thread holds it.
    fn lock_word(&self, _: ProcessId, thread: usize) -> u64 {
        thread as u64 + 1
    }

    /// Whether the memory nodes are in this program, and run the operations that it brings.
    fn has_nodes(&self) -> bool {
        true
    }

    /// Does what is due whether or not anybody waits. It ends no operation: who waits for one
    /// would find nothing under way before he is told.
    fn tend(&mut self) {}

    /// Begins an operation. `Some` when it ended at once, and its name stays free.
    fn begin(&mut self, id: OpId, asker: Asker, op: Op) -> Option<Outcome>;

    /// Goes on until something ends, or a lock is found taken.
    fn progress(&mut self, ended: &mut Vec<(OpId, Outcome)>) -> Progress;

    /// Reads at once, where there is no way to the memory. Nothing of the thread is under way.
    fn read_now(&mut self, _: Asker, _from: Address, _to: &mut [u8]) -> Option<Result<(), Error>> {
        None
    }

    /// Writes at once, where there is no way to the memory. Nothing of the thread is under way.
    fn write_now(&mut self, _: Asker, _to: Address, _from: &[u8]) -> Option<Result<(), Error>> {
        None
    }

    /// The same for an atomic: gives the word before.
    fn modify_now(
        &mut self,
        _: Asker,
        _word: Address,
        _operation: RmwOperation,
    ) -> Option<Result<u64, Error>> {
        None
    }

    /// Begins what the caller waits for by [`World::look`], where that is shorter than
    /// [`World::begin`]. What ends at once puts what was read in `to`. Nothing of the thread is
    /// under way.
    fn begin_waited(&mut self, _: Asker, _: Waited<'_>, _to: &mut [u8]) -> Option<Begun> {
        None
    }

    /// Goes on; how it ended, with what was read in `to`, or how long the machine may rest. A try
    /// that begins gives it another name.
    fn look(&mut self, _: &mut WaitedId, _to: &mut [u8]) -> Result<Result<(), Error>, Duration> {
        unreachable!("nothing is begun so")
    }

    /// `notify` is told when somebody else has the end of what [`World::begin_waited`] began.
    fn await_end(&mut self, _: &WaitedId, _notify: Notify) {
        unreachable!("nothing is begun so")
    }

    /// Adds whom [`World::await_end`] named and whose ends are there.
    fn tell(&mut self, _told: &mut Vec<Notify>) {}

    /// Whether something of others has ended in between, which [`World::progress`] gives.
    fn has_ended(&self) -> bool {
        false
    }

    /// How many operations are under way and what one of them waits for, where all of them wait for
    /// another thread or for a time; `None` while any of them ends by itself.
    fn waits(&self) -> Option<(usize, Wait)>;

    /// Ends other traffic, lets all that is under way pass, and checks what must hold then.
    fn close(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Nobody uses it any more: gives back what it holds elsewhere.
    fn leave(&mut self) {}

    /// Events of the fabric so far.
    fn events(&self) -> u64 {
        0
    }

    /// See [`crate::Pool::link_blocks`].
    fn link_blocks(&self, _: Kind, _bytes: u64) -> Option<(LinkBlocks, f64)> {
        None
    }

    /// Whether the time is a fabric's own.
    fn is_simulated(&self) -> bool {
        false
    }
}
