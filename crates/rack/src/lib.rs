//! Stream sockets between programs of one rack through shared memory: the rack's file, the launcher
//! of programs, and the rack's accounts.
//!
//! The part inside of programs is `preload/`, a library without a standard library that `build.rs`
//! compiles. [`mod@line`] and [`ledger`] and [`offer`] are the words that both share. See
//! `docs/internals/rack-sockets.md`.

mod accounts;
mod config;
mod launch;
pub mod ledger;
pub mod line;
pub mod nics;
pub mod offer;
pub mod shared;
mod sync;
mod uring;

pub use accounts::{Accounts, Report};
pub use config::{Config, Node};
pub use launch::run;

use std::path::PathBuf;

/// Why a program was not run in a rack.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The rack's file cannot be read, or is wrong.
    #[error("{}{}: {what}", path.display(), line.map_or(String::new(), |line| format!(":{line}")))]
    File {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, if the problem has one.
        line: Option<usize>,
        /// What was found, and what it must be.
        what: String,
    },
    /// The node is not in the file.
    #[error("node `{name}`: must be one of {known}")]
    Node {
        /// The name.
        name: String,
        /// The names of the file.
        known: String,
    },
    /// The rack's accounts cannot be opened.
    #[error("accounts {}: {what}", path.display())]
    Accounts {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The process of the rack's NICs cannot begin, or go on.
    #[error("NICs: {what}")]
    Nics {
        /// What is wrong.
        what: String,
    },
    /// The program cannot be started.
    #[error("{program}: {what}")]
    Program {
        /// The program.
        program: String,
        /// What is wrong with it.
        what: String,
    },
}
