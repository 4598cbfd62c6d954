//! Measurements on every pool.

mod micro;
mod ycsb;

use std::sync::atomic::AtomicBool;

/// Nobody interrupts a test.
static NEVER: AtomicBool = AtomicBool::new(false);
