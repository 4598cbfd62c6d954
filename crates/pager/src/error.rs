//! What can go wrong before a program runs, and while it does.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// Why a program did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No command was given.
    #[error("no program is named; give one behind `--`")]
    NoProgram,
    /// The shell would not find it either.
    #[error("{}: no such program in PATH", program.display())]
    NotFound {
        /// As it was given.
        program: OsString,
    },
    /// The kernel would not start it.
    #[error("{}: {error}", path.display())]
    Start {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Neither an ELF program of 64 bits nor a script.
    #[error("{}: neither a 64-bit program of this machine nor a script with `#!`", path.display())]
    Format {
        /// Its file.
        path: PathBuf,
    },
    /// The agent could not be written into it.
    #[error("{}: the pager's agent could not be written into it: {error}", path.display())]
    Inject {
        /// Its file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The kernel does not give what is needed.
    #[error(
        "userfaultfd: {error}; needed are Linux 6.8 or later with CONFIG_USERFAULTFD, and root or \
         CAP_SYS_PTRACE (faults of the kernel and forks must be served, too)"
    )]
    Faults {
        /// What the kernel said.
        error: io::Error,
    },
    /// The pool gives no thread.
    #[error("the pool: {error}")]
    Pool {
        /// Why.
        error: ethermem::Error,
    },
    /// The agent's image could not be written.
    #[error("the agent cannot be written to the folder of temporary files: {0}")]
    Image(io::Error),
    /// A call of the kernel failed that never should.
    #[error("{what}: {error}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        error: io::Error,
    },
    /// Pages were lost, so the program was ended.
    #[error("the program was killed, as its memory was lost: {0}")]
    Lost(String),
}
