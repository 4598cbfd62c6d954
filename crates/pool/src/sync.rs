//! Synchronization primitives for [`crate::wait`]. Its model check substitutes a `sync` of its own.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};

/// Runs a test of the rules of waiting; the model check runs the same tests in its own scheduler.
#[cfg(test)]
pub(crate) fn check(test: impl Fn() + Sync + Send + 'static) {
    test();
}
