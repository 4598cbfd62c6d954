//! The grant scheduler in the switch (sections 3.1.1 and 3.1.2): priority PIM over one
//! notification queue per destination.
//!
//! Two forms of one rule set (`rule.rs`): [`Scheduler`] is driven by events and costs time only
//! where something changes; [`CycleScheduler`] is clocked, holds what registers would hold, and is
//! the reference model of the hardware. A property test holds both to the same grants at the same
//! times. `docs/internals/grant-scheduler.md` has the rules and what was rejected.

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
