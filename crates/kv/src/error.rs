//! Errors of the store.

/// Longest key in bytes.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Longest value in bytes: with any key it fits the longest block.
pub const VALUE_BYTES_MAX: usize = (64 << 20) - KEY_BYTES_MAX - crate::record::HEADER_BYTES;

/// The reason why an operation was not done, or a store not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pool failed; [`ethermem::Error::Full`] is one such error. The operation was not done.
    #[error(transparent)]
    Pool(#[from] ethermem::Error),
    /// The message that decides was sent and no response arrived: the operation may have been done.
    /// Each key was changed entirely or not at all.
    #[error("it may have been done: {0}")]
    Uncertain(ethermem::Error),
    /// The key is too long.
    #[error("a key of {bytes} B: must be 0 to {KEY_BYTES_MAX}")]
    KeyTooLong {
        /// Length of the key in bytes.
        bytes: usize,
    },
    /// The value is too long.
    #[error("a value of {bytes} B: must be 0 to {VALUE_BYTES_MAX}")]
    ValueTooLong {
        /// Length of the value in bytes.
        bytes: usize,
    },
    /// The buffer is shorter than the value that it is to take.
    #[error("a buffer of {buffer} B: must be at least {value}, the value's length")]
    BufferTooShort {
        /// Length of the value in bytes.
        value: usize,
        /// Length of the buffer in bytes.
        buffer: usize,
    },
    /// A value of the configuration is not allowed.
    #[error("{what}: must be {allowed}")]
    BadConfig {
        /// What was found.
        what: String,
        /// What is allowed.
        allowed: String,
    },
    /// A record differs from what was written, and no new one has replaced it.
    #[error("a damaged record on memory node {memory}")]
    Damaged {
        /// Index of the memory node.
        memory: u16,
    },
    /// The memory node's answer is invalid in this version.
    #[error("an answer of memory node {memory} that is none")]
    BadAnswer {
        /// Index of the memory node.
        memory: u16,
    },
}

impl Error {
    /// The error of the message that decides: it depends on whether the node may have acted.
    pub(crate) fn of_decision(error: ethermem::Error) -> Error {
        if may_have_acted(&error) { Error::Uncertain(error) } else { Error::Pool(error) }
    }

    /// The error of an invalid answer to the message that decides.
    pub(crate) fn uncertain_answer(memory: u16) -> Error {
        let name = crate::node::KeyValue::NAME.to_owned();
        let problem = format!("an answer of memory node {memory} that is none");
        Error::Uncertain(ethermem::Error::Offload { name, problem })
    }

    /// This error for an operation of the same message that changes nothing.
    pub(crate) fn of_a_read(&self) -> Error {
        match self {
            Error::Uncertain(error) => Error::Pool(error.clone()),
            other => other.clone(),
        }
    }

    /// This error for an operation that had done a part before.
    pub(crate) fn after_a_part(self) -> Error {
        match self {
            Error::Pool(error) => Error::Uncertain(error),
            Error::BadAnswer { memory } => Error::uncertain_answer(memory),
            other => other,
        }
    }

    /// True if the same operation may succeed when it is retried.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Error::Pool(error) | Error::Uncertain(error) if error.is_retryable())
    }
}

/// True if a node may have acted although the request ended with this error. A refusal by the node
/// counts: a retransmitted message may be refused after the node acted on the first copy.
pub(crate) fn may_have_acted(error: &ethermem::Error) -> bool {
    use ethermem::Error::{Lost, NoAnswer, ProcessEnded, Refused, Restarted, Violated};
    matches!(
        error,
        Lost | NoAnswer { .. }
            | ProcessEnded { .. }
            | Refused { .. }
            | Restarted { .. }
            | Violated { .. }
    )
}
