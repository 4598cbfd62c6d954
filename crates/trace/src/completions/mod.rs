//! Completion times: how long each access of a simulated fabric took, for those who inject them.

mod read;
mod write;

use ethermem_units::{Bytes, Ps};

pub use read::CompletionTimes;
pub use write::CompletionWriter;

use crate::AccessKind;

/// The key of a file's metadata that says what it is, and the version of the format.
const VERSION_KEY: &str = "ethermem.completion_times";
const VERSION: &str = "1";
/// The key that lists the fabrics of a file, separated by commas.
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

/// One access of a simulated fabric that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When it was asked for.
    pub time: Ps,
    /// Whose machine asked: clusters are counted from 0.
    pub cluster: u16,
    /// The node that asked.
    pub compute: u16,
    /// The node that holds the memory.
    pub memory: u16,
    /// Which way its data went.
    pub kind: AccessKind,
    /// How many bytes of data.
    pub bytes: Bytes,
    /// From when it was asked for until it was done.
    pub completion: Ps,
    /// The same with nothing else in the fabric.
    pub alone: Ps,
    /// Whether no thread waits for it.
    pub prefetched: bool,
}
