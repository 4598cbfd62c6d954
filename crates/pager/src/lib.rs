//! Transparent remote memory for programs that know nothing of it.
//!
//! [`run()`] starts a program with a limit on how much of its private memory is local. Pages above
//! the limit live in a store, and the kernel's userfaultfd brings them back when they are touched.
//! See docs/internals/pager.md.

#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

mod affinity;
mod agent;
mod changes;
#[doc(hidden)]
pub mod claim;
mod counted;
mod counts;
mod delay;
mod door;
mod emulate;
mod error;
mod evict;
mod executed;
mod fault;
mod follow;
mod inject;
mod keeper;
mod launch;
mod limit;
mod lines;
mod memory_map;
mod order;
mod pager;
mod peer;
mod place;
mod pool_store;
mod process;
mod processors;
mod profile;
#[doc(hidden)]
pub mod protocol;
mod queue;
mod ranges;
mod record;
mod requests;
mod run;
mod standby;
mod store;
mod stream;
mod table;
mod threads;
mod tracer;
mod waits;

pub use counted::{Counted, CountedRun};
pub use counts::Counts;
pub use delay::Delay;
pub use emulate::{
    Accuracy, DelayedRun, Emulated, Emulation, Estimate, LOSS_MAX, Network, Repeats, Verdict,
    correlation, emulate, emulate_once,
};
pub use error::Error;
pub use launch::end_as;
pub use lines::{LineOptions, LineProfile, LineProfileError, profile_lines};
pub use pager::Local;
pub use place::Placement;
pub use profile::{Interval, Profile, ProfileError, measure_peak, profile, shown};
pub use record::{Nothing, Recorder};
pub use run::{BY_ITSELF_MAX, Options, Outcome, hold_signals, run};
