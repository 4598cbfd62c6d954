//! Traces as Parquet.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use ethermem_files::{
    BatchError, INTEGERS, ParquetInput, RowReader, Rows, read_integers, read_values, same_length,
    unsigned,
};
use ethermem_units::Ps;
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::ChunkReader;

use super::row::{Row, RowChecker, parse_kind};
use crate::InputError;
use crate::message::{Message, MessageSource, SourceError};

const NEEDED: &str = "arrival_ps or arrival_ns, kind, compute, memory, bytes";

/// The rows of a Parquet file as messages.
pub(super) struct ParquetTrace<R: ChunkReader>(Rows<R, Format, 5>);

struct Format {
    arrival_in_ns: bool,
    checker: RowChecker,
}

/// Rows as in the file, column by column, all of equal length.
struct Batch {
    arrivals: Arrivals,
    kinds: Vec<ByteArray>,
    compute: Vec<i64>,
    memory: Vec<i64>,
    bytes: Vec<i64>,
}

enum Arrivals {
    Ps(Vec<i64>),
    Ns(Vec<i64>),
    FloatNs(Vec<f64>),
}

impl ParquetTrace<File> {
    pub(super) fn open(path: &Path, nodes: u16) -> Result<ParquetTrace<File>, InputError> {
        ParquetTrace::of(ParquetInput::open(path)?, nodes)
    }
}

impl<R: ChunkReader + 'static> ParquetTrace<R> {
    /// The messages of `input` in a network of `nodes`.
    pub(super) fn of(input: ParquetInput<R>, nodes: u16) -> Result<ParquetTrace<R>, InputError> {
        if input.rows().is_none_or(|rows| rows == 0) {
            let problem = "no message: must be one or more rows";
            return Err(InputError::file(input.path(), problem));
        }
        let required = |name, allowed: &[Type]| input.required(name, allowed, NEEDED);
        let arrival_in_ns = input.column("arrival_ps", &INTEGERS)?.is_none();
        let arrival = if arrival_in_ns {
            required("arrival_ns", &[Type::INT32, Type::INT64, Type::DOUBLE])?
        } else {
            required("arrival_ps", &INTEGERS)?
        };
        let indices = [
            arrival,
            required("kind", &[Type::BYTE_ARRAY])?,
            required("compute", &INTEGERS)?,
            required("memory", &INTEGERS)?,
            required("bytes", &INTEGERS)?,
        ];
        let format = Format { arrival_in_ns, checker: RowChecker::new(nodes) };
        Ok(ParquetTrace(Rows::new(input, indices, format)))
    }
}

impl<R: ChunkReader + 'static + Send> MessageSource for ParquetTrace<R> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.0.next_row()?)
    }

    fn messages_total(&self) -> Option<u64> {
        self.0.input().rows()
    }
}

impl RowReader<5> for Format {
    type Row = Message;

    fn read(
        &mut self,
        columns: &mut [ColumnReader; 5],
        messages: &mut VecDeque<Message>,
    ) -> Result<(), BatchError> {
        let (batch, rows) = Batch::read(columns, self.arrival_in_ns)?;
        for offset in 0..rows {
            let message = batch.row(offset).and_then(|row| self.checker.check(row));
            messages.push_back(message.map_err(|problem| BatchError { offset, problem })?);
        }
        Ok(())
    }
}

impl Batch {
    /// Reads the next rows; returns their number, too.
    fn read(
        columns: &mut [ColumnReader; 5],
        arrival_in_ns: bool,
    ) -> Result<(Batch, usize), BatchError> {
        let [arrival, kind, compute, memory, bytes] = columns;
        let arrivals = match arrival {
            ColumnReader::DoubleColumnReader(reader) => {
                Arrivals::FloatNs(read_values("arrival_ns", reader)?)
            }
            column if arrival_in_ns => Arrivals::Ns(read_integers("arrival_ns", column)?),
            column => Arrivals::Ps(read_integers("arrival_ps", column)?),
        };
        let ColumnReader::ByteArrayColumnReader(kinds) = kind else {
            unreachable!("the column's type was checked when the file was opened")
        };
        let batch = Batch {
            arrivals,
            kinds: read_values("kind", kinds)?,
            compute: read_integers("compute", compute)?,
            memory: read_integers("memory", memory)?,
            bytes: read_integers("bytes", bytes)?,
        };
        let rows = same_length([
            batch.arrivals.len(),
            batch.kinds.len(),
            batch.compute.len(),
            batch.memory.len(),
            batch.bytes.len(),
        ])?;
        Ok((batch, rows))
    }

    /// The values of a row, or an error: what was found in it and what it must be.
    fn row(&self, index: usize) -> Result<Row, String> {
        let kind = parse_kind(&String::from_utf8_lossy(self.kinds[index].data()));
        Ok(Row {
            arrival: self.arrivals.get(index)?,
            kind: kind?,
            compute: unsigned("compute", self.compute[index])?,
            memory: unsigned("memory", self.memory[index])?,
            bytes: unsigned("bytes", self.bytes[index])?,
        })
    }
}

impl Arrivals {
    fn len(&self) -> usize {
        match self {
            Arrivals::Ps(times) | Arrivals::Ns(times) => times.len(),
            Arrivals::FloatNs(times) => times.len(),
        }
    }

    fn get(&self, index: usize) -> Result<Ps, String> {
        let (time, found): (_, &dyn std::fmt::Display) = match self {
            Arrivals::Ps(times) => return unsigned("arrival_ps", times[index]).map(Ps),
            Arrivals::Ns(times) => {
                let ps = u64::try_from(times[index]).ok().and_then(|ns| ns.checked_mul(1_000));
                (ps.map(Ps), &times[index])
            }
            Arrivals::FloatNs(times) => (Ps::from_ns_f64(times[index]), &times[index]),
        };
        time.ok_or_else(|| format!("arrival_ns = {found}: must be a number from 0"))
    }
}
