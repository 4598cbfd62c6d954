use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use ethermem_files::{
    BatchError, INTEGERS, InputError, ParquetInput, RowReader, Rows, found, read_integers,
    read_values, same_length, unsigned,
};
use ethermem_lines::TrafficKind;
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::file::reader::ChunkReader;

use super::{LineAccess, LineSummary};

const NEEDED: &str = "instructions, address, kind";

/// The accesses of a program's caches to memory in order, with one batch in memory.
pub struct LineTrace<R: ChunkReader = File> {
    summary: LineSummary,
    rows: Rows<R, Format, 3>,
}

/// State that is checked from one row to the next.
struct Format {
    latest: u64,
    total: u64,
}

impl LineTrace {
    /// Opens a trace.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read or is not a line trace. Invalid rows are found
    /// when they are read.
    pub fn open(path: &Path) -> Result<LineTrace, InputError> {
        LineTrace::of(ParquetInput::open(path)?)
    }
}

impl<R: ChunkReader + 'static> LineTrace<R> {
    /// The trace in a Parquet file.
    pub(crate) fn of(input: ParquetInput<R>) -> Result<LineTrace<R>, InputError> {
        let summary = LineSummary::of(&input)?;
        let indices = [
            input.required("instructions", &INTEGERS, NEEDED)?,
            input.required("address", &INTEGERS, NEEDED)?,
            input.required("kind", &[Type::BYTE_ARRAY], NEEDED)?,
        ];
        let format = Format { latest: 0, total: summary.instructions };
        Ok(LineTrace { summary, rows: Rows::new(input, indices, format) })
    }

    /// Summary of the whole run.
    #[must_use]
    pub fn summary(&self) -> &LineSummary {
        &self.summary
    }

    /// Number of accesses according to the footer.
    #[must_use]
    pub fn accesses_total(&self) -> u64 {
        self.rows.input().rows().unwrap_or(0)
    }
}

impl<R: ChunkReader + 'static> Iterator for LineTrace<R> {
    type Item = Result<LineAccess, InputError>;

    /// The next access; after an error, `None`.
    fn next(&mut self) -> Option<Result<LineAccess, InputError>> {
        self.rows.next_row().transpose()
    }
}

impl RowReader<3> for Format {
    type Row = LineAccess;

    fn read(
        &mut self,
        columns: &mut [ColumnReader; 3],
        accesses: &mut VecDeque<LineAccess>,
    ) -> Result<(), BatchError> {
        let [instructions, address, kind] = columns;
        let ColumnReader::ByteArrayColumnReader(kinds) = kind else {
            unreachable!("the column's type was checked when the file was opened")
        };
        let instructions = read_integers("instructions", instructions)?;
        let address = read_integers("address", address)?;
        let kinds = read_values("kind", kinds)?;
        let rows = same_length([instructions.len(), address.len(), kinds.len()])?;
        for offset in 0..rows {
            let access = || -> Result<LineAccess, String> {
                Ok(LineAccess {
                    instructions: unsigned("instructions", instructions[offset])?,
                    address: unsigned("address", address[offset])?,
                    kind: kind_of(kinds[offset].data())?,
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
    fn follows(&mut self, access: LineAccess) -> Result<LineAccess, String> {
        access.check()?;
        let (found, latest, total) = (access.instructions, self.latest, self.total);
        if found < latest {
            return Err(format!("instructions = {found} after {latest}: must not be fewer"));
        }
        if found > total {
            return Err(format!("instructions = {found}: must be 0 to the total, {total}"));
        }
        self.latest = found;
        Ok(access)
    }
}

fn kind_of(name: &[u8]) -> Result<TrafficKind, String> {
    TrafficKind::of_name(name).ok_or_else(|| {
        let names = TrafficKind::ALL.map(TrafficKind::name).join(", ");
        format!("kind = {}: must be one of {names}", found(&String::from_utf8_lossy(name)))
    })
}
