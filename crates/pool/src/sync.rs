//! Primitives that [`crate::wait`] is built of. Its model check has a `sync` of its own.

pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
pub(crate) use std::sync::{Condvar, Mutex};
