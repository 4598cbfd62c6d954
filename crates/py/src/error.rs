//! Failures as Python raises them: the line that the command prints.

use ethermem_sim::engine::RunError;
use ethermem_sim::output::OutputError;
use ethermem_sim::run::RunFailure;
use ethermem_sim::scenario::SettingError;
use ethermem_sim::sweep::{JournalError, SessionError};
use ethermem_sim::workload::InputError as Refused;
use pyo3::PyErr;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};

create_exception!(ethermem._native, EthermemError, PyException, "Any failure of ethermem.");
create_exception!(
    ethermem._native,
    InputError,
    EthermemError,
    "What was given cannot be used; the line says what, where, and what is allowed."
);
create_exception!(
    ethermem._native,
    FileError,
    EthermemError,
    "A file cannot be read or written; the line says which, and why."
);
create_exception!(
    ethermem._native,
    InvariantError,
    EthermemError,
    "A run broke an invariant, which is a defect of ethermem; the command repeats it."
);

/// Why a call has no result.
pub(crate) enum Failure {
    Input(String),
    File(String),
    Broken {
        what: String,
        /// Repeats it.
        command: String,
    },
    /// Ended by a signal.
    Interrupted,
}

impl Failure {
    /// What a run's failure is to the person whose call `command` repeats.
    pub(crate) fn of_run(failure: &RunFailure, command: &str) -> Failure {
        match failure {
            RunFailure::Run(RunError::Source(error)) => Failure::Input(error.to_string()),
            RunFailure::Run(RunError::Violation(_)) | RunFailure::Panicked(_) => {
                Failure::Broken { what: failure.to_string(), command: command.to_owned() }
            }
            RunFailure::Output(error) => Failure::File(error.to_string()),
            RunFailure::Interrupted(_) => Failure::Interrupted,
        }
    }
}

impl From<Refused> for Failure {
    fn from(error: Refused) -> Failure {
        let line = error.to_string();
        if error.is_unusable() { Failure::File(line) } else { Failure::Input(line) }
    }
}

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Failure {
        Failure::Input(error.to_string())
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Failure {
        Failure::File(error.to_string())
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Failure {
        Failure::File(error.to_string())
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Failure {
        match error {
            SessionError::Input(error) => error.into(),
            SessionError::Journal(error) => error.into(),
            SessionError::Output(error) => error.into(),
        }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> PyErr {
        match failure {
            Failure::Input(line) => InputError::new_err(line),
            Failure::File(line) => FileError::new_err(line),
            Failure::Broken { what, command } => InvariantError::new_err(format!(
                "{what}; this is a defect of ethermem; repeat it with: {command}"
            )),
            Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}
