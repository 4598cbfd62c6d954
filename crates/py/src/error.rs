//! Failures as Python exceptions, with the line that the command prints.

use ethermem_experiments::Error;
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

create_exception!(
    ethermem._native,
    ProgramError,
    EthermemError,
    "A program that was to be measured failed; the line says how it ended."
);

/// The reason why a call has no result.
pub(crate) enum Failure {
    Input(String),
    File(String),
    Broken {
        what: String,
        /// Command that repeats the call.
        command: String,
    },
    /// This machine cannot do what was requested.
    Machine(String),
    /// A measured program failed.
    Program(String),
    /// A signal interrupted the call.
    Interrupted,
}

impl Failure {
    /// A run's failure, for the caller whose call `command` repeats.
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

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let line = error.to_string();
        match error {
            Error::Input(error) => error.into(),
            Error::Session(error) => error.into(),
            Error::Output(_) | Error::Journal(_) | Error::WriteTrace(_) => Failure::File(line),
            Error::Broken { what, command } => Failure::Broken { what, command },
            Error::Interrupted(_) => Failure::Interrupted,
            Error::Machine(_) => Failure::Machine(line),
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            Error::Pager(_) | Error::Profile(_) | Error::LineProfile(_) => Failure::Machine(line),
            Error::Ended(_) => Failure::Program(line),
            Error::Request(_) | Error::Setting(_) | Error::Source(_) | Error::Pool(_) => {
                Failure::Input(line)
            }
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
            Failure::Machine(line) => EthermemError::new_err(line),
            Failure::Program(line) => ProgramError::new_err(line),
            Failure::Interrupted => PyKeyboardInterrupt::new_err(()),
        }
    }
}
