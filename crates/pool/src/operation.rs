//! Operations that threads submit to a pool, and their replies.

use std::sync::Arc;

use ethermem_offload::Offload;
use ethermem_units::Ps;
use ethermem_wire::RmwOperation;
use smallvec::SmallVec;

use crate::address::{Address, Permissions, ProcessId};
use crate::error::Error;

/// Longest region, read or write in bytes: the most that one operation may hold in memory.
pub const ACCESS_BYTES_MAX: u64 = 1 << 34;

/// Granularity of ordering in bytes: operations of one thread on one page stay in order.
pub const PAGE_BYTES: u64 = 4096;

/// Identifier of an operation in flight. Identifiers are small numbers, and those of completed
/// operations are reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpId(usize);

impl OpId {
    /// An identifier from an index, for a backend that passes operations on to other backends.
    #[must_use]
    pub const fn new(place: usize) -> OpId {
        OpId(place)
    }

    /// The identifier as an index.
    #[must_use]
    pub const fn place(self) -> usize {
        self.0
    }
}

/// A contiguous range of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Address of the first byte.
    pub address: Address,
    /// Length in bytes.
    pub bytes: u64,
}

/// Ranges, one after the other; most operations have one.
pub type Segments = SmallVec<[Segment; 1]>;

/// An operation that a thread submits.
#[derive(Clone)]
pub enum Op {
    /// Reads the bytes of all ranges, one after the other.
    Read(Segments),
    /// Writes the bytes to all ranges, one after the other.
    Write(Segments, Vec<u8>),
    /// Executes an atomic on a word.
    Modify(Address, RmwOperation),
    /// Stores `holder` into the word once it is zero.
    Lock {
        /// Address of the lock's word.
        word: Address,
        /// Content of the word while the lock is held.
        holder: u64,
    },
    /// Allocates a region of zeros.
    Alloc {
        /// Index of the memory node, from 0.
        memory: u16,
        /// Length in bytes.
        bytes: u64,
        /// Permissions of the owner.
        permissions: Permissions,
    },
    /// Frees a region, by the address of its first byte and its length in bytes.
    Free(Address, u64),
    /// Grants another process permissions on a region, or revokes them.
    Share {
        /// The whole region.
        region: Segment,
        /// Process that receives the permissions.
        with: ProcessId,
        /// Permissions granted; none revokes.
        permissions: Permissions,
    },
    /// Runs an operation at a memory node.
    Offload {
        /// Index of the memory node, from 0.
        memory: u16,
        /// Ranges that it may touch, for the order of the thread.
        touches: Segments,
        /// Name of the operation.
        name: String,
        /// Its implementation, where the nodes run in-process.
        offload: Option<Arc<dyn Offload>>,
        /// Arguments in the operation's own encoding.
        arguments: Vec<u8>,
    },
    /// Completes when all memory nodes have done the operations before it.
    Fence,
    /// Completes when the backend holds no completed write back any more. Only backends with
    /// [`crate::Facts::keeps_writes`] receive it.
    Flush,
    /// Completes at a time since the pool was opened.
    Sleep(Ps),
}

/// Result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Confirmation without a value.
    Done,
    /// Bytes of a read, or the result of an offload.
    Bytes(Vec<u8>),
    /// Value of the word before an atomic.
    Word(u64),
    /// Address of a new region.
    Address(Address),
}

impl Reply {
    /// Bytes of a read or an offload.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        match self {
            Reply::Bytes(bytes) => bytes,
            _ => unreachable!("a read gives bytes"),
        }
    }

    /// Value of the word before an atomic.
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
    /// Process whose memory is addressed.
    pub process: ProcessId,
    /// Index of the compute node, from 0.
    pub compute: u16,
}
