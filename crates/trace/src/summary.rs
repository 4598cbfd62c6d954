use ethermem_files::{InputError, ParquetInput, found};
use ethermem_units::{Bytes, Ns};
use parquet::file::metadata::KeyValue;
use parquet::file::reader::ChunkReader;

use crate::FORMAT_VERSION;

/// Metadata key that marks the file.
const VERSION: &str = "ethermem.page_trace";
/// Allowed page sizes: 512 B to 1 GiB.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = 512..=1 << 30;

/// Properties of a whole run, known at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Largest amount of memory that the program had locally.
    pub local: Bytes,
    /// Largest amount of memory that it had, locally and remotely.
    pub peak: Bytes,
    /// Time from its start to its end.
    pub duration: Ns,
    /// Command, quoted for a shell.
    pub command: String,
    /// How it ended.
    pub ended: Ended,
    /// Number of prefetched reads; `None` if unknown.
    pub prefetched_accesses: Option<u64>,
    /// Number of accesses without a row, for lack of space or of time.
    pub unrecorded_accesses: u64,
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It exited with this code.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Summary {
    /// Metadata of a file with this summary.
    pub(crate) fn notes(&self, page: Bytes) -> Vec<KeyValue> {
        let mut notes = vec![
            (VERSION, FORMAT_VERSION.to_string()),
            ("page_bytes", page.0.to_string()),
            ("local_bytes", self.local.0.to_string()),
            ("peak_bytes", self.peak.0.to_string()),
            ("duration_ns", self.duration.0.to_string()),
            ("command", self.command.clone()),
            self.ended.note(),
            ("unrecorded_accesses", self.unrecorded_accesses.to_string()),
        ];
        let prefetched = self.prefetched_accesses;
        notes.extend(prefetched.map(|count| ("prefetched_accesses", count.to_string())));
        notes.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect()
    }

    /// Page size and summary from a file's metadata.
    pub(crate) fn of<R: ChunkReader + 'static>(
        input: &ParquetInput<R>,
    ) -> Result<(Bytes, Summary), InputError> {
        let Some(version) = input.note(VERSION) else {
            let problem =
                format!("no {VERSION} in its metadata: must be a trace of `ethermem profile`");
            return Err(InputError::file(input.path(), problem));
        };
        if version.parse() != Ok(FORMAT_VERSION) {
            let version = found(version);
            let problem = format!("{VERSION} = {version}: must be {FORMAT_VERSION}");
            return Err(InputError::file(input.path(), problem));
        }
        let page: u64 = number(input, "page_bytes")?;
        if !PAGE_BYTES.contains(&page) || !page.is_power_of_two() {
            let (first, last) = (PAGE_BYTES.start(), PAGE_BYTES.end());
            let problem = format!("page_bytes = {page}: must be a power of 2, {first} to {last}");
            return Err(InputError::file(input.path(), problem));
        }
        let prefetched = input.note("prefetched_accesses").is_some();
        let summary = Summary {
            local: Bytes(number(input, "local_bytes")?),
            peak: Bytes(number(input, "peak_bytes")?),
            duration: Ns(number(input, "duration_ns")?),
            command: needed(input, "command")?.to_owned(),
            ended: Ended::of(input)?,
            prefetched_accesses: match prefetched {
                true => Some(number(input, "prefetched_accesses")?),
                false => None,
            },
            unrecorded_accesses: number(input, "unrecorded_accesses")?,
        };
        Ok((Bytes(page), summary))
    }
}

impl Ended {
    /// Key and value in a file's metadata.
    pub(crate) fn note(self) -> (&'static str, String) {
        match self {
            Ended::Exit(code) => ("exit_code", code.to_string()),
            Ended::Signal(signal) => ("exit_signal", signal.to_string()),
        }
    }

    /// The end in a file's metadata.
    pub(crate) fn of<R: ChunkReader + 'static>(
        input: &ParquetInput<R>,
    ) -> Result<Ended, InputError> {
        Ok(match input.note("exit_signal") {
            Some(_) => Ended::Signal(number(input, "exit_signal")?),
            None => Ended::Exit(number(input, "exit_code")?),
        })
    }
}

impl std::fmt::Display for Ended {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ended::Exit(code) => write!(f, "exit code {code}"),
            Ended::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

pub(crate) fn number<R: ChunkReader + 'static, N: std::str::FromStr>(
    input: &ParquetInput<R>,
    key: &str,
) -> Result<N, InputError> {
    let value = needed(input, key)?;
    value.parse().map_err(|_| {
        let problem = format!("{key} = {} in its metadata: must be a whole number", found(value));
        InputError::file(input.path(), problem)
    })
}

pub(crate) fn needed<'i, R: ChunkReader + 'static>(
    input: &'i ParquetInput<R>,
    key: &str,
) -> Result<&'i str, InputError> {
    input.note(key).ok_or_else(|| {
        let problem = format!("no {key} in its metadata: must be a trace with all keys");
        InputError::file(input.path(), problem)
    })
}
