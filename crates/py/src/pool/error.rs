//! Failed operations as Python exceptions.

use ethermem::Error;
use pyo3::create_exception;
use pyo3::prelude::*;

use crate::error::{EthermemError, InputError, InvariantError};

create_exception!(
    ethermem._native,
    PoolError,
    EthermemError,
    "An operation was not done. `retryable` says whether the same may be done if tried again."
);
create_exception!(
    ethermem._native,
    UnmappedError,
    PoolError,
    "Some of the bytes are in no region that the process has."
);
create_exception!(
    ethermem._native,
    AccessError,
    PoolError,
    "The process has no permission to do this there."
);
create_exception!(
    ethermem._native,
    LengthError,
    PoolError,
    "Nothing was asked for, or too much at once."
);
create_exception!(
    ethermem._native,
    MisalignedError,
    PoolError,
    "An atomic or a lock is not at a multiple of 8."
);
create_exception!(
    ethermem._native,
    FullError,
    PoolError,
    "The memory node has no room; it may have some once regions are freed."
);
create_exception!(ethermem._native, NotHeldError, PoolError, "The thread does not hold the lock.");
create_exception!(ethermem._native, NodeError, PoolError, "The pool has no such node.");
create_exception!(
    ethermem._native,
    OffloadError,
    PoolError,
    "The memory node knows no such operation, or the operation failed."
);
create_exception!(
    ethermem._native,
    OffloadStoppedError,
    OffloadError,
    "The operation was stopped: it did what no program may, or used up what it may have."
);
create_exception!(
    ethermem._native,
    EndingError,
    PoolError,
    "The memory node is about to end, and takes no new process."
);
create_exception!(
    ethermem._native,
    ForkedError,
    PoolError,
    "The pool is the parent process's: after a fork the child opens one of its own."
);
create_exception!(
    ethermem._native,
    LostError,
    PoolError,
    "The fabric lost a message: a read was not done, of a write or an atomic it is not known."
);

create_exception!(
    ethermem._native,
    NoAnswerError,
    LostError,
    "The memory node did not answer in time. A read was not done, of a write it is not known."
);
create_exception!(
    ethermem._native,
    StalledError,
    PoolError,
    "The operation waits for another one of this program that nobody goes on with."
);
create_exception!(
    ethermem._native,
    OwnerDiedError,
    PoolError,
    "The lock is this thread's, and whoever had it died: what it guards may be half changed."
);
create_exception!(
    ethermem._native,
    RestartedError,
    PoolError,
    "The memory node was started anew: all that was on it is gone."
);
create_exception!(
    ethermem._native,
    ProcessEndedError,
    PoolError,
    "The process is no more, and its memory is gone."
);
create_exception!(
    ethermem._native,
    RefusedError,
    PoolError,
    "The memory node refuses it, for a reason of its own."
);
create_exception!(
    ethermem._native,
    UncertainError,
    LostError,
    "An operation of a store may have been done: no answer came to the message that decides."
);
create_exception!(
    ethermem._native,
    UnreachableError,
    PoolError,
    "The memory node is not there, or does not answer."
);

/// The exception for an error of a pool, or of a store on one.
pub(crate) fn raised(error: impl Into<ethermem_kv::Error>) -> PyErr {
    let error = error.into();
    let line = error.to_string();
    match error {
        ethermem_kv::Error::Pool(error) => raised_by_pool(&error, line),
        ethermem_kv::Error::KeyTooLong { .. }
        | ethermem_kv::Error::ValueTooLong { .. }
        | ethermem_kv::Error::BufferTooShort { .. } => LengthError::new_err(line),
        ethermem_kv::Error::BadConfig { .. } => InputError::new_err(line),
        ethermem_kv::Error::BadAnswer { .. } | ethermem_kv::Error::Damaged { .. } => {
            OffloadError::new_err(line)
        }
        ethermem_kv::Error::Uncertain(_) => UncertainError::new_err(line),
    }
}

fn raised_by_pool(error: &Error, line: String) -> PyErr {
    match error {
        Error::Unmapped { .. } => UnmappedError::new_err(line),
        Error::Permission { .. } => AccessError::new_err(line),
        Error::Empty { .. } | Error::TooLong { .. } => LengthError::new_err(line),
        Error::Misaligned { .. } => MisalignedError::new_err(line),
        Error::Full { .. } => FullError::new_err(line),
        Error::NotHeld { .. } => NotHeldError::new_err(line),
        Error::NoSuchNode { .. } => NodeError::new_err(line),
        Error::NoSuchOffload { .. } | Error::Offload { .. } => OffloadError::new_err(line),
        Error::OffloadStopped { .. } => OffloadStoppedError::new_err(line),
        Error::Ending { .. } => EndingError::new_err(line),
        Error::Forked => ForkedError::new_err(line),
        Error::StillWaiting { .. } => StalledError::new_err(line),
        Error::Lost => LostError::new_err(line),
        Error::NoAnswer { .. } => NoAnswerError::new_err(line),
        Error::OwnerDied { .. } => OwnerDiedError::new_err(line),
        Error::Restarted { .. } => RestartedError::new_err(line),
        Error::ProcessEnded { .. } => ProcessEndedError::new_err(line),
        Error::Refused { .. } => RefusedError::new_err(line),
        Error::Violated { .. } => InvariantError::new_err(line),
    }
}

/// Sets the attribute `retryable` of the classes.
pub(crate) fn mark_retryable(py: Python<'_>) -> PyResult<()> {
    py.get_type::<PoolError>().setattr("retryable", false)?;
    py.get_type::<FullError>().setattr("retryable", true)?;
    py.get_type::<LostError>().setattr("retryable", true)?;
    py.get_type::<UnreachableError>().setattr("retryable", true)
}
