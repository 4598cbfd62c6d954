//! EDM as pure state machines: host, switch and grant scheduler, given the time, doing no I/O.

pub mod budget;
mod config;
mod sched;

pub use config::{Arbitration, EdmConfig, Order, Policy};
pub use sched::{
    CycleGrant, CycleScheduler, Demand, Flow, Grant, NotifyError, Scheduler, SchedulerConfig,
    SchedulerStats,
};
