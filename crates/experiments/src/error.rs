//! Errors of experiments.

use std::process::ExitStatus;

use ethermem_sim::SourceError;
use ethermem_sim::engine::RunError;
use ethermem_sim::output::OutputError;
use ethermem_sim::run::RunFailure;
use ethermem_sim::scenario::SettingError;
use ethermem_sim::sweep::{JournalError, SessionError};
use ethermem_sim::workload::{InputError, WriteTraceError};
use thiserror::Error as Derived;

/// The reason why an experiment ended early. Its text is one line for people.
#[derive(Debug, Derived)]
pub enum Error {
    /// Parts of the request contradict each other, or a required part is missing.
    #[error("{0}")]
    Request(String),
    /// A scenario, a trace or another named file cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A key or value that overrides a scenario cannot be used.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The messages of a run cannot be drawn or read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file of results cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The journal of a sweep cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A sweep cannot begin or end.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// Messages cannot be written as a trace.
    #[error(transparent)]
    WriteTrace(#[from] WriteTraceError),
    /// This machine or a program on it lacks what the experiment needs.
    #[error("{0}")]
    Machine(String),
    /// A pool cannot be opened.
    #[error(transparent)]
    Pool(#[from] ethermem::OpenError),
    /// The memory of a program cannot be served.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[error(transparent)]
    Pager(#[from] ethermem_pager::Error),
    /// A program cannot be profiled.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[error(transparent)]
    Profile(#[from] ethermem_pager::ProfileError),
    /// The lines of a program cannot be recorded.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[error(transparent)]
    LineProfile(#[from] ethermem_pager::LineProfileError),
    /// The measured program failed.
    #[error("the program failed: {0}")]
    Ended(ExitStatus),
    /// An invariant is violated, which is a defect of ethermem.
    #[error("{what}")]
    Broken {
        /// The invariant, and what was found.
        what: String,
        /// Command that repeats the run, including its seed.
        command: String,
    },
    /// The caller interrupted the experiment.
    #[error("interrupted {0}")]
    Interrupted(String),
}

impl Error {
    /// The error of a run, for the caller whose `command` repeats it.
    #[must_use]
    pub fn of_run(failure: RunFailure, command: &str) -> Error {
        match failure {
            RunFailure::Run(RunError::Source(error)) => error.into(),
            failure @ (RunFailure::Run(RunError::Violation(_)) | RunFailure::Panicked(_)) => {
                Error::Broken { what: failure.to_string(), command: command.to_owned() }
            }
            RunFailure::Output(error) => error.into(),
            RunFailure::Interrupted(ended) => Error::Interrupted(format!("after {ended} messages")),
        }
    }
}

#[cfg(test)]
mod tests {
    use ethermem_sim::engine::Violation;

    use super::*;

    #[test]
    fn a_broken_invariant_is_no_bad_input() {
        let panicked = RunFailure::Panicked("port 3 granted twice".to_owned());
        assert!(matches!(Error::of_run(panicked, "ethermem sim"), Error::Broken { .. }));
        let violation = RunError::Violation(Violation("granted 64 B, delivered 0 B".to_owned()));
        let error = Error::of_run(RunFailure::Run(violation), "ethermem sim s.toml --seed 7");
        let Error::Broken { what, command } = &error else { panic!("{error:?}") };
        assert_eq!(what, "invariant violated: granted 64 B, delivered 0 B");
        assert_eq!(command, "ethermem sim s.toml --seed 7");
    }
}
