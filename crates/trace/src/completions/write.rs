use std::path::{Path, PathBuf};
use std::sync::Arc;

use ethermem_files::{AtomicFile, OutputError, reason, write_column};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int32Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{Completion, FABRICS_KEY, SCHEMA, VERSION, VERSION_KEY};

/// Rows kept in memory before they are encoded: 4 MB.
const ROW_GROUP_ROWS: usize = 1 << 16;

/// A file of completion times that is being written; it appears complete or not at all.
pub struct CompletionWriter {
    path: PathBuf,
    parquet: SerializedFileWriter<AtomicFile>,
    fabrics: Vec<String>,
    /// Rows of the last of `fabrics`.
    rows: Vec<Completion>,
}

impl CompletionWriter {
    /// Opens `path`, which appears with [`CompletionWriter::finish`].
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created.
    ///
    /// # Panics
    /// Never: the schema is a constant.
    pub fn create(path: &Path) -> Result<CompletionWriter, OutputError> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("ethermem ", env!("CARGO_PKG_VERSION")).to_owned());
        let schema = parse_message_type(SCHEMA).expect("a constant schema");
        let file = AtomicFile::create(path)?;
        let parquet =
            SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
                .map_err(|error| OutputError::new(path, reason(error)))?;
        Ok(CompletionWriter {
            path: path.to_owned(),
            parquet,
            fabrics: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// Sets the fabric of the completions that follow.
    ///
    /// # Errors
    /// [`OutputError`] when the previous fabric's rows cannot be written.
    pub fn fabric(&mut self, name: &str) -> Result<(), OutputError> {
        self.flush()?;
        self.fabrics.push(name.to_owned());
        Ok(())
    }

    /// Adds an access of the current fabric.
    ///
    /// # Errors
    /// [`OutputError`] when the rows cannot be written.
    ///
    /// # Panics
    /// When no fabric was set.
    pub fn push(&mut self, completion: Completion) -> Result<(), OutputError> {
        assert!(!self.fabrics.is_empty(), "a completion of no fabric");
        self.rows.push(completion);
        if self.rows.len() == ROW_GROUP_ROWS { self.flush() } else { Ok(()) }
    }

    /// Writes pending rows and completes the file; `notes` go into its metadata.
    ///
    /// # Errors
    /// [`OutputError`] when the rest cannot be written; then the file does not exist.
    pub fn finish(mut self, notes: &[(&str, String)]) -> Result<(), OutputError> {
        self.flush()?;
        let own = [(VERSION_KEY, VERSION.to_owned()), (FABRICS_KEY, self.fabrics.join(","))];
        for (key, value) in own.iter().chain(notes) {
            let note = KeyValue::new((*key).to_owned(), value.clone());
            self.parquet.append_key_value_metadata(note);
        }
        let file = self.parquet.into_inner();
        file.map_err(|error| OutputError::new(&self.path, reason(error)))?.commit()
    }

    fn flush(&mut self) -> Result<(), OutputError> {
        let Some(fabric) = self.fabrics.last().filter(|_| !self.rows.is_empty()) else {
            return Ok(());
        };
        let group = self.parquet.next_row_group();
        let written = group.and_then(|group| write_rows(group, fabric, &self.rows));
        self.rows.clear();
        written.map_err(|error| OutputError::new(&self.path, reason(error)))
    }
}

fn write_rows(
    mut group: SerializedRowGroupWriter<'_, AtomicFile>,
    fabric: &str,
    rows: &[Completion],
) -> Result<(), ParquetError> {
    let times = |value: fn(&Completion) -> ethermem_units::Ps| -> Vec<f64> {
        rows.iter().map(|row| value(row).as_ns_f64()).collect()
    };
    let numbers = |value: fn(&Completion) -> u16| -> Vec<i32> {
        rows.iter().map(|row| value(row).into()).collect()
    };
    let fabrics = vec![ByteArray::from(fabric); rows.len()];
    let kinds: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(row.kind.name())).collect();
    // An access has at most 2^30 bytes.
    let bytes: Vec<i32> = rows.iter().map(|row| row.bytes.0 as i32).collect();
    write_column::<ByteArrayType>(&mut group, &fabrics, None)?;
    write_column::<DoubleType>(&mut group, &times(|row| row.time), None)?;
    write_column::<Int32Type>(&mut group, &numbers(|row| row.cluster), None)?;
    write_column::<Int32Type>(&mut group, &numbers(|row| row.compute), None)?;
    write_column::<Int32Type>(&mut group, &numbers(|row| row.memory), None)?;
    write_column::<ByteArrayType>(&mut group, &kinds, None)?;
    write_column::<Int32Type>(&mut group, &bytes, None)?;
    write_column::<DoubleType>(&mut group, &times(|row| row.completion), None)?;
    write_column::<DoubleType>(&mut group, &times(|row| row.alone), None)?;
    let prefetched: Vec<bool> = rows.iter().map(|row| row.prefetched).collect();
    write_column::<BoolType>(&mut group, &prefetched, None)?;
    group.close().map(|_| ())
}
