//! The rate at which a compute node sends (section III.D): the control that chooses it, and the
//! token bucket that keeps to it.

mod bucket;
mod control;

pub use bucket::TokenBucket;
pub use control::{
    ControlConfig, ControlConfigError, ControlCounters, Mbps, Phase, RateControl, Signal,
};
