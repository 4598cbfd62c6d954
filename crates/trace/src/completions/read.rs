use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;

use ethermem_files::{
    BatchError, INTEGERS, InputError, ParquetInput, RowReader, Rows, found, read_integers,
    read_values, same_length, unsigned,
};
use ethermem_units::{Bytes, Ps};
use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::data_type::ByteArray;
use parquet::file::reader::ChunkReader;

use super::{Completion, FABRICS_KEY, VERSION, VERSION_KEY};
use crate::read::flags;
use crate::{ACCESS_BYTES_MAX, FlowKind};

const NEEDED: &str =
    "fabric, time_ns, cluster, compute, memory, kind, bytes, completion_ns, alone_ns";
/// Longest time, 53 days: the largest arrival time of a simulation.
const PS_MAX: u64 = 1 << 62;

/// The completion times of one fabric, in the order of the file, with one batch in memory.
pub struct CompletionTimes<R: ChunkReader = File> {
    fabric: String,
    rows: Rows<R, Format, 10>,
}

struct Format {
    fabric: String,
    fabrics: Vec<String>,
}

impl CompletionTimes {
    /// Opens the completion times of `fabric`, or of the only fabric in the file.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read, holds no completion times, or lacks the fabric;
    /// also if it has several and none was named. Invalid rows are found when they are read.
    pub fn open(path: &Path, fabric: Option<&str>) -> Result<CompletionTimes, InputError> {
        CompletionTimes::of(ParquetInput::open(path)?, fabric)
    }
}

impl<R: ChunkReader + 'static> CompletionTimes<R> {
    /// The completion times in a Parquet file.
    pub(crate) fn of(
        input: ParquetInput<R>,
        fabric: Option<&str>,
    ) -> Result<CompletionTimes<R>, InputError> {
        let refuse = |problem: String| Err(InputError::file(input.path(), problem));
        match input.note(VERSION_KEY) {
            Some(VERSION) => {}
            Some(other) => {
                return refuse(format!("{VERSION_KEY} = {}: must be {VERSION}", found(other)));
            }
            None => {
                return refuse(format!(
                    "no {VERSION_KEY} in its metadata: must be a file of `ethermem replay --out`"
                ));
            }
        }
        let listed = input.note(FABRICS_KEY).unwrap_or_default();
        let fabrics: Vec<String> = listed.split(',').map(str::to_owned).collect();
        let fabric = match fabric {
            None if fabrics.len() == 1 => fabrics[0].clone(),
            None => return refuse(format!("several fabrics: name one of {}", found(listed))),
            Some(fabric) if fabrics.iter().any(|known| known == fabric) => fabric.to_owned(),
            Some(fabric) => {
                let (fabric, listed) = (found(fabric), found(listed));
                return refuse(format!("no fabric {fabric}: must be {listed}"));
            }
        };
        let required = |name, allowed: &[Type]| input.required(name, allowed, NEEDED);
        let [fabrics_at, time, cluster, compute, memory, kind, bytes, completion, alone] = [
            required("fabric", &[Type::BYTE_ARRAY])?,
            required("time_ns", &[Type::DOUBLE])?,
            required("cluster", &INTEGERS)?,
            required("compute", &INTEGERS)?,
            required("memory", &INTEGERS)?,
            required("kind", &[Type::BYTE_ARRAY])?,
            required("bytes", &INTEGERS)?,
            required("completion_ns", &[Type::DOUBLE])?,
            required("alone_ns", &[Type::DOUBLE])?,
        ];
        let prefetched = input.column("prefetched", &[Type::BOOLEAN])?;
        // If the column is absent, another one is substituted and not read.
        let last = prefetched.unwrap_or(alone);
        let indices =
            [fabrics_at, time, cluster, compute, memory, kind, bytes, completion, alone, last];
        let format = Format { fabric: fabric.clone(), fabrics };
        Ok(CompletionTimes { fabric, rows: Rows::new(input, indices, format) })
    }

    /// Name of the fabric.
    #[must_use]
    pub fn fabric(&self) -> &str {
        &self.fabric
    }
}

impl<R: ChunkReader + 'static> Iterator for CompletionTimes<R> {
    type Item = Result<Completion, InputError>;

    /// The next completion; after an error, `None`.
    fn next(&mut self) -> Option<Result<Completion, InputError>> {
        loop {
            // Rows of other fabrics are read and skipped, so that a damaged file is detected.
            match self.rows.next_row() {
                Ok(Some(None)) => {}
                Ok(Some(Some(completion))) => return Some(Ok(completion)),
                Ok(None) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

impl RowReader<10> for Format {
    /// `None` for rows of other fabrics.
    type Row = Option<Completion>;

    fn read(
        &mut self,
        columns: &mut [ColumnReader; 10],
        rows: &mut VecDeque<Option<Completion>>,
    ) -> Result<(), BatchError> {
        let [fabric, time, cluster, compute, memory, kind, bytes, completion, alone, prefetched] =
            columns;
        let (fabrics, kinds) = (texts("fabric", fabric)?, texts("kind", kind)?);
        let time = doubles("time_ns", time)?;
        let completion = doubles("completion_ns", completion)?;
        let alone = doubles("alone_ns", alone)?;
        let cluster = read_integers("cluster", cluster)?;
        let compute = read_integers("compute", compute)?;
        let memory = read_integers("memory", memory)?;
        let bytes = read_integers("bytes", bytes)?;
        same_length([cluster.len(), compute.len(), memory.len(), bytes.len()])?;
        same_length([time.len(), completion.len(), alone.len()])?;
        let prefetched = flags("prefetched", prefetched, kinds.len())?;
        same_length([prefetched.len(), kinds.len()])?;
        let count = same_length([cluster.len(), time.len(), fabrics.len(), kinds.len()])?;
        for offset in 0..count {
            let row = || -> Result<Option<Completion>, String> {
                let completion = Completion {
                    time: ps("time_ns", time[offset])?,
                    cluster: small("cluster", cluster[offset])?,
                    compute: small("compute", compute[offset])?,
                    memory: small("memory", memory[offset])?,
                    kind: kind_of(kinds[offset].data())?,
                    bytes: size(bytes[offset])?,
                    completion: ps("completion_ns", completion[offset])?,
                    alone: ps("alone_ns", alone[offset])?,
                    prefetched: prefetched[offset],
                };
                Ok(self.is_asked(fabrics[offset].data())?.then_some(completion))
            };
            rows.push_back(row().map_err(|problem| BatchError { offset, problem })?);
        }
        Ok(())
    }
}

impl Format {
    fn is_asked(&self, name: &[u8]) -> Result<bool, String> {
        if self.fabrics.iter().any(|fabric| fabric.as_bytes() == name) {
            return Ok(self.fabric.as_bytes() == name);
        }
        let (name, listed) = (String::from_utf8_lossy(name), self.fabrics.join(","));
        Err(format!("fabric = {}: must be {}", found(&name), found(&listed)))
    }
}

fn kind_of(name: &[u8]) -> Result<FlowKind, String> {
    FlowKind::of_name(name).ok_or_else(|| {
        let names = FlowKind::ALL.map(FlowKind::name).join(", ");
        format!("kind = {}: must be one of {names}", found(&String::from_utf8_lossy(name)))
    })
}

fn texts(name: &str, column: &mut ColumnReader) -> Result<Vec<ByteArray>, BatchError> {
    let ColumnReader::ByteArrayColumnReader(reader) = column else {
        unreachable!("the column's type was checked when the file was opened")
    };
    read_values(name, reader)
}

fn doubles(name: &str, column: &mut ColumnReader) -> Result<Vec<f64>, BatchError> {
    let ColumnReader::DoubleColumnReader(reader) = column else {
        unreachable!("the column's type was checked when the file was opened")
    };
    read_values(name, reader)
}

fn ps(name: &str, ns: f64) -> Result<Ps, String> {
    Ps::from_ns_f64(ns)
        .filter(|time| time.0 <= PS_MAX)
        .ok_or_else(|| format!("{name} = {ns}: must be 0 to {} ns", Ps(PS_MAX).as_ns_f64()))
}

fn small(name: &str, value: i64) -> Result<u16, String> {
    u16::try_from(value).map_err(|_| format!("{name} = {value}: must be 0 to {}", u16::MAX))
}

fn size(bytes: i64) -> Result<Bytes, String> {
    let bytes = unsigned("bytes", bytes)?;
    if (1..=ACCESS_BYTES_MAX).contains(&bytes) {
        return Ok(Bytes(bytes));
    }
    Err(format!("bytes = {bytes}: must be 1 to {ACCESS_BYTES_MAX}"))
}
