//! Columns of a Parquet file.

use std::io::{self, Write};

use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedRowGroupWriter;

/// Writes the next column of the schema. `present` marks the rows that have a value; `None` means
/// that all have one.
///
/// # Errors
/// [`ParquetError`] when the column cannot be encoded or written.
///
/// # Panics
/// If the schema has no more columns.
pub fn write_column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    values: &[T::T],
    present: Option<&[i16]>,
) -> Result<(), ParquetError> {
    let mut column = group.next_column()?.expect("as many columns as the schema has");
    column.typed::<T>().write_batch(values, present, None)?;
    column.close()
}

/// The operating system's reason where there is one: a one-line error needs no more.
pub fn reason(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(reason) => *reason,
            Err(cause) => io::Error::other(cause),
        },
        error => io::Error::other(error),
    }
}
