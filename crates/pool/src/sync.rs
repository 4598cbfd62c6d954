//! Synchronization primitives for [`crate::wait`]. Its model check substitutes a `sync` of its own.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};
