use std::path::{Path, PathBuf};

use ethermem_files::{AtomicFile, OutputError, reason, write_column};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};

use super::{LineAccess, LineSummary, SCHEMA};
use crate::write::create_parquet;

/// Rows kept in memory before they are encoded: 3 MB.
const ROW_GROUP_ROWS: usize = 1 << 17;

/// A line trace that is being written. Its file appears complete after [`LineWriter::finish`], or
/// never.
pub struct LineWriter {
    path: PathBuf,
    parquet: SerializedFileWriter<AtomicFile>,
    rows: Vec<LineAccess>,
    latest: u64,
}

/// An access or a trace that could not be written. No partial trace is left.
#[derive(Debug, thiserror::Error)]
pub enum LineWriteError {
    /// The file cannot be written, for lack of space or of permission.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// A trace cannot hold the access: what was found and what is allowed. The access may be
    /// skipped.
    #[error("an access with {0}")]
    Unusable(String),
}

impl LineWriter {
    /// Opens `path` for the trace of a program.
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created.
    ///
    /// # Panics
    /// Never: the schema is a constant.
    pub fn create(path: &Path) -> Result<LineWriter, OutputError> {
        // Numbers of instructions increase, and successive addresses are often close.
        let parquet = create_parquet(path, SCHEMA, ["instructions", "address"])?;
        let rows = Vec::with_capacity(ROW_GROUP_ROWS);
        Ok(LineWriter { path: path.to_owned(), parquet, rows, latest: 0 })
    }

    /// Adds an access, in the order of the program.
    ///
    /// # Errors
    /// [`LineWriteError`]; after [`LineWriteError::Output`] the trace is lost, after the other only
    /// the access is.
    pub fn push(&mut self, access: LineAccess) -> Result<(), LineWriteError> {
        access.check().map_err(LineWriteError::Unusable)?;
        let (found, latest) = (access.instructions, self.latest);
        if found < latest {
            let problem = format!("instructions = {found} after {latest}: must not be fewer");
            return Err(LineWriteError::Unusable(problem));
        }
        self.latest = found;
        self.rows.push(access);
        if self.rows.len() == ROW_GROUP_ROWS {
            self.write()?;
        }
        Ok(())
    }

    /// Writes pending accesses and the summary, and completes the file.
    ///
    /// # Errors
    /// [`LineWriteError`] when the rest cannot be written, or the summary has fewer instructions
    /// than the last access; then the file does not exist.
    pub fn finish(mut self, summary: &LineSummary) -> Result<(), LineWriteError> {
        if summary.instructions < self.latest {
            let (total, latest) = (summary.instructions, self.latest);
            let problem = format!("instructions = {latest}: must be up to the total, {total}");
            return Err(LineWriteError::Unusable(problem));
        }
        if !self.rows.is_empty() {
            self.write()?;
        }
        for note in summary.notes() {
            self.parquet.append_key_value_metadata(note);
        }
        let file = self.parquet.into_inner();
        let file = file.map_err(|error| OutputError::new(&self.path, reason(error)))?;
        Ok(file.commit()?)
    }

    fn write(&mut self) -> Result<(), OutputError> {
        let rows = &self.rows;
        let written = self.parquet.next_row_group().and_then(|writer| write_rows(writer, rows));
        written.map_err(|error| OutputError::new(&self.path, reason(error)))?;
        self.rows.clear();
        Ok(())
    }
}

fn write_rows(
    mut group: SerializedRowGroupWriter<'_, AtomicFile>,
    rows: &[LineAccess],
) -> Result<(), ParquetError> {
    // No value is negative: each access was checked.
    let column = |value: fn(&LineAccess) -> u64| -> Vec<i64> {
        rows.iter().map(|access| value(access).cast_signed()).collect()
    };
    let kinds: Vec<ByteArray> =
        rows.iter().map(|access| ByteArray::from(access.kind.name())).collect();
    write_column::<Int64Type>(&mut group, &column(|access| access.instructions), None)?;
    write_column::<Int64Type>(&mut group, &column(|access| access.address), None)?;
    write_column::<ByteArrayType>(&mut group, &kinds, None)?;
    group.close().map(|_| ())
}
