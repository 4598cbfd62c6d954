//! Why a measurement has no result.

use ethermem::OpenError;

/// Why a measurement has no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BenchError {
    /// What was asked for cannot be.
    #[error("{0}")]
    Refused(String),
    /// The URL opens no pool.
    #[error("pool {url}: {error}")]
    Open {
        /// What was given.
        url: String,
        /// Why not.
        error: OpenError,
    },
    /// The pool does not hold what was to be measured.
    #[error("pool {url}: {needed}: {error}")]
    Load {
        /// Which.
        url: String,
        /// What it takes.
        needed: String,
        /// What the pool says.
        error: ethermem::Error,
    },
    /// An operation failed.
    #[error("pool {url}: {op}: {error}")]
    Failed {
        /// Which.
        url: String,
        /// What was done.
        op: &'static str,
        /// Why it failed.
        error: ethermem::Error,
    },
    /// A record is not what was written.
    #[error("pool {url}: record {record} holds what nobody wrote")]
    Corrupt {
        /// Which.
        url: String,
        /// The record's number.
        record: u64,
    },
    /// It was asked to end.
    #[error("interrupted")]
    Interrupted,
}

impl BenchError {
    /// Whether it is a defect of this program or of the pool, and not of what was given.
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
