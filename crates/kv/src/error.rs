//! Why the store did not do something.

/// Longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// Longest value: with any key it fits the longest block.
pub const VALUE_BYTES_MAX: usize = (64 << 20) - KEY_BYTES_MAX - crate::record::HEADER_BYTES;

/// Why an operation was not done, or a store not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The pool did not do its part; [`ethermem::Error::Full`] among others.
    #[error(transparent)]
    Pool(#[from] ethermem::Error),
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
    /// The memory node answered what no node of this version does.
    #[error("an answer of memory node {memory} that is none")]
    BadAnswer {
        /// Which.
        memory: u16,
    },
}

impl Error {
    /// Whether the same operation may be done if it is tried again.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self, Error::Pool(error) if error.is_retryable())
    }
}
