//! Errors before a program runs and during its run.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

/// The reason why a program did not run, or not to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No command was given.
    #[error("no program is named; give one behind `--`")]
    NoProgram,
    /// No executable file has this name; the shell would not find it either.
    #[error("{}: no such program in PATH", program.display())]
    NotFound {
        /// Name as given.
        program: OsString,
    },
    /// Loads and stores cannot be traced.
    #[error("no valgrind in PATH: install the package valgrind (Debian: apt install valgrind)")]
    NoTracer,
    /// The kernel refused to start the program.
    #[error("{}: {error}", path.display())]
    Start {
        /// The program's file.
        path: PathBuf,
        /// The kernel's error.
        error: io::Error,
    },
    /// The file is neither a 64-bit ELF program nor a script.
    #[error("{}: neither a 64-bit program of this machine nor a script with `#!`", path.display())]
    Format {
        /// The program's file.
        path: PathBuf,
    },
    /// The agent could not be written into the program.
    #[error("{}: the pager's agent could not be written into it: {error}", path.display())]
    Inject {
        /// The program's file.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The kernel lacks a required feature or permission.
    #[error(
        "userfaultfd: {error}; needed are Linux 6.8 or later with CONFIG_USERFAULTFD, and root or \
         CAP_SYS_PTRACE (faults of the kernel and forks must be served, too)"
    )]
    Faults {
        /// The kernel's error.
        error: io::Error,
    },
    /// The pool could not provide a thread.
    #[error("the pool: {error}")]
    Pool {
        /// The pool's error.
        error: ethermem::Error,
    },
    /// The agent's image could not be written.
    #[error("the agent cannot be written to the folder of temporary files: {0}")]
    Image(io::Error),
    /// A system call failed that should never fail.
    #[error("{what}: {error}")]
    System {
        /// What the pager tried.
        what: &'static str,
        /// The kernel's error.
        error: io::Error,
    },
    /// Pages were lost, so the program was killed.
    #[error("the program was killed, as its memory was lost: {0}")]
    Lost(String),
}
