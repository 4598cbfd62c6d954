//! Accesses with addresses, for fabrics whose compute nodes cache lines of memory nodes.
//!
//! The caller has the memory of the memory nodes. It submits accesses with their bytes; the fabric
//! asks it for a line that a memory node reads, and gives it the bytes that one writes.

use ethermem_workload::NodeIndex;

/// Bytes of a line.
pub const LINE_BYTES: usize = 64;

/// The new word of an atomic, from the word before.
pub type Modify = Box<dyn FnOnce(u64) -> u64 + Send>;

/// What a message does with addresses.
pub enum Placed {
    /// Reads as many bytes as the message has, from this address of the memory node on.
    Read(u64),
    /// Writes bytes, from this address of the memory node on.
    Write(u64, Vec<u8>),
    /// Replaces the little-endian word at this address.
    Modify(u64, Modify),
    /// Writes dirty lines of the compute node to their memory nodes: those of the ranges, or of all
    /// memory if there is none. The message ends once they are there.
    Clean {
        /// Ranges of memory.
        ranges: Vec<LineRange>,
        /// True if the cache keeps none of the lines.
        drops: bool,
    },
}

/// A range of a memory node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRange {
    /// The memory node.
    pub memory: NodeIndex,
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// An access of a memory node to a line of its memory, now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineAccess {
    /// The line is read; [`LineCaches::supply`] gives its bytes.
    Read {
        /// The memory node.
        memory: NodeIndex,
        /// Address of the line.
        address: u64,
        /// The name of the access.
        access: u64,
    },
    /// The bytes of the mask are written.
    Write {
        /// The memory node.
        memory: NodeIndex,
        /// Address of the line.
        address: u64,
        /// Bit `n` is set if byte `n` is written.
        mask: u64,
        /// The bytes; those outside the mask do not matter.
        data: [u8; LINE_BYTES],
    },
}

/// What happened in the caches of all compute nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineCounters {
    /// Reads of lines that were in a cache.
    pub read_hits: u64,
    /// Reads of lines that were fetched, for them or for a read before.
    pub read_misses: u64,
    /// Writes of lines that were in a cache.
    pub write_hits: u64,
    /// Writes of lines that were not.
    pub write_misses: u64,
    /// Dirty lines that had to go for another line.
    pub evictions: u64,
}

impl LineCounters {
    /// Share of accesses that needed no line of a memory node: hits, and writes of lines that were
    /// allocated without fetching. `None` before the first access.
    #[must_use]
    pub fn hit_rate(&self) -> Option<f64> {
        let hits = self.read_hits + self.write_hits;
        let all = hits + self.read_misses + self.write_misses;
        (all > 0).then(|| hits as f64 / all as f64)
    }
}

/// The caches of a fabric's compute nodes.
pub trait LineCaches {
    /// Says, before the first message, that messages may have addresses.
    fn begin(&mut self);

    /// Says what the message does that is submitted next. `name` is of the caller's choice.
    fn place(&mut self, name: u64, placed: Placed);

    /// The bytes that an ended message has read, or the word before an atomic.
    fn take(&mut self, name: u64) -> Option<Vec<u8>>;

    /// True if [`LineCaches::ask`] has something.
    fn is_asking(&self) -> bool;

    /// The next access to memory. The caller does it before time passes.
    fn ask(&mut self) -> Option<LineAccess>;

    /// Gives the line of [`LineAccess::Read`].
    fn supply(&mut self, memory: NodeIndex, access: u64, data: [u8; LINE_BYTES]);
}
