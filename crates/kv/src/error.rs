//! Why the store did not do something.

/// Longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Longest value: with any key it fits the longest block.
pub const VALUE_BYTES_MAX: usize = (64 << 20) - KEY_BYTES_MAX - crate::record::HEADER_BYTES;

/// Why an operation was not done, or a store not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pool did not do its part; [`ethermem::Error::Full`] among others. The operation was not
    /// done.
    #[error(transparent)]
    Pool(#[from] ethermem::Error),
    /// The message that decides was sent, and no answer came: the operation may have been done. It
    /// was done whole or not at all, key by key.
    #[error("it may have been done: {0}")]
    Uncertain(ethermem::Error),
    /// The key is too long.
    #[error("a key of {bytes} B: allowed are 0 to {KEY_BYTES_MAX}")]
    KeyTooLong {
        /// Its length.
        bytes: usize,
    },
    /// The value is too long.
    #[error("a value of {bytes} B: allowed are 0 to {VALUE_BYTES_MAX}")]
    ValueTooLong {
        /// Its length.
        bytes: usize,
    },
    /// A part of the configuration cannot be so.
    #[error("{what}: allowed are {allowed}")]
    BadConfig {
        /// What was found.
        what: String,
        /// What would do.
        allowed: String,
    },
    /// A record is not what was written, and nothing has replaced it.
    #[error("a damaged record on memory node {memory}")]
    Damaged {
        /// Which.
        memory: u16,
    },
    /// The memory node answered what no node of this version does.
    #[error("an answer of memory node {memory} that is none")]
    BadAnswer {
        /// Which.
        memory: u16,
    },
}

impl Error {
    /// Of the message that decides: what it becomes depends on whether the node may have acted.
    pub(crate) fn of_decision(error: ethermem::Error) -> Error {
        if may_have_acted(&error) { Error::Uncertain(error) } else { Error::Pool(error) }
    }

    /// The answer to the message that decides is none.
    pub(crate) fn uncertain_answer(memory: u16) -> Error {
        let name = crate::node::KeyValue::NAME.to_owned();
        let problem = format!("an answer of memory node {memory} that is none");
        Error::Uncertain(ethermem::Error::Offload { name, problem })
    }

    /// The same error, of an operation that had done a part before.
    pub(crate) fn after_a_part(self) -> Error {
        match self {
            Error::Pool(error) => Error::Uncertain(error),
            Error::BadAnswer { memory } => Error::uncertain_answer(memory),
            other => other,
        }
    }
    /// Whether the same operation may be done if it is tried again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Error::Pool(error) | Error::Uncertain(error) if error.is_retryable())
    }
}

/// Whether a node may have done what ended with this error. A refusal by the node is among these:
/// the message may have been sent again after the node acted on it, and been refused then.
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
