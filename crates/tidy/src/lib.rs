//! The style of this repository, as a test.
//!
//! A rule is a function from the tracked files ([`Tree`]) to its findings ([`Findings`]). A finding
//! names the file, the line, what is wrong and what to write instead. `tests/tidy.rs` runs every
//! rule on this repository. The tests at the foot of each module run it on a sample that breaks it,
//! because a rule that cannot fail guards nothing.
//!
//! The crate does not check formatting (rustfmt), general lints (clippy), or licences and
//! advisories (cargo-deny). A rule lives here only when no such tool knows it.

pub mod banned;
pub mod cli;
pub mod docs;
pub mod functions;
pub mod hardware;
pub mod history;
pub mod layout;
pub mod levels;
pub mod module_edges;
pub mod modules;
pub mod prose;
pub mod text;

mod findings;
mod rust;
mod tree;

pub use findings::{Findings, Violation};
pub use tree::{File, Tree};
