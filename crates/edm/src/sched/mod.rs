//! The grant scheduler in the switch (sections 3.1.1 and 3.1.2): priority PIM over one notification
//! queue per destination.
//!
//! Two forms share one rule set (`rule.rs`). [`Scheduler`] is driven by events and takes time only
//! where something changes. [`CycleScheduler`] is clocked, holds what registers would hold, and is
//! the reference model of the hardware. A property test holds both to equal grants at equal times.
//! `docs/internals/grant-scheduler.md` has the rules and the rejected alternatives.

mod cycle;
mod event;
mod late;
mod lists;
mod ports;
mod queues;
mod releases;
mod request;
mod rule;
mod slab;
mod stats;

pub(crate) use rule::CYCLES_PER_ITERATION;

pub use cycle::{CycleGrant, CycleScheduler};
pub use event::Scheduler;
pub use rule::{Demand, Flow, Grant, NotifyError, SchedulerConfig};
pub use stats::SchedulerStats;
