//! Experiments: a request, its runs, its results as data, and the page made of them.
//!
//! Each module is one experiment. Its request is a plain struct, which a face (the command, Python)
//! fills in. Its result serializes to the output of `--format json`, and provides the table and the
//! page as values. A [`Runner`] sets the number of threads of the runs, what interrupts them, and
//! the command that repeats them. Nothing here parses a command line or prints: a [`Face`] shows
//! progress and notes. `docs/internals/experiments.md` gives the reasons.

pub mod bench;
pub mod capacity;
pub mod compare;
pub mod ddc;
pub mod error;
pub mod fabrics;
pub mod face;
mod folder;
pub mod latency;
pub mod lines;
#[cfg(feature = "operate")]
pub mod operate;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub mod recorded;
pub mod remote;
pub mod replay;
pub mod report;
pub mod rtl;
pub mod runner;
pub mod selection;
pub mod simulate;
pub mod sweep;
pub mod words;
pub mod workload;

pub use error::Error;
pub use face::{Expected, Face, Progress, Silent};
pub use runner::{Runner, threads_default};
