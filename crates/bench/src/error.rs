//! Errors of measurements.

use ethermem::OpenError;

/// The reason why a measurement has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// The request is not allowed.
    #[error("{0}")]
    Refused(String),
    /// The URL opens no pool.
    #[error("pool {url}: {error}")]
    Open {
        /// URL that was given.
        url: String,
        /// The cause.
        error: OpenError,
    },
    /// The pool has too little memory for the measurement.
    #[error("pool {url}: {needed}: {error}")]
    Load {
        /// URL of the pool.
        url: String,
        /// Memory that is needed.
        needed: String,
        /// The pool's error.
        error: ethermem::Error,
    },
    /// An operation failed.
    #[error("pool {url}: {op}: {error}")]
    Failed {
        /// URL of the pool.
        url: String,
        /// The operation.
        op: &'static str,
        /// The pool's error.
        error: ethermem::Error,
    },
    /// A record differs from what was written.
    #[error("pool {url}: record {record} holds what nobody wrote")]
    Corrupt {
        /// URL of the pool.
        url: String,
        /// Number of the record.
        record: u64,
    },
    /// The measurement was interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// True if the error is a defect of this program or of the pool, and not of the input.
    #[must_use]
    pub fn is_defect(&self) -> bool {
        let violated = |error: &ethermem::Error| matches!(error, ethermem::Error::Violated { .. });
        match self {
            BenchError::Corrupt { .. } => true,
            BenchError::Failed { error, .. } => violated(error),
            _ => false,
        }
    }
}
