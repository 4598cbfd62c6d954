//! Atomics for [`crate::line`]. Its model check substitutes a `sync` of its own.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// Runs a test of the words; the model check runs the same tests in its own scheduler.
#[cfg(test)]
pub(crate) fn check(test: impl Fn() + Sync + Send + 'static) {
    test();
}
