//! Atomics for [`crate::line`].

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
