//! An application's needs of a network: its page traces, replayed on every fabric.
//!
//! [`Replay::draw`] splits traced machines into blades and embeds many such clusters in one
//! network, as the study of requirements for disaggregation does (OSDI 2016, section 4).
//! [`network()`] is that study's network; [`Outcome`] is a fabric's result. [`ddc`] is the study's
//! latency budget. [`Recordings`] adds traces of disks and the network, and [`attribute`] says
//! which reads served another machine. [`lines`] replays single cache lines, through a cache at the
//! compute node. The crate neither simulates, which is `sim`'s task, nor records traces.

mod arrivals;
mod attribution;
mod cluster;
pub mod ddc;
pub mod lines;
mod machine;
mod network;
mod offered;
mod outcome;
mod recorded;
mod replay;
mod transfers;

pub use arrivals::Arrivals;
pub use attribution::{LocalRead, MatchRule, Matches, Transfer, attribute};
pub use cluster::{Blades, Embedding, Scope};
pub use machine::{ACCESSES_MAX, Machine, Part};
pub use network::network;
pub use offered::{Direction, Offered};
pub use outcome::{Outcome, Quantile, Times, write_completions};
pub use recorded::{Attribution, Recording, Recordings};
pub use replay::{Flows, Plan, Replay};
