//! Traces of one program's accesses to remote memory: pages with their times, or cache lines with
//! the number of instructions before them. And completion times.
//!
//! A [`Writer`] takes accesses as they happen and a [`Summary`] at the end; a [`Trace`] returns
//! them in order of time. Both hold a bounded number of rows, whatever the length of the trace.
//! [`LineTrace`] and [`LineWriter`] are for lines. [`CompletionTimes`] are a simulated fabric's
//! results for such accesses. The crate does not record or run anything.

mod access;
mod check;
mod completions;
mod lines;
mod read;
mod recorded;
mod summary;
mod write;

pub use access::{ACCESS_BYTES_MAX, Access, AccessKind, FlowKind};
#[doc(hidden)]
pub use check::{check_completion_times, check_line_trace, check_page_trace};
pub use completions::{Completion, CompletionTimes, CompletionWriter};
pub use ethermem_files::{InputError, OutputError};
pub use lines::{LineAccess, LineSummary, LineTrace, LineWriteError, LineWriter};
pub use read::Trace;
pub use recorded::{DiskAccess, DiskTrace, NetworkTrace, Protocol, Segment, disk_files};
#[doc(hidden)]
pub use recorded::{check_disk_trace, check_network_trace};
pub use summary::{Ended, Summary};
pub use write::{REORDER_ROWS, WriteError, Writer};

/// The version of the format that this crate writes, and the only one that it reads.
pub const FORMAT_VERSION: u32 = 1;

/// The columns, in the order in which they are written.
const SCHEMA: &str = "
    message ethermem_page_trace {
        required int64 time_ns (INTEGER(64, false));
        required int32 process (INTEGER(32, false));
        required int32 thread (INTEGER(32, false));
        required int64 address (INTEGER(64, false));
        required int32 bytes (INTEGER(32, false));
        required binary kind (STRING);
        required boolean prefetched;
    }
";
