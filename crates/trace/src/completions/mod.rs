//! Completion times of each access on a simulated fabric, for programs that inject them.

mod read;
mod write;

use ethermem_units::{Bytes, Ps};

pub use read::CompletionTimes;
pub use write::CompletionWriter;

use crate::FlowKind;

/// Metadata key that marks the file and its format version.
const VERSION_KEY: &str = "ethermem.completion_times";
const VERSION: &str = "1";
/// Metadata key that lists the fabrics of a file, separated by commas.
const FABRICS_KEY: &str = "fabrics";

/// The columns, in the order in which they are written.
const SCHEMA: &str = "
    message ethermem_completion_times {
        required binary fabric (STRING);
        required double time_ns;
        required int32 cluster (INTEGER(16, false));
        required int32 compute (INTEGER(16, false));
        required int32 memory (INTEGER(16, false));
        required binary kind (STRING);
        required int32 bytes (INTEGER(32, false));
        required double completion_ns;
        required double alone_ns;
        required boolean prefetched;
    }
";

/// One completed access on a simulated fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Time of the request.
    pub time: Ps,
    /// Cluster of the requesting machine, from 0.
    pub cluster: u16,
    /// Node that sent the request.
    pub compute: u16,
    /// Node that holds the memory or the disk, or receives the data of a network flow.
    pub memory: u16,
    /// What moved, and its direction.
    pub kind: FlowKind,
    /// Number of bytes of data.
    pub bytes: Bytes,
    /// Time from the request to its completion.
    pub completion: Ps,
    /// Completion time without other traffic.
    pub alone: Ps,
    /// True if no thread waits for it.
    pub prefetched: bool,
}
