use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ethermem_units::Ps;
use ethermem_workload::Message;
use parquet::basic::{Compression, Encoding};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::{ColumnPath, Type};

use ethermem_files::{AtomicFile, OutputError, reason, write_column};

use crate::metrics::{ProgramStats, Steady};

/// Number of rows kept in memory before they are encoded: 16 MB.
const ROW_GROUP_ROWS: usize = 1 << 18;

/// Metadata key of a file of messages. Its value is `steady` of the run's JSON: whether the run has
/// settled.
pub const STEADY_METADATA: &str = "ethermem.steady";

/// Metadata key of a file of messages. Its value is `program` of the run's JSON: what the program
/// took.
pub const PROGRAM_METADATA: &str = "ethermem.program";

/// The columns include the ones that a trace file needs, with equal names, and rows are in order of
/// arrival. So the file of one run is a trace for the next.
const SCHEMA: &str = "
    message ethermem_messages {
        required int64 index (INTEGER(64, false));
        required int64 arrival_ps (INTEGER(64, false));
        required binary kind (STRING);
        required int32 compute (INTEGER(16, false));
        required int32 memory (INTEGER(16, false));
        required int64 bytes (INTEGER(64, false));
        optional int64 finished_ps (INTEGER(64, false));
        optional int64 alone_ps (INTEGER(64, false));
        optional double slowdown;
    }
";

/// A Parquet file of every message of a run, in order of index, streamed in row groups.
///
/// Rows wait in memory until all earlier messages have ended.
pub struct MessageWriter {
    path: PathBuf,
    parquet: SerializedFileWriter<AtomicFile>,
    /// Index of the front of `waiting`.
    next_index: u64,
    waiting: VecDeque<Option<Row>>,
    rows: Vec<Row>,
}

#[derive(Clone, Copy)]
struct Row {
    message: Message,
    ended: Option<Ended>,
}

#[derive(Clone, Copy)]
struct Ended {
    finished: Ps,
    alone: Ps,
}

impl MessageWriter {
    /// Opens `path`, which takes its name with [`MessageWriter::close`].
    ///
    /// # Errors
    /// [`OutputError`] when it cannot be created.
    ///
    /// # Panics
    /// Never: the schema is a constant.
    pub fn create(path: &Path) -> Result<MessageWriter, OutputError> {
        let mut properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(concat!("ethermem ", env!("CARGO_PKG_VERSION")).to_owned());
        for column in ["index", "arrival_ps", "finished_ps"] {
            let column = ColumnPath::from(column);
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
        let file = AtomicFile::create(path)?;
        let parquet =
            SerializedFileWriter::new(file, Arc::new(schema()), Arc::new(properties.build()))
                .map_err(|error| OutputError::new(path, reason(error)))?;
        Ok(MessageWriter {
            path: path.to_owned(),
            parquet,
            next_index: 0,
            waiting: VecDeque::new(),
            rows: Vec::with_capacity(ROW_GROUP_ROWS),
        })
    }

    /// Adds `message`, which ended at `finished`; alone it takes `alone`.
    ///
    /// # Errors
    /// [`OutputError`] when a row group cannot be written.
    ///
    /// # Panics
    /// If a message with this index was added before.
    pub fn finished(
        &mut self,
        message: &Message,
        finished: Ps,
        alone: Ps,
    ) -> Result<(), OutputError> {
        self.push(Row { message: *message, ended: Some(Ended { finished, alone }) })
    }

    /// Adds `message`, which will never end.
    ///
    /// # Errors
    /// [`OutputError`] when a row group cannot be written.
    ///
    /// # Panics
    /// If a message with this index was added before.
    pub fn lost(&mut self, message: &Message) -> Result<(), OutputError> {
        self.push(Row { message: *message, ended: None })
    }

    /// Writes the waiting rows and gives the file its name. The file's metadata gets `steady` and
    /// `program` as JSON, under [`STEADY_METADATA`] and [`PROGRAM_METADATA`].
    ///
    /// # Errors
    /// [`OutputError`] when the rest cannot be written; then no file is left.
    ///
    /// # Panics
    /// Never: the metadata serialises.
    pub fn close(
        mut self,
        steady: Option<&Steady>,
        program: Option<&ProgramStats>,
    ) -> Result<(), OutputError> {
        for row in std::mem::take(&mut self.waiting).into_iter().flatten() {
            self.buffer(row)?;
        }
        self.write_row_group()?;
        let json = |value: serde_json::Result<String>| value.expect("keys are strings");
        let steady = steady.map(|steady| (STEADY_METADATA, json(serde_json::to_string(steady))));
        let program =
            program.map(|program| (PROGRAM_METADATA, json(serde_json::to_string(program))));
        for (key, json) in steady.into_iter().chain(program) {
            self.parquet.append_key_value_metadata(KeyValue::new(key.to_owned(), json));
        }
        let file = self.parquet.into_inner();
        file.map_err(|error| OutputError::new(&self.path, reason(error)))?.commit()
    }

    fn push(&mut self, row: Row) -> Result<(), OutputError> {
        let ahead = row.message.index.checked_sub(self.next_index).expect("a message ends once");
        let ahead = usize::try_from(ahead).expect("an index that memory can hold");
        if ahead >= self.waiting.len() {
            self.waiting.resize(ahead + 1, None);
        }
        assert!(self.waiting[ahead].replace(row).is_none(), "a message ends once");
        while let Some(Some(row)) = self.waiting.front().copied() {
            self.waiting.pop_front();
            self.next_index += 1;
            self.buffer(row)?;
        }
        Ok(())
    }

    fn buffer(&mut self, row: Row) -> Result<(), OutputError> {
        self.rows.push(row);
        if self.rows.len() == ROW_GROUP_ROWS { self.write_row_group() } else { Ok(()) }
    }

    fn write_row_group(&mut self) -> Result<(), OutputError> {
        if self.rows.is_empty() {
            return Ok(());
        }
        let written = self.parquet.next_row_group().and_then(|group| write_rows(group, &self.rows));
        self.rows.clear();
        written.map_err(|error| OutputError::new(&self.path, reason(error)))
    }
}

/// The columns, in the order in which they are written.
pub(super) fn schema() -> Type {
    parse_message_type(SCHEMA).expect("a constant schema")
}

fn write_rows(
    mut group: SerializedRowGroupWriter<'_, AtomicFile>,
    rows: &[Row],
) -> Result<(), ParquetError> {
    let required = |value: fn(&Message) -> u64| {
        rows.iter().map(|row| value(&row.message).cast_signed()).collect::<Vec<i64>>()
    };
    let nodes = |value: fn(&Message) -> u16| {
        rows.iter().map(|row| i32::from(value(&row.message))).collect::<Vec<i32>>()
    };
    let ended = || rows.iter().filter_map(|row| row.ended.map(|ended| (&row.message, ended)));
    let kinds: Vec<ByteArray> =
        rows.iter().map(|row| ByteArray::from(row.message.kind.name())).collect();
    let finished_ps: Vec<i64> = ended().map(|(_, ended)| ended.finished.0.cast_signed()).collect();
    let alone_ps: Vec<i64> = ended().map(|(_, ended)| ended.alone.0.cast_signed()).collect();
    let slowdowns: Vec<f64> = ended()
        .map(|(message, ended)| (ended.finished - message.arrival).0 as f64 / ended.alone.0 as f64)
        .collect();
    let present: Vec<i16> = rows.iter().map(|row| i16::from(row.ended.is_some())).collect();

    write_column::<Int64Type>(&mut group, &required(|message| message.index), None)?;
    write_column::<Int64Type>(&mut group, &required(|message| message.arrival.0), None)?;
    write_column::<ByteArrayType>(&mut group, &kinds, None)?;
    write_column::<Int32Type>(&mut group, &nodes(|message| message.compute), None)?;
    write_column::<Int32Type>(&mut group, &nodes(|message| message.memory), None)?;
    write_column::<Int64Type>(&mut group, &required(|message| message.bytes.0), None)?;
    write_column::<Int64Type>(&mut group, &finished_ps, Some(&present))?;
    write_column::<Int64Type>(&mut group, &alone_ps, Some(&present))?;
    write_column::<DoubleType>(&mut group, &slowdowns, Some(&present))?;
    group.close().map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use ethermem_units::Bytes;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::{Field, RowAccessor};

    use super::*;
    use ethermem_workload::Kind;

    fn message(index: u64) -> Message {
        Message {
            index,
            arrival: Ps(1_000 * index),
            kind: Kind::ALL[index as usize % 3],
            compute: 511,
            memory: index as u16,
            bytes: Bytes(64 + index),
        }
    }

    #[test]
    fn rows_come_back_in_order_of_index_with_nulls_for_the_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.parquet");
        let mut writer = MessageWriter::create(&path).unwrap();
        for index in [2, 0, 3] {
            let message = message(index);
            writer.finished(&message, message.arrival + Ps(450), Ps(300)).unwrap();
        }
        writer.lost(&message(1)).unwrap();
        assert!(!path.exists());
        let steady = Steady::sample();
        let program = ProgramStats {
            name: "gather".to_owned(),
            steps: 4,
            finished_ns: 3.5,
            links_ns: 2.0,
            over_links: Some(1.75),
            order: Vec::new(),
        };
        writer.close(Some(&steady), Some(&program)).unwrap();

        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata().key_value_metadata().unwrap();
        let found = metadata.iter().find(|pair| pair.key == STEADY_METADATA).unwrap();
        let json: serde_json::Value =
            serde_json::from_str(found.value.as_deref().unwrap()).unwrap();
        assert_eq!(json, serde_json::to_value(&steady).unwrap());
        assert_eq!(json["state"], "not-sustained");
        let found = metadata.iter().find(|pair| pair.key == PROGRAM_METADATA).unwrap();
        let expected = "{\"name\":\"gather\",\"steps\":4,\"finished_ns\":3.5,\"links_ns\":2.0,\
                        \"over_links\":1.75}";
        assert_eq!(found.value.as_deref(), Some(expected));
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 4);
        for (index, row) in (0_u64..).zip(&rows) {
            let expected = message(index);
            assert_eq!(row.get_ulong(0).unwrap(), index);
            assert_eq!(row.get_ulong(1).unwrap(), expected.arrival.0);
            assert_eq!(row.get_string(2).unwrap(), expected.kind.name());
            assert_eq!(row.get_ushort(3).unwrap(), 511);
            assert_eq!(row.get_ushort(4).unwrap(), expected.memory);
            assert_eq!(row.get_ulong(5).unwrap(), expected.bytes.0);
            let optional: Vec<&Field> = row.get_column_iter().skip(6).map(|(_, f)| f).collect();
            if index == 1 {
                assert_eq!(optional, [&Field::Null, &Field::Null, &Field::Null]);
            } else {
                let finished = Field::ULong(1_000 * index + 450);
                assert_eq!(optional, [&finished, &Field::ULong(300), &Field::Double(1.5)]);
            }
        }
        let names: Vec<&str> = rows[0].get_column_iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names[..6], ["index", "arrival_ps", "kind", "compute", "memory", "bytes"]);
        assert_eq!(names[6..], ["finished_ps", "alone_ps", "slowdown"]);
    }

    #[test]
    fn many_rows_make_many_row_groups_and_the_same_bytes_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = folder.path().join(name);
            let mut writer = MessageWriter::create(&path).unwrap();
            for index in 0..ROW_GROUP_ROWS as u64 + 1 {
                let message = message(index);
                writer.finished(&message, message.arrival + Ps(300), Ps(300)).unwrap();
            }
            writer.close(None, None).unwrap();
            std::fs::read(&path).unwrap()
        };
        let bytes = write("a.parquet");
        assert!(bytes == write("b.parquet"));
        let file = File::open(folder.path().join("a.parquet")).unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        assert_eq!(reader.num_row_groups(), 2);
        assert_eq!(reader.metadata().file_metadata().num_rows(), ROW_GROUP_ROWS as i64 + 1);
    }

    #[test]
    fn a_stopped_run_keeps_what_ended() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("messages.parquet");
        let mut writer = MessageWriter::create(&path).unwrap();
        writer.finished(&message(5), Ps(9_000), Ps(300)).unwrap();
        writer.close(None, None).unwrap();
        let reader = SerializedFileReader::new(File::open(&path).unwrap()).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].get_ulong(0).unwrap(), 5);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_said_in_one_line() {
        let mut writer = MessageWriter::create(Path::new("/dev/full")).unwrap();
        writer.lost(&message(0)).unwrap();
        let line = writer.close(None, None).unwrap_err().to_string();
        assert_eq!(line, "cannot write /dev/full: No space left on device (os error 28)");
    }
}
