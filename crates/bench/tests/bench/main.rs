//! Tests of measurements, on every pool.

mod cxl_cache;
mod micro;
mod ycsb;

use std::sync::atomic::AtomicBool;

/// A flag that is never set: tests are not interrupted.
static NEVER: AtomicBool = AtomicBool::new(false);
