//! Writes any source of messages as a trace.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::{EDM_ARTIFACT_SLOT, TraceFormat};
use crate::InputError;
use crate::message::{Kind, Message, MessageSource, SourceError};
use ethermem_files::{AtomicFile, OutputError, reason, write_column};

/// Bytes of a read's request in the EDM artifact's format: one block.
const EDM_ARTIFACT_REQUEST_BYTES: u64 = 8;
/// Number of messages in a Parquet row group, the most that a write holds in memory.
const ROW_GROUP_ROWS: usize = 1 << 16;

const SCHEMA: &str = "message ethermem_trace {
    required int64 arrival_ps (integer(64,false));
    required binary kind (string);
    required int32 compute (integer(16,false));
    required int32 memory (integer(16,false));
    required int64 bytes (integer(64,false));
}";

/// Why a trace could not be written. No file is left.
#[derive(Debug, thiserror::Error)]
pub enum WriteTraceError {
    /// The source of the messages failed.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file cannot be written, because of space or permissions.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The format cannot hold the message.
    #[error(transparent)]
    NotInFormat(InputError),
}

/// Writes the remaining messages of `source` to `path`. The file is there whole or not at all.
/// Returns the number of messages.
///
/// [`TraceFormat::EdmArtifact`] rounds arrivals down to its slots of 0.64 ns.
///
/// # Errors
/// [`WriteTraceError`] when the source fails or the file cannot be written. The EDM artifact's
/// format has no atomics, so they are an error there.
pub fn write_trace(
    source: &mut dyn MessageSource,
    path: &Path,
    format: TraceFormat,
) -> Result<u64, WriteTraceError> {
    match format {
        TraceFormat::Csv => write_csv(source, path),
        TraceFormat::Parquet => write_parquet(source, path),
        TraceFormat::EdmArtifact => write_edm_artifact(source, path),
    }
}

fn write_csv(source: &mut dyn MessageSource, path: &Path) -> Result<u64, WriteTraceError> {
    let header = "arrival_ps,kind,compute,memory,bytes\n";
    write_text(source, path, header, |file, message| {
        let Message { arrival, kind, compute, memory, bytes, .. } = message;
        writeln!(file, "{},{},{compute},{memory},{}", arrival.0, kind.name(), bytes.0)
            .map_err(|error| unwritable(path, error))
    })
}

fn write_edm_artifact(source: &mut dyn MessageSource, path: &Path) -> Result<u64, WriteTraceError> {
    write_text(source, path, "", |file, message| {
        let Message { index, arrival, kind, compute, memory, bytes } = message;
        let (kind, bytes, reply_bytes) = match kind {
            Kind::Read => (1, EDM_ARTIFACT_REQUEST_BYTES, bytes.0),
            Kind::Write => (3, bytes.0, 0),
            Kind::ReadModifyWrite => {
                let problem = "a message of kind rmw: allowed in this format are read, write";
                return Err(WriteTraceError::NotInFormat(InputError::file(path, problem)));
            }
        };
        let slot = arrival.0 / EDM_ARTIFACT_SLOT.0;
        writeln!(file, "{index},{kind},{compute},{memory},{bytes},{reply_bytes},{slot}")
            .map_err(|error| unwritable(path, error))
    })
}

fn write_text(
    source: &mut dyn MessageSource,
    path: &Path,
    header: &str,
    row: impl Fn(&mut AtomicFile, Message) -> Result<(), WriteTraceError>,
) -> Result<u64, WriteTraceError> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(header.as_bytes()).map_err(|error| unwritable(path, error))?;
    let mut messages = 0;
    while let Some(message) = source.next_message()? {
        row(&mut file, message)?;
        messages += 1;
    }
    file.commit()?;
    Ok(messages)
}

fn write_parquet(source: &mut dyn MessageSource, path: &Path) -> Result<u64, WriteTraceError> {
    let failed = |error: ParquetError| unwritable(path, reason(error));
    let schema = parse_message_type(SCHEMA).expect("the schema is valid");
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut file = AtomicFile::create(path)?;
    let mut writer = SerializedFileWriter::new(&mut file, Arc::new(schema), Arc::new(properties))
        .map_err(failed)?;
    let mut messages = 0;
    let mut rows = Vec::with_capacity(ROW_GROUP_ROWS);
    loop {
        rows.clear();
        while rows.len() < ROW_GROUP_ROWS
            && let Some(message) = source.next_message()?
        {
            rows.push(message);
        }
        if rows.is_empty() {
            break;
        }
        let mut group = writer.next_row_group().map_err(failed)?;
        write_row_group(&mut group, &rows).map_err(failed)?;
        group.close().map_err(failed)?;
        messages += rows.len() as u64;
    }
    writer.close().map_err(failed)?;
    file.commit()?;
    Ok(messages)
}

fn write_row_group(
    group: &mut SerializedRowGroupWriter<'_, impl Write + Send>,
    rows: &[Message],
) -> Result<(), ParquetError> {
    // Arrivals and sizes stay below 2^62, nodes below 2^9.
    let long = |value: fn(&Message) -> u64| rows.iter().map(|row| value(row) as i64).collect();
    let node = |value: fn(&Message) -> u16| rows.iter().map(|row| value(row).into()).collect();
    let kinds = rows.iter().map(|row| ByteArray::from(row.kind.name()));
    let columns: [Vec<i64>; 2] = [long(|row| row.arrival.0), long(|row| row.bytes.0)];
    let nodes: [Vec<i32>; 2] = [node(|row| row.compute), node(|row| row.memory)];
    write_column::<Int64Type>(group, &columns[0], None)?;
    write_column::<ByteArrayType>(group, &kinds.collect::<Vec<_>>(), None)?;
    write_column::<Int32Type>(group, &nodes[0], None)?;
    write_column::<Int32Type>(group, &nodes[1], None)?;
    write_column::<Int64Type>(group, &columns[1], None)
}

fn unwritable(path: &Path, error: io::Error) -> WriteTraceError {
    OutputError::new(path, error).into()
}
