use std::path::{Path, PathBuf};
use std::sync::Arc;

use ethermem_files::{AtomicFile, OutputError, reason, write_column};
use ethermem_units::{Bytes, Ns};
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use crate::{Access, SCHEMA, Summary};

/// Number of accesses buffered in memory, 10 MB. When the buffer is full, half of it is written: an
/// access may come after as many later ones as the other half holds.
pub const REORDER_ROWS: usize = 1 << 18;
const ROW_GROUP_ROWS: usize = REORDER_ROWS / 2;

/// A trace that is being written. Its file appears complete after [`Writer::finish`], or never.
pub struct Writer {
    path: PathBuf,
    page: Bytes,
    parquet: SerializedFileWriter<AtomicFile>,
    waiting: Vec<Access>,
    /// Time of the last access in the file.
    written: Ns,
    latest: Ns,
}

/// An access or a trace that could not be written. No partial trace is left.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The file cannot be written, for lack of space or of permission.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A trace cannot hold the access: what was found and what is allowed. The access may be
    /// skipped.
    #[error("an access with {0}")]
    Unusable(String),
    /// More than half of [`REORDER_ROWS`] later accesses came before this one. It may be skipped.
    #[error("an access at {} ns after one at {} ns was written", access.0, written.0)]
    Late {
        /// Time of the access.
        access: Ns,
        /// Last time in the file.
        written: Ns,
    },
    /// The run ended before its last access.
    #[error("a duration of {} ns with an access at {} ns", duration.0, access.0)]
    Duration {
        /// Duration in the summary.
        duration: Ns,
        /// Time of the last access.
        access: Ns,
    },
}

/// Opens the file of a trace with this schema, in whose `close` columns successive numbers are
/// close.
pub(crate) fn create_parquet(
    path: &Path,
    schema: &str,
    close: [&str; 2],
) -> Result<SerializedFileWriter<AtomicFile>, OutputError> {
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("ethermem ", env!("CARGO_PKG_VERSION")).to_owned());
    for column in close {
        let column = ColumnPath::from(column);
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    let schema = parse_message_type(schema).expect("a constant schema");
    let file = AtomicFile::create(path)?;
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
        .map_err(|error| OutputError::new(path, reason(error)))
}

impl Writer {
    /// Opens `path` for the trace of a program whose pages have `page` bytes.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created.
    ///
    /// # Panics
    /// When `page` is not a power of two from 512 B to 1 GiB.
    pub fn create(path: &Path, page: Bytes) -> Result<Writer, OutputError> {
        assert!(
            page.0.is_power_of_two() && (512..=1 << 30).contains(&page.0),
            "pages of {} bytes",
            page.0
        );
        // Times increase, and successive addresses are close, so differences are short.
        let parquet = create_parquet(path, SCHEMA, ["time_ns", "address"])?;
        Ok(Writer {
            path: path.to_owned(),
            page,
            parquet,
            waiting: Vec::with_capacity(REORDER_ROWS),
            written: Ns::ZERO,
            latest: Ns::ZERO,
        })
    }

    /// Adds an access. Accesses may be slightly out of order, as several threads cause.
    ///
    /// # Errors
    /// [`WriteError`]; after [`WriteError::Output`] the trace is lost, after the others only the
    /// access is.
    pub fn push(&mut self, access: &Access) -> Result<(), WriteError> {
        access.check().map_err(WriteError::Unusable)?;
        if access.time < self.written {
            return Err(WriteError::Late { access: access.time, written: self.written });
        }
        self.latest = self.latest.max(access.time);
        self.waiting.push(*access);
        if self.waiting.len() == REORDER_ROWS {
            self.waiting.sort_by_key(|access| access.time);
            self.write(ROW_GROUP_ROWS)?;
        }
        Ok(())
    }

    /// Writes pending accesses and the summary, and completes the file.
    ///
    /// # Errors
    /// [`WriteError`] when the rest cannot be written, or the summary's run ends before its last
    /// access; then the file does not exist.
    pub fn finish(mut self, summary: &Summary) -> Result<(), WriteError> {
        if summary.duration < self.latest {
            let (duration, access) = (summary.duration, self.latest);
            return Err(WriteError::Duration { duration, access });
        }
        self.waiting.sort_by_key(|access| access.time);
        while !self.waiting.is_empty() {
            self.write(ROW_GROUP_ROWS.min(self.waiting.len()))?;
        }
        for note in summary.notes(self.page) {
            self.parquet.append_key_value_metadata(note);
        }
        let file = self.parquet.into_inner();
        let file = file.map_err(|error| OutputError::new(&self.path, reason(error)))?;
        Ok(file.commit()?)
    }

    /// Writes the first `rows` pending accesses, which are sorted.
    fn write(&mut self, rows: usize) -> Result<(), OutputError> {
        let group = &self.waiting[..rows];
        self.written = group.last().map_or(self.written, |access| access.time);
        let written = self.parquet.next_row_group().and_then(|writer| write_rows(writer, group));
        written.map_err(|error| OutputError::new(&self.path, reason(error)))?;
        self.waiting.drain(..rows);
        Ok(())
    }
}

fn write_rows(
    mut group: SerializedRowGroupWriter<'_, AtomicFile>,
    rows: &[Access],
) -> Result<(), ParquetError> {
    // No value is negative: each access was checked.
    let long = |value: fn(&Access) -> u64| -> Vec<i64> {
        rows.iter().map(|access| value(access).cast_signed()).collect()
    };
    let short = |value: fn(&Access) -> u32| -> Vec<i32> {
        rows.iter().map(|access| value(access).cast_signed()).collect()
    };
    let kinds: Vec<ByteArray> =
        rows.iter().map(|access| ByteArray::from(access.kind.name())).collect();
    write_column::<Int64Type>(&mut group, &long(|access| access.time.0), None)?;
    write_column::<Int32Type>(&mut group, &short(|access| access.process), None)?;
    write_column::<Int32Type>(&mut group, &short(|access| access.thread), None)?;
    write_column::<Int64Type>(&mut group, &long(|access| access.address), None)?;
    write_column::<Int32Type>(&mut group, &short(|access| access.bytes.0 as u32), None)?;
    write_column::<ByteArrayType>(&mut group, &kinds, None)?;
    let prefetched: Vec<bool> = rows.iter().map(|access| access.prefetched).collect();
    write_column::<BoolType>(&mut group, &prefetched, None)?;
    group.close().map(|_| ())
}
