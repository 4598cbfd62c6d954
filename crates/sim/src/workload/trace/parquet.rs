//! Traces as Parquet: one batch of rows in memory, whatever the size of the file.

use std::fs::File;
use std::path::{Path, PathBuf};

use ethermem_units::Ps;
use parquet::basic::Type;
use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::{ByteArray, DataType};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::row::{Row, RowChecker, parse_kind};
use crate::message::{Message, MessageSource, SourceError};
use crate::workload::InputError;

/// Rows decoded at a time.
const BATCH_ROWS: usize = 8_192;

/// The rows of a Parquet file as messages.
pub(super) struct ParquetTrace {
    path: PathBuf,
    reader: SerializedFileReader<File>,
    indices: Indices,
    arrival_in_ns: bool,
    next_row_group: usize,
    columns: Option<Columns>,
    batch: Option<Batch>,
    checker: RowChecker,
}

/// Which of the file's columns are ours.
struct Indices {
    arrival: usize,
    kind: usize,
    compute: usize,
    memory: usize,
    bytes: usize,
}

/// Rows as the file has them, column by column, all of the same length.
struct Batch {
    next: usize,
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

/// A batch that cannot be decoded from its row `offset` on.
struct BatchError {
    offset: usize,
    problem: String,
}

/// The columns of one row group, each at the same row.
struct Columns {
    arrival: ColumnReader,
    kind: ColumnReader,
    compute: ColumnReader,
    memory: ColumnReader,
    bytes: ColumnReader,
}

impl ParquetTrace {
    pub(super) fn open(path: &Path, nodes: u16) -> Result<ParquetTrace, InputError> {
        let file = File::open(path).map_err(|error| InputError::io(path, "be read", &error))?;
        let reader = SerializedFileReader::new(file).map_err(|error| unreadable(path, &error))?;
        if reader.metadata().file_metadata().num_rows() <= 0 {
            return Err(InputError::file(
                path,
                "no message: allowed are one or more rows",
            ));
        }
        let arrival_in_ns = column(&reader, path, "arrival_ps", &INTEGERS)?.is_none();
        let arrival = if arrival_in_ns {
            required(
                &reader,
                path,
                "arrival_ns",
                &[Type::INT32, Type::INT64, Type::DOUBLE],
            )?
        } else {
            required(&reader, path, "arrival_ps", &INTEGERS)?
        };
        let indices = Indices {
            arrival,
            kind: required(&reader, path, "kind", &[Type::BYTE_ARRAY])?,
            compute: required(&reader, path, "compute", &INTEGERS)?,
            memory: required(&reader, path, "memory", &INTEGERS)?,
            bytes: required(&reader, path, "bytes", &INTEGERS)?,
        };
        Ok(ParquetTrace {
            path: path.to_owned(),
            reader,
            indices,
            arrival_in_ns,
            next_row_group: 0,
            columns: None,
            batch: None,
            checker: RowChecker::new(nodes),
        })
    }

    fn next_row(&mut self) -> Result<Option<Message>, InputError> {
        loop {
            if let Some(row) = self.batch.as_mut().and_then(Batch::next_row) {
                let message = row.and_then(|row| self.checker.check(row));
                return message.map(Some).map_err(|problem| self.error(0, &problem));
            }
            if let Some(columns) = &mut self.columns {
                let batch = columns.read(self.arrival_in_ns);
                let batch = batch.map_err(|error| self.error(error.offset, &error.problem))?;
                if batch.kinds.is_empty() {
                    self.columns = None;
                }
                self.batch = Some(batch);
            } else if self.next_row_group < self.reader.num_row_groups() {
                let columns = self.row_group(self.next_row_group);
                self.columns = Some(columns.map_err(|error| unreadable(&self.path, &error))?);
                self.next_row_group += 1;
            } else {
                return self.end();
            }
        }
    }

    fn row_group(&self, index: usize) -> Result<Columns, ParquetError> {
        let group = self.reader.get_row_group(index)?;
        Ok(Columns {
            arrival: group.get_column_reader(self.indices.arrival)?,
            kind: group.get_column_reader(self.indices.kind)?,
            compute: group.get_column_reader(self.indices.compute)?,
            memory: group.get_column_reader(self.indices.memory)?,
            bytes: group.get_column_reader(self.indices.bytes)?,
        })
    }

    fn end(&self) -> Result<Option<Message>, InputError> {
        let (rows, promised) = (self.checker.messages(), self.messages_total());
        if Some(rows) == promised {
            return Ok(None);
        }
        let problem = format!("ends after {rows} rows: allowed is what its footer says");
        Err(InputError::file(&self.path, problem))
    }

    /// A problem of the row that comes `offset` after the next one.
    fn error(&self, offset: usize, problem: &str) -> InputError {
        let row = self.checker.messages() + 1 + offset as u64;
        InputError::file(&self.path, format!("row {row}: {problem}"))
    }
}

impl MessageSource for ParquetTrace {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.next_row()?)
    }

    fn messages_total(&self) -> Option<u64> {
        u64::try_from(self.reader.metadata().file_metadata().num_rows()).ok()
    }
}

const INTEGERS: [Type; 2] = [Type::INT32, Type::INT64];

/// Where the column `name` is, when there is one.
fn column(
    reader: &SerializedFileReader<File>,
    path: &Path,
    name: &str,
    allowed: &[Type],
) -> Result<Option<usize>, InputError> {
    let schema = reader.metadata().file_metadata().schema_descr();
    let mut columns = schema.columns().iter();
    let Some(index) = columns.position(|column| column.path().string() == name) else {
        return Ok(None);
    };
    let column = schema.column(index);
    if !allowed.contains(&column.physical_type()) || column.max_rep_level() > 0 {
        let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
        let (found, allowed) = (column.physical_type(), names.join(", "));
        let problem = format!("column {name} of type {found}: allowed are {allowed}, not repeated");
        return Err(InputError::file(path, problem));
    }
    Ok(Some(index))
}

fn required(
    reader: &SerializedFileReader<File>,
    path: &Path,
    name: &str,
    allowed: &[Type],
) -> Result<usize, InputError> {
    column(reader, path, name, allowed)?.ok_or_else(|| {
        let problem = format!(
            "no column {name}: allowed are files with arrival_ps or arrival_ns, kind, compute, \
             memory, bytes"
        );
        InputError::file(path, problem)
    })
}

impl Columns {
    /// The next rows, none at the end of the row group.
    fn read(&mut self, arrival_in_ns: bool) -> Result<Batch, BatchError> {
        let arrivals = match &mut self.arrival {
            ColumnReader::DoubleColumnReader(reader) => {
                Arrivals::FloatNs(read_values("arrival_ns", reader)?)
            }
            column if arrival_in_ns => Arrivals::Ns(read_integers("arrival_ns", column)?),
            column => Arrivals::Ps(read_integers("arrival_ps", column)?),
        };
        let ColumnReader::ByteArrayColumnReader(kinds) = &mut self.kind else {
            unreachable!("the column's type was checked when the file was opened")
        };
        let batch = Batch {
            next: 0,
            arrivals,
            kinds: read_values("kind", kinds)?,
            compute: read_integers("compute", &mut self.compute)?,
            memory: read_integers("memory", &mut self.memory)?,
            bytes: read_integers("bytes", &mut self.bytes)?,
        };
        let rows = batch.kinds.len();
        let lengths = [
            batch.arrivals.len(),
            batch.compute.len(),
            batch.memory.len(),
            batch.bytes.len(),
        ];
        if lengths != [rows; 4] {
            let problem = "columns of different lengths: allowed is one value of each".to_owned();
            return Err(BatchError { offset: 0, problem });
        }
        Ok(batch)
    }
}

impl Batch {
    /// The values of the next row, or what was found in it and what is allowed.
    fn next_row(&mut self) -> Option<Result<Row, String>> {
        let index = self.next;
        let kind = self.kinds.get(index)?;
        self.next += 1;
        let kind = parse_kind(&String::from_utf8_lossy(kind.data()));
        let row = || {
            Ok(Row {
                arrival: self.arrivals.get(index)?,
                kind: kind?,
                compute: unsigned("compute", self.compute[index])?,
                memory: unsigned("memory", self.memory[index])?,
                bytes: unsigned("bytes", self.bytes[index])?,
            })
        };
        Some(row())
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
                let ps = u64::try_from(times[index])
                    .ok()
                    .and_then(|ns| ns.checked_mul(1_000));
                (ps.map(Ps), &times[index])
            }
            Arrivals::FloatNs(times) => (Ps::from_ns_f64(times[index]), &times[index]),
        };
        time.ok_or_else(|| format!("arrival_ns = {found}: allowed are numbers from 0"))
    }
}

fn unsigned(name: &str, value: i64) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("{name} = {value}: allowed are whole numbers"))
}

fn read_integers(name: &str, column: &mut ColumnReader) -> Result<Vec<i64>, BatchError> {
    match column {
        ColumnReader::Int32ColumnReader(reader) => Ok(read_values(name, reader)?
            .into_iter()
            .map(i64::from)
            .collect()),
        ColumnReader::Int64ColumnReader(reader) => read_values(name, reader),
        _ => unreachable!("the column's type was checked when the file was opened"),
    }
}

fn read_values<T: DataType>(
    name: &str,
    reader: &mut ColumnReaderImpl<T>,
) -> Result<Vec<T::T>, BatchError> {
    let (mut values, mut levels) = (Vec::with_capacity(BATCH_ROWS), Vec::new());
    let (records, count, _) = reader
        .read_records(BATCH_ROWS, Some(&mut levels), None, &mut values)
        .map_err(|error| {
            let problem = format!("column {name}: {}", reason(&error));
            BatchError { offset: 0, problem }
        })?;
    if count < records {
        let full = levels.iter().max().copied();
        let offset = levels
            .iter()
            .position(|&level| Some(level) != full)
            .unwrap_or(0);
        let problem = format!("column {name} without a value: allowed is one in every row");
        return Err(BatchError { offset, problem });
    }
    Ok(values)
}

fn unreadable(path: &Path, error: &ParquetError) -> InputError {
    InputError::file(path, format!("not readable as Parquet: {}", reason(error)))
}

fn reason(error: &ParquetError) -> String {
    match error {
        ParquetError::General(reason) | ParquetError::EOF(reason) | ParquetError::NYI(reason) => {
            reason.clone()
        }
        other => other.to_string(),
    }
}
