//! Caches of a processor: which of a program's loads and stores leave them, line by line.
//!
//! [`Hierarchy`] is three levels of [`Array`]; its output is the traffic that a memory behind the
//! last level sees. [`prefetch`] guesses the next lines of such traffic. [`lackey`] reads the text
//! of the tracer that gives the loads and stores. All of it is pure: no file, no clock, no thread.

mod array;
mod hierarchy;
pub mod lackey;
pub mod prefetch;

pub use array::{Array, GEOMETRY_BYTES_MAX, Geometry, WAYS_MAX};
pub use hierarchy::{Counts, Hierarchy, LEVELS, Levels, Traffic, TrafficKind};

/// Bytes of a line in every cache.
pub const LINE_BYTES: u64 = 64;
/// Bytes of a page of virtual memory.
pub const PAGE_BYTES: u64 = 4096;
/// Lines of a page.
pub const PAGE_LINES: u64 = PAGE_BYTES / LINE_BYTES;
