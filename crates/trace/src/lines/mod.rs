//! Line traces: the accesses to memory that a program's caches leave.

mod read;
mod write;

use ethermem_files::{InputError, ParquetInput};
use ethermem_lines::{LINE_BYTES, Levels, TrafficKind};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::ChunkReader;

use crate::summary::{needed, number};
use crate::{Ended, FORMAT_VERSION};

pub use read::LineTrace;
pub use write::{LineWriteError, LineWriter};

/// Metadata key that marks the file.
const VERSION: &str = "ethermem.line_trace";
/// The columns, in the order in which they are written.
const SCHEMA: &str = "
    message ethermem_line_trace {
        required int64 instructions (INTEGER(64, false));
        required int64 address (INTEGER(64, false));
        required binary kind (STRING);
    }
";
const INSTRUCTIONS_MAX: u64 = i64::MAX as u64;
/// End of the address space of any program.
const ADDRESS_END_MAX: u64 = 1 << 63;

/// One access of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineAccess {
    /// Number of instructions that the program had begun, with the one that accesses.
    pub instructions: u64,
    /// Address of the line's first byte, in the program's virtual memory.
    pub address: u64,
    /// Kind of the access.
    pub kind: TrafficKind,
}

impl LineAccess {
    /// What a trace cannot hold, and what is allowed instead.
    pub(crate) fn check(&self) -> Result<(), String> {
        let LineAccess { instructions, address, .. } = *self;
        if instructions > INSTRUCTIONS_MAX {
            return Err(format!("instructions = {instructions}: must be 0 to {INSTRUCTIONS_MAX}"));
        }
        if !address.is_multiple_of(LINE_BYTES) || address >= ADDRESS_END_MAX {
            return Err(format!(
                "address = {address}: must be a multiple of {LINE_BYTES} below {ADDRESS_END_MAX}"
            ));
        }
        Ok(())
    }
}

/// Properties of a whole run, known at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineSummary {
    /// Command, quoted for a shell.
    pub command: String,
    /// How it ended.
    pub ended: Ended,
    /// The caches that left these accesses.
    pub levels: Levels,
    /// Number of instructions that ran.
    pub instructions: u64,
    /// Loads of lines by the whole run, whether in a cache or not.
    pub loads: u64,
    /// Stores to lines by the whole run.
    pub stores: u64,
    /// Number of accesses to memory without a row.
    pub unrecorded_accesses: u64,
}

impl LineSummary {
    fn notes(&self) -> Vec<KeyValue> {
        let [l1, l2, llc] = self.levels.0.map(|level| level.to_string());
        let notes = [
            (VERSION, FORMAT_VERSION.to_string()),
            ("line_bytes", LINE_BYTES.to_string()),
            ("l1", l1),
            ("l2", l2),
            ("llc", llc),
            ("instructions", self.instructions.to_string()),
            ("loads", self.loads.to_string()),
            ("stores", self.stores.to_string()),
            ("command", self.command.clone()),
            self.ended.note(),
            ("unrecorded_accesses", self.unrecorded_accesses.to_string()),
        ];
        notes.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect()
    }

    fn of<R: ChunkReader + 'static>(input: &ParquetInput<R>) -> Result<LineSummary, InputError> {
        let wrong = |problem: String| InputError::file(input.path(), problem);
        let Some(version) = input.note(VERSION) else {
            return Err(wrong(format!(
                "no {VERSION} in its metadata: must be a trace of `ethermem profile --lines`"
            )));
        };
        if version.parse() != Ok(FORMAT_VERSION) {
            let version = ethermem_files::found(version);
            return Err(wrong(format!("{VERSION} = {version}: must be {FORMAT_VERSION}")));
        }
        let line_bytes: u64 = number(input, "line_bytes")?;
        if line_bytes != LINE_BYTES {
            return Err(wrong(format!("line_bytes = {line_bytes}: must be {LINE_BYTES}")));
        }
        let level = |key| {
            let found = needed(input, key)?;
            found.parse().map_err(|allowed| {
                let found = ethermem_files::found(found);
                wrong(format!("{key} = {found} in its metadata: {allowed}"))
            })
        };
        Ok(LineSummary {
            command: needed(input, "command")?.to_owned(),
            ended: Ended::of(input)?,
            levels: Levels([level("l1")?, level("l2")?, level("llc")?]),
            instructions: number(input, "instructions")?,
            loads: number(input, "loads")?,
            stores: number(input, "stores")?,
            unrecorded_accesses: number(input, "unrecorded_accesses")?,
        })
    }
}
