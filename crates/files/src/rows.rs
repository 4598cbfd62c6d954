//! Rows of a Parquet file, in order. One batch is in memory, whatever the size of the file.

use std::collections::VecDeque;

use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
use parquet::data_type::DataType;
use parquet::file::reader::ChunkReader;

use crate::input::words;
use crate::{InputError, ParquetInput};

/// Number of rows decoded at a time.
const BATCH_ROWS: usize = 8_192;

/// What the rows of a file mean: how to make them from the values of their `N` columns.
pub trait RowReader<const N: usize> {
    /// The type of a row.
    type Row;

    /// Appends the next rows; appends none at the end of the row group.
    ///
    /// # Errors
    /// [`BatchError`] at the first row that cannot be used. Rows before it may have been appended.
    fn read(
        &mut self,
        columns: &mut [ColumnReader; N],
        rows: &mut VecDeque<Self::Row>,
    ) -> Result<(), BatchError>;
}

/// A row that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BatchError {
    /// Number of rows of the batch before the bad row.
    pub offset: usize,
    /// What was found, and what it must be.
    pub problem: String,
}

/// The rows of a file in order, up to the end or to the first row that cannot be used.
pub struct Rows<R: ChunkReader, F: RowReader<N>, const N: usize> {
    input: ParquetInput<R>,
    indices: [usize; N],
    format: F,
    next_row_group: usize,
    columns: Option<[ColumnReader; N]>,
    rows: VecDeque<F::Row>,
    /// The error that follows the last of `rows`.
    failed: Option<InputError>,
    rows_read: u64,
    ended: bool,
}

impl<R: ChunkReader + 'static, F: RowReader<N>, const N: usize> Rows<R, F, N> {
    /// Reads the rows of `input` from the columns at `indices`.
    pub fn new(input: ParquetInput<R>, indices: [usize; N], format: F) -> Rows<R, F, N> {
        Rows {
            input,
            indices,
            format,
            next_row_group: 0,
            columns: None,
            rows: VecDeque::new(),
            failed: None,
            rows_read: 0,
            ended: false,
        }
    }

    /// The file.
    pub fn input(&self) -> &ParquetInput<R> {
        &self.input
    }

    /// The format that makes rows of the columns.
    pub fn format(&self) -> &F {
        &self.format
    }

    /// The next row; `None` at the end of the file.
    ///
    /// # Errors
    /// [`InputError`] with the row's number, counted from 1. After an error there are no more rows.
    pub fn next_row(&mut self) -> Result<Option<F::Row>, InputError> {
        loop {
            if let Some(row) = self.rows.pop_front() {
                return Ok(Some(row));
            }
            if let Some(error) = self.failed.take() {
                self.ended = true;
                return Err(error);
            }
            if self.ended {
                return Ok(None);
            }
            if let Err(error) = self.fill() {
                self.failed = Some(error);
            }
        }
    }

    /// Reads the next batch, or finds the end.
    fn fill(&mut self) -> Result<(), InputError> {
        let Some(columns) = &mut self.columns else {
            return self.next_group();
        };
        let (format, rows) = (&mut self.format, &mut self.rows);
        let read = self.input.decode(|| format.read(columns, rows))?;
        if let Err(BatchError { offset, problem }) = read {
            let row = self.rows_read + 1 + offset as u64;
            let problem = format!("row {row}: {problem}");
            return Err(InputError::file(self.input.path(), problem));
        }
        self.rows_read += self.rows.len() as u64;
        if self.rows.is_empty() {
            self.columns = None;
        }
        Ok(())
    }

    fn next_group(&mut self) -> Result<(), InputError> {
        if self.next_row_group < self.input.row_groups() {
            self.columns = Some(self.input.columns(self.next_row_group, self.indices)?);
            self.next_row_group += 1;
            return Ok(());
        }
        self.ended = true;
        let rows = self.rows_read;
        if Some(rows) == self.input.rows() {
            return Ok(());
        }
        let problem = format!("ends after {rows} rows: must be what its footer says");
        Err(InputError::file(self.input.path(), problem))
    }
}

/// Reads the next values of a column that has a value in every row. Every column yields as many; at
/// the end of the row group there are none.
///
/// # Errors
/// [`BatchError`] for values that cannot be decoded, and for a row without a value.
pub fn read_values<T: DataType>(
    name: &str,
    reader: &mut ColumnReaderImpl<T>,
) -> Result<Vec<T::T>, BatchError> {
    let (mut values, mut levels) = (Vec::with_capacity(BATCH_ROWS), Vec::new());
    let (records, count, _) =
        reader.read_records(BATCH_ROWS, Some(&mut levels), None, &mut values).map_err(|error| {
            let problem = format!("column {name}: {}", words(&error));
            BatchError { offset: 0, problem }
        })?;
    if count < records {
        let full = levels.iter().max().copied();
        let offset = levels.iter().position(|&level| Some(level) != full).unwrap_or(0);
        let problem = format!("column {name} without a value: must be one in every row");
        return Err(BatchError { offset, problem });
    }
    Ok(values)
}

/// Reads as [`read_values`] does, from a column of one of the types [`crate::INTEGERS`].
///
/// # Errors
/// The errors of [`read_values`].
///
/// # Panics
/// When the column is of another type.
pub fn read_integers(name: &str, column: &mut ColumnReader) -> Result<Vec<i64>, BatchError> {
    match column {
        ColumnReader::Int32ColumnReader(reader) => {
            Ok(read_values(name, reader)?.into_iter().map(i64::from).collect())
        }
        ColumnReader::Int64ColumnReader(reader) => read_values(name, reader),
        _ => unreachable!("the column's type was checked when the file was opened"),
    }
}

/// Number of rows in columns of these lengths.
///
/// # Errors
/// [`BatchError`] when the lengths differ, as they may in a damaged file.
pub fn same_length<const N: usize>(lengths: [usize; N]) -> Result<usize, BatchError> {
    let rows = lengths.iter().copied().min().unwrap_or(0);
    if lengths.iter().any(|&length| length != rows) {
        let problem = "columns of different lengths: must be one value of each".to_owned();
        return Err(BatchError { offset: rows, problem });
    }
    Ok(rows)
}

/// Checks that a value is not negative.
///
/// # Errors
/// A text that says what was found, and what it must be.
pub fn unsigned(name: &str, value: i64) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| format!("{name} = {value}: must be a whole number"))
}
