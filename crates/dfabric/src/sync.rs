//! Atomics for [`crate::ring`]. Its model check substitutes a `sync` of its own.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering};

/// Runs a test of the ring; the model check runs the same tests in its own scheduler.
#[cfg(test)]
pub(crate) fn check(test: impl Fn() + Sync + Send + 'static) {
    test();
}
