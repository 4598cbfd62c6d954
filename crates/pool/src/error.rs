//! Why something could not be done.

use ethermem_offload::{OffloadError, Stop};

use crate::address::{Address, Permissions};

/// Why an operation was not done.
///
/// [`Error::is_retryable`] says whether trying again can help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Some of the bytes are in no region that the process has: never allocated, freed, or not
    /// shared with it.
    #[error("{} not all in one region of the process", places(*address, *bytes))]
    Unmapped {
        /// Where the access begins.
        address: Address,
        /// How long it is; 0 where the memory node does not say.
        bytes: u64,
    },
    /// The process may not do this there.
    #[error("no permission to {needed} at {address}")]
    Permission {
        /// Where.
        address: Address,
        /// What it would take.
        needed: Permissions,
    },
    /// Nothing was asked for.
    #[error("0 B: allowed are 1 to {most}")]
    Empty {
        /// The most that is allowed.
        most: u64,
    },
    /// Too much was asked for at once.
    #[error("{bytes} B: allowed are 1 to {most}")]
    TooLong {
        /// What was asked for.
        bytes: u64,
        /// The most that is allowed.
        most: u64,
    },
    /// An atomic or a lock must be at a multiple of 8.
    #[error("an atomic at {address}: not a multiple of 8")]
    Misaligned {
        /// Where.
        address: Address,
    },
    /// The pool has no memory left for this. It may have some once regions are freed.
    #[error("no room for {bytes} B: {free} B are free")]
    Full {
        /// What was asked for.
        bytes: u64,
        /// What its memory node has.
        free: u64,
    },
    /// A lock is released that its thread does not hold.
    #[error("the lock at {address} is not held by this thread")]
    NotHeld {
        /// Where.
        address: Address,
    },
    /// No node of this number, or not of this sort.
    #[error("node {node}: allowed are {allowed}")]
    NoSuchNode {
        /// What was given.
        node: u16,
        /// What would do.
        allowed: String,
    },
    /// The memory nodes know no operation of this name.
    #[error("offload `{name}`: allowed are {allowed}")]
    NoSuchOffload {
        /// What was given.
        name: String,
        /// Every name.
        allowed: String,
    },
    /// The operation at the memory node does not take these arguments, or ends without a result.
    #[error("offload `{name}`: {problem}")]
    Offload {
        /// Which.
        name: String,
        /// What was found and what is allowed.
        problem: String,
    },
    /// The operation at the memory node was stopped: it did what no program may, or used up what
    /// it may have. What it did until then is done.
    #[error("offload `{name}`, {why}: {problem}")]
    OffloadStopped {
        /// Which.
        name: String,
        /// Why.
        why: Stop,
        /// Where, and what is allowed.
        problem: String,
    },
    /// The memory node did not answer in time: it may be away, or busy, or the way to it may be. A
    /// read was not done; whether a write or an atomic was is not known.
    #[error("{node} did not answer within {waited_ms} ms: whether this was done is not known")]
    NoAnswer {
        /// Which.
        node: String,
        /// How long the operation was tried.
        waited_ms: u64,
    },
    /// The simulated fabric lost a message of the operation. A read was not done; whether a write
    /// or an atomic was is not known.
    #[error("lost by the simulated fabric")]
    Lost,
    /// The lock is this thread's, but whoever had it died: what it guards may be half changed. Put
    /// that right, or unlock.
    #[error("the lock at {address} is this thread's; who held it died")]
    OwnerDied {
        /// Where.
        address: Address,
    },
    /// The memory node was started anew: all that was on it is gone, and the process too. New
    /// threads of the pool are of its new life.
    #[error("{node} was started anew: what was on it is gone")]
    Restarted {
        /// Which.
        node: String,
    },
    /// The process and its memory are gone: its lease was over, its pool was closed, or an operator
    /// of the node ended it.
    #[error(
        "{node} has ended the process: its lease was over, its pool was closed, or an operator \
         ended it"
    )]
    ProcessEnded {
        /// Which node.
        node: String,
    },
    /// The memory node is about to end, and takes no new process. Another may.
    #[error("{node} is about to end, and takes no new process")]
    Ending {
        /// Which.
        node: String,
    },
    /// This process is a fork of the one that opened the pool, whose threads and memory stay the
    /// parent's. Nothing was sent. It can open a pool of its own.
    #[error("the pool is the parent process's: after a fork the child opens one of its own")]
    Forked,
    /// The memory node refuses it, for a reason of its own.
    #[error("{node}: {problem}")]
    Refused {
        /// Which.
        node: String,
        /// Its reason.
        problem: String,
    },
    /// The pool was closed, and operations of it still waited: for a lock that another thread
    /// holds, or for a time. They were not done.
    #[error(
        "the pool was closed with {operations} of its operations still waiting after {waited_ms} \
         ms, one {wait}"
    )]
    StillWaiting {
        /// How many.
        operations: usize,
        /// What one of them waits for.
        wait: Wait,
        /// How long the pool waited for them.
        waited_ms: u64,
    },
    /// An invariant of the simulated fabric does not hold: what it did cannot be trusted.
    #[error("invariant violated: {what}")]
    Violated {
        /// Which, and where.
        what: String,
    },
}

fn places(address: Address, bytes: u64) -> String {
    match bytes {
        0 => format!("an access at {address} is"),
        bytes => format!("{bytes} B at {address} are"),
    }
}

/// What an operation waits for that is not an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Wait {
    /// A lock, by the address of its word.
    #[error("for the lock at {0}")]
    Lock(Address),
    /// The end of a sleep.
    #[error("in a sleep")]
    Sleep,
}

impl Error {
    /// That of an operation at a memory node.
    #[must_use]
    pub fn of_offload(name: &str, error: OffloadError) -> Error {
        match error {
            OffloadError::Unmapped { address, bytes } => Error::Unmapped { address, bytes },
            OffloadError::Permission { address, needed } => Error::Permission { address, needed },
            OffloadError::Misaligned { address } => Error::Misaligned { address },
            OffloadError::Full { bytes, free } => Error::Full { bytes, free },
            OffloadError::Failed(problem) => Error::Offload { name: name.to_owned(), problem },
            OffloadError::Stopped { why, problem } => {
                Error::OffloadStopped { name: name.to_owned(), why, problem }
            }
        }
    }

    /// Whether the same operation may be done if it is tried again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Error::Full { .. }) || self.is_uncertain()
    }

    /// Whether it is not known if a write or an atomic that ended so was done.
    #[must_use]
    pub const fn is_uncertain(&self) -> bool {
        matches!(self, Error::Lost | Error::NoAnswer { .. })
    }
}
