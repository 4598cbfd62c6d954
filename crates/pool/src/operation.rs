//! What threads ask of a pool, and what they get.

use std::sync::Arc;

use ethermem_offload::Offload;
use ethermem_units::Ps;
use ethermem_wire::RmwOperation;
use smallvec::SmallVec;

use crate::address::{Address, Permissions, ProcessId};
use crate::error::Error;

/// Longest region, read or write: what an operation may be asked to hold in memory.
pub const ACCESS_BYTES_MAX: u64 = 1 << 34;

/// What order is kept by: operations of one thread that touch the same page keep theirs.
pub const PAGE_BYTES: u64 = 4096;

/// The pool's name of an operation that is in flight. Names are small numbers, and those of
/// operations that ended are given again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(usize);

impl OpId {
    /// A name by its place in a list, for a backend that gives operations to other backends.
    #[must_use]
    pub const fn new(place: usize) -> OpId {
        OpId(place)
    }

    /// The name as a place in a list.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0
    }
}

/// Bytes of one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The first byte.
    pub address: Address,
    /// How many.
    pub bytes: u64,
}

/// Places, one after the other; most operations have one.
pub type Segments = SmallVec<[Segment; 1]>;

/// What a thread asks for.
#[derive(Clone)]
pub enum Op {
    /// The bytes of all places, one after the other.
    Read(Segments),
    /// Writes the bytes to all places, one after the other.
    Write(Segments, Vec<u8>),
    /// Executes an atomic on a word.
    Modify(Address, RmwOperation),
    /// Stores `holder` into the word once it is zero.
    Lock {
        /// The lock.
        word: Address,
        /// What it says while it is held.
        holder: u64,
    },
    /// Allocates a region of zeros.
    Alloc {
        /// On which memory node, from 0.
        memory: u16,
        /// How long it is.
        bytes: u64,
        /// What its owner may do there.
        permissions: Permissions,
    },
    /// Ends a region, by its first byte and its length.
    Free(Address, u64),
    /// Lets another process use a region, or ends that.
    Share {
        /// The whole region.
        region: Segment,
        /// The other process.
        with: ProcessId,
        /// What it may do there.
        permissions: Permissions,
    },
    /// Runs an operation at a memory node.
    Offload {
        /// Which node, from 0.
        memory: u16,
        /// What of the memory it may touch, for the order of the thread.
        touches: Segments,
        /// Its name.
        name: String,
        /// What it does, where the nodes are in this program.
        offload: Option<Arc<dyn Offload>>,
        /// Its arguments.
        arguments: Vec<u8>,
    },
    /// Ends when all memory nodes have done what came before.
    Fence,
    /// Ends at a time.
    Sleep(Ps),
}

/// What an operation gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing but that it was done.
    Done,
    /// The bytes of a read, or the result of an offload.
    Bytes(Vec<u8>),
    /// The word before an atomic.
    Word(u64),
    /// Where an allocation is.
    Address(Address),
}

impl Reply {
    /// The bytes of a read or an offload.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Reply::Bytes(bytes) => bytes,
            _ => unreachable!("a read gives bytes"),
        }
    }

    /// The word before an atomic.
    pub(crate) fn into_word(self) -> u64 {
        match self {
            Reply::Word(word) => word,
            _ => unreachable!("an atomic gives a word"),
        }
    }
}

/// How an operation ended.
pub type Outcome = Result<Reply, Error>;

/// The thread's process and compute node.
#[derive(Clone, Copy, Debug)]
pub struct Asker {
    /// Whose memory is meant.
    pub process: ProcessId,
    /// The compute node, from 0.
    pub compute: u16,
}
