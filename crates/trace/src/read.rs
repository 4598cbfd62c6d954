use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use ethermem_files::{
    BatchError, INTEGERS, InputError, ParquetInput, RowReader, Rows, found, read_integers,
    read_values, same_length, unsigned,
};
use ethermem_units::{Bytes, Ns};
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::ChunkReader;

use crate::{Access, AccessKind, Summary};

const NEEDED: &str = "time_ns, process, thread, address, bytes, kind";

/// The accesses of a program in order of time, with one batch in memory.
pub struct Trace<R: ChunkReader = File> {
    page: Bytes,
    summary: Summary,
    rows: Rows<R, Format, 7>,
}

/// State that is checked from one row to the next.
struct Format {
    latest: Ns,
    duration: Ns,
}

impl Trace {
    /// Opens a trace.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read or is not a page trace. Invalid rows are found
    /// when they are read.
    pub fn open(path: &Path) -> Result<Trace, InputError> {
        Trace::of(ParquetInput::open(path)?)
    }
}

impl<R: ChunkReader + 'static> Trace<R> {
    /// The trace in a Parquet file.
    pub(crate) fn of(input: ParquetInput<R>) -> Result<Trace<R>, InputError> {
        let (page, summary) = Summary::of(&input)?;
        let integer = |name| input.required(name, &INTEGERS, NEEDED);
        let [time, process, thread, address, bytes] = [
            integer("time_ns")?,
            integer("process")?,
            integer("thread")?,
            integer("address")?,
            integer("bytes")?,
        ];
        let kind = input.required("kind", &[Type::BYTE_ARRAY], NEEDED)?;
        let prefetched = input.column("prefetched", &[Type::BOOLEAN])?;
        // If the column is absent, another one is substituted and not read.
        let last = prefetched.unwrap_or(kind);
        let indices = [time, process, thread, address, bytes, kind, last];
        let format = Format { latest: Ns::ZERO, duration: summary.duration };
        Ok(Trace { page, summary, rows: Rows::new(input, indices, format) })
    }

    /// Size of a page.
    #[must_use]
    pub fn page(&self) -> Bytes {
        self.page
    }

    /// Summary of the whole run.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// Number of accesses according to the footer.
    #[must_use]
    pub fn accesses_total(&self) -> u64 {
        self.rows.input().rows().unwrap_or(0)
    }
}

impl<R: ChunkReader + 'static> Iterator for Trace<R> {
    type Item = Result<Access, InputError>;

    /// The next access; after an error, `None`.
    fn next(&mut self) -> Option<Result<Access, InputError>> {
        self.rows.next_row().transpose()
    }
}

impl RowReader<7> for Format {
    type Row = Access;

    fn read(
        &mut self,
        columns: &mut [ColumnReader; 7],
        accesses: &mut VecDeque<Access>,
    ) -> Result<(), BatchError> {
        let [time, process, thread, address, bytes, kind, prefetched] = columns;
        let ColumnReader::ByteArrayColumnReader(kinds) = kind else {
            unreachable!("the column's type was checked when the file was opened")
        };
        let time = read_integers("time_ns", time)?;
        let process = read_integers("process", process)?;
        let thread = read_integers("thread", thread)?;
        let address = read_integers("address", address)?;
        let bytes = read_integers("bytes", bytes)?;
        let kinds = read_values("kind", kinds)?;
        let lengths = [time.len(), process.len(), thread.len(), address.len(), bytes.len()];
        same_length(lengths)?;
        let prefetched = flags("prefetched", prefetched, kinds.len())?;
        let rows = same_length([time.len(), kinds.len(), prefetched.len()])?;
        for offset in 0..rows {
            let access = || -> Result<Access, String> {
                Ok(Access {
                    time: Ns(unsigned("time_ns", time[offset])?),
                    process: number("process", process[offset])?,
                    thread: number("thread", thread[offset])?,
                    address: unsigned("address", address[offset])?,
                    bytes: Bytes(unsigned("bytes", bytes[offset])?),
                    kind: kind_of(kinds[offset].data())?,
                    prefetched: prefetched[offset],
                })
            };
            let access = access().and_then(|access| self.follows(access));
            accesses.push_back(access.map_err(|problem| BatchError { offset, problem })?);
        }
        Ok(())
    }
}

impl Format {
    /// Accepts `access` as the next one, or returns the reason for refusing it.
    fn follows(&mut self, access: Access) -> Result<Access, String> {
        access.check()?;
        let time = access.time;
        if time < self.latest {
            return Err(format!(
                "time_ns = {} after {}: must not be earlier",
                time.0, self.latest.0
            ));
        }
        if time > self.duration {
            return Err(format!(
                "time_ns = {}: must be 0 to the duration, {}",
                time.0, self.duration.0
            ));
        }
        self.latest = time;
        Ok(access)
    }
}

/// The next values of an optional column. If another column, of another type, is substituted, they
/// are `rows` times false.
pub(crate) fn flags(
    name: &str,
    column: &mut ColumnReader,
    rows: usize,
) -> Result<Vec<bool>, BatchError> {
    match column {
        ColumnReader::BoolColumnReader(reader) => read_values(name, reader),
        _ => Ok(vec![false; rows]),
    }
}

fn kind_of(name: &[u8]) -> Result<AccessKind, String> {
    AccessKind::of_name(name).ok_or_else(|| {
        let names = AccessKind::ALL.map(AccessKind::name).join(", ");
        format!("kind = {}: must be one of {names}", found(&String::from_utf8_lossy(name)))
    })
}

fn number(name: &str, value: i64) -> Result<u32, String> {
    u32::try_from(value).map_err(|_| format!("{name} = {value}: must be 0 to {}", i32::MAX))
}
