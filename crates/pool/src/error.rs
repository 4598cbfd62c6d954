//! Errors of operations and of pools.

use ethermem_offload::{OffloadError, Stop};

use crate::address::{Address, Permissions};

/// Why an operation was not done.
///
/// [`Error::is_retryable`] says whether trying again can help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Some of the bytes are in no region that the process can access: never allocated, freed, or
    /// not shared with it.
    #[error("{} not all in one region of the process", places(*address, *bytes))]
    Unmapped {
        /// First byte of the access.
        address: Address,
        /// Length of the access in bytes; 0 where the memory node does not report it.
        bytes: u64,
    },
    /// The process lacks the permission for this access.
    #[error("no permission to {needed} at {address}")]
    Permission {
        /// First byte of the access.
        address: Address,
        /// Permissions that the access needs.
        needed: Permissions,
    },
    /// The length asked for is zero.
    #[error("0 B: must be 1 to {most}")]
    Empty {
        /// Largest length in bytes.
        most: u64,
    },
    /// The length asked for is too large.
    #[error("{bytes} B: must be 1 to {most}")]
    TooLong {
        /// Length asked for, in bytes.
        bytes: u64,
        /// Largest length in bytes.
        most: u64,
    },
    /// The address of an atomic or a lock must be a multiple of 8.
    #[error("an atomic at {address}: not a multiple of 8")]
    Misaligned {
        /// Address of the word.
        address: Address,
    },
    /// The pool has too little free memory. It may have more once regions are freed.
    #[error("no room for {bytes} B: {free} B are free")]
    Full {
        /// Length asked for, in bytes.
        bytes: u64,
        /// Free memory of the memory node in bytes.
        free: u64,
    },
    /// The thread releases a lock that it does not hold.
    #[error("the lock at {address} is not held by this thread")]
    NotHeld {
        /// Address of the lock's word.
        address: Address,
    },
    /// No node has this number, or the node has another role.
    #[error("node {node}: must be {allowed}")]
    NoSuchNode {
        /// Number that was given.
        node: u16,
        /// Numbers that exist.
        allowed: String,
    },
    /// The memory nodes know no operation of this name.
    #[error("offload `{name}`: must be one of {allowed}")]
    NoSuchOffload {
        /// Name that was given.
        name: String,
        /// Every known name.
        allowed: String,
    },
    /// The operation at the memory node refuses these arguments, or ends without a result.
    #[error("offload `{name}`: {problem}")]
    Offload {
        /// Name of the operation.
        name: String,
        /// What was found and what is allowed.
        problem: String,
    },
    /// The memory node stopped the operation: it made an illegal access or exceeded a limit. Its
    /// effects until then remain.
    #[error("offload `{name}`, {why}: {problem}")]
    OffloadStopped {
        /// Name of the operation.
        name: String,
        /// Reason for the stop.
        why: Stop,
        /// Where it stopped, and what is allowed.
        problem: String,
    },
    /// The memory node did not respond in time: the node may be down or busy, or the network may
    /// be. A read was not done; whether a write or an atomic was done is unknown.
    #[error(
        "{node} did not answer within {waited_ms} ms: a read was not done, of anything else it is \
         not known"
    )]
    NoAnswer {
        /// The node's address or number.
        node: String,
        /// Time for which the operation was tried, in milliseconds.
        waited_ms: u64,
    },
    /// The simulated fabric lost a message of the operation. A read was not done; whether a write
    /// or an atomic was done is unknown.
    #[error("lost by the simulated fabric")]
    Lost,
    /// The thread now holds the lock, but its former holder died: the guarded data may be half
    /// changed. Repair the data, or unlock.
    #[error("the lock at {address} is this thread's; who held it died")]
    OwnerDied {
        /// Address of the lock's word.
        address: Address,
    },
    /// The memory node restarted: its memory and the process are lost. New threads of the pool use
    /// the restarted node.
    #[error("{node} was started anew: what was on it is gone")]
    Restarted {
        /// The node's address or number.
        node: String,
    },
    /// The process and its memory are gone: its lease expired, its pool was closed, or an operator
    /// of the node ended it.
    #[error(
        "{node} has ended the process: its lease was over, its pool was closed, or an operator \
         ended it"
    )]
    ProcessEnded {
        /// The node's address or number.
        node: String,
    },
    /// The memory node is shutting down and accepts no new process. Another node may.
    #[error("{node} is about to end, and takes no new process")]
    Ending {
        /// The node's address or number.
        node: String,
    },
    /// This process is a fork of the process that opened the pool; the parent owns its threads and
    /// memory. Nothing was sent. The fork can open a pool of its own.
    #[error("the pool is the parent process's: after a fork the child opens one of its own")]
    Forked,
    /// The memory node refuses the operation for a reason of its own.
    #[error("{node}: {problem}")]
    Refused {
        /// The node's address or number.
        node: String,
        /// The node's reason.
        problem: String,
    },
    /// The pool was closed while operations still waited for a lock that another thread holds, or
    /// for a time. They were not done.
    #[error(
        "the pool was closed with {operations} of its operations still waiting after {waited_ms} \
         ms, one {wait}"
    )]
    StillWaiting {
        /// Number of operations that still waited.
        operations: usize,
        /// Lock or time that one of them waits for.
        wait: Wait,
        /// Time that the pool waited for them, in milliseconds.
        waited_ms: u64,
    },
    /// An invariant of the simulated fabric is violated: its results cannot be trusted.
    #[error("invariant violated: {what}")]
    Violated {
        /// The invariant, and where it is violated.
        what: String,
    },
}

fn places(address: Address, bytes: u64) -> String {
    match bytes {
        0 => format!("an access at {address} is"),
        bytes => format!("{bytes} B at {address} are"),
    }
}

/// What an operation waits for other than a response.
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
    /// The error for a failed operation at a memory node.
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

    /// True if the same operation may succeed when it is retried.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Error::Full { .. }) || self.is_uncertain()
    }

    /// True if a write or an atomic that ended with this error may or may not have been done.
    #[must_use]
    pub const fn is_uncertain(&self) -> bool {
        matches!(self, Error::Lost | Error::NoAnswer { .. })
    }
}
