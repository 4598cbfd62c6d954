//! Traces as text: CSV with a header, and the EDM artifact's seven columns without one.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek};
use std::path::Path;

use ethermem_units::Ps;

use super::EDM_ARTIFACT_SLOT;
use super::row::{Row, RowChecker, parse_integer, parse_kind, parse_ns};
use crate::lines::{Lines, exact_fields, fields};
use crate::message::{Kind, Message, MessageSource, SourceError};
use crate::{InputError, TraceFormat, found};

/// The rows of a text file as messages.
pub struct TextTrace<R> {
    lines: Lines<R>,
    layout: Layout,
    checker: RowChecker,
    messages_total: Option<u64>,
}

/// The places of a row's values.
enum Layout {
    EdmArtifact,
    Columns(Columns),
}

struct Columns {
    count: usize,
    arrival_in_ns: bool,
    arrival: usize,
    kind: usize,
    compute: usize,
    memory: usize,
    bytes: usize,
}

impl TextTrace<BufReader<File>> {
    /// Opens `path`; a regular file is read through once to count its messages.
    pub(super) fn open(
        path: &Path,
        format: TraceFormat,
        nodes: u16,
    ) -> Result<TextTrace<BufReader<File>>, InputError> {
        let unreadable = |error: std::io::Error| InputError::io(path, "be read", &error);
        let mut file = File::open(path).map_err(unreadable)?;
        let mut rows = None;
        if file.metadata().map_err(unreadable)?.is_file() {
            let mut lines = Lines::new(BufReader::new(&mut file), path);
            let mut count = 0;
            while lines.advance()? {
                count += 1;
            }
            rows = Some(count);
            file.rewind().map_err(unreadable)?;
        }
        let mut trace = TextTrace::new(BufReader::new(file), path, format, nodes)?;
        let header = u64::from(matches!(trace.layout, Layout::Columns(_)));
        trace.messages_total = rows.map(|rows: u64| rows.saturating_sub(header));
        Ok(trace)
    }
}

impl<R: BufRead> TextTrace<R> {
    /// Reads from any reader; errors name it by `file`.
    ///
    /// # Errors
    /// [`InputError`] when there is no row, or the header lacks a column.
    ///
    /// # Panics
    /// If `format` is Parquet, which is not text.
    pub fn new(
        reader: R,
        file: &Path,
        format: TraceFormat,
        nodes: u16,
    ) -> Result<TextTrace<R>, InputError> {
        let mut lines = Lines::new(reader, file);
        let layout = match format {
            TraceFormat::EdmArtifact => Layout::EdmArtifact,
            TraceFormat::Csv => {
                if !lines.advance()? {
                    return Err(InputError::file(file, format!("empty: {HEADER_ALLOWED}")));
                }
                let columns = Columns::of_header(lines.row()?);
                Layout::Columns(columns.map_err(|problem| lines.error(problem))?)
            }
            TraceFormat::Parquet => panic!("Parquet is read by ParquetTrace"),
        };
        let checker = RowChecker::new(nodes);
        Ok(TextTrace { lines, layout, checker, messages_total: None })
    }

    fn next_row(&mut self) -> Result<Option<Message>, InputError> {
        if !self.lines.advance()? {
            if self.checker.messages() == 0 {
                let problem = "no message: must be one or more rows";
                return Err(InputError::file(self.lines.file(), problem));
            }
            return Ok(None);
        }
        let text = self.lines.row()?;
        let row = match &self.layout {
            Layout::EdmArtifact => parse_edm_artifact(text),
            Layout::Columns(columns) => columns.parse(text),
        };
        let message = row.and_then(|row| self.checker.check(row));
        message.map(Some).map_err(|problem| self.lines.error(problem))
    }
}

impl<R: BufRead + Send> MessageSource for TextTrace<R> {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.next_row()?)
    }

    fn messages_total(&self) -> Option<u64> {
        self.messages_total
    }
}

const NEEDED: [&str; 6] = ["arrival_ps", "arrival_ns", "kind", "compute", "memory", "bytes"];
const HEADER_ALLOWED: &str =
    "must be one with arrival_ps or arrival_ns, kind, compute, memory, bytes, each once";

impl Columns {
    fn of_header(header: &str) -> Result<Columns, String> {
        let names: Vec<&str> = fields(header).collect();
        let column = |name: &str| names.iter().position(|column| *column == name);
        let (arrival_ps, arrival_ns) = (column("arrival_ps"), column("arrival_ns"));
        // Two columns with one meaning are ambiguous.
        let is_twice = |name: &&str| names.iter().filter(|column| *column == name).count() > 1;
        let is_ambiguous = NEEDED.iter().any(is_twice) || arrival_ps.and(arrival_ns).is_some();
        let columns = || {
            Some(Columns {
                count: names.len(),
                arrival_in_ns: arrival_ps.is_none(),
                arrival: arrival_ps.or(arrival_ns)?,
                kind: column("kind")?,
                compute: column("compute")?,
                memory: column("memory")?,
                bytes: column("bytes")?,
            })
        };
        let columns = columns().filter(|_| !is_ambiguous);
        columns.ok_or_else(|| format!("header {}: {HEADER_ALLOWED}", found(header)))
    }

    fn parse(&self, text: &str) -> Result<Row, String> {
        let [mut arrival, mut kind, mut compute, mut memory, mut bytes] = [""; 5];
        let mut count = 0;
        for (index, field) in fields(text).enumerate() {
            count += 1;
            let value = match index {
                _ if index == self.arrival => &mut arrival,
                _ if index == self.kind => &mut kind,
                _ if index == self.compute => &mut compute,
                _ if index == self.memory => &mut memory,
                _ if index == self.bytes => &mut bytes,
                _ => continue,
            };
            *value = field;
        }
        if count != self.count {
            let (row, allowed) = (found(text), self.count);
            return Err(format!("{row}: {count} fields: must be {allowed}, as in the header"));
        }
        let arrival = if self.arrival_in_ns {
            parse_ns("arrival_ns", arrival)?
        } else {
            Ps(parse_integer("arrival_ps", arrival)?)
        };
        Ok(Row {
            arrival,
            kind: parse_kind(kind)?,
            compute: parse_integer("compute", compute)?,
            memory: parse_integer("memory", memory)?,
            bytes: parse_integer("bytes", bytes)?,
        })
    }
}

const EDM_ARTIFACT_COLUMNS: [&str; 7] =
    ["id", "type", "src", "dst", "bytes", "reply_bytes", "slot"];

/// A row of `netsimu`. For a read, `bytes` is the request and `reply_bytes` the data read.
fn parse_edm_artifact(text: &str) -> Result<Row, String> {
    let [id, kind, compute, memory, bytes, reply_bytes, slot] =
        exact_fields(text, &EDM_ARTIFACT_COLUMNS)?;
    parse_integer("id", id)?;
    let (kind, bytes) = match kind {
        "1" => (Kind::Read, parse_integer("reply_bytes", reply_bytes)?),
        "3" => (Kind::Write, parse_integer("bytes", bytes)?),
        _ => {
            let kind = found(kind);
            return Err(format!("type = {kind}: must be 1 (read) or 3 (write)"));
        }
    };
    let slots = parse_integer("slot", slot)?;
    let arrival = slots.checked_mul(EDM_ARTIFACT_SLOT.0).map(Ps);
    Ok(Row {
        arrival: arrival.ok_or_else(|| format!("slot = {slots}: must be at most 53 days"))?,
        kind,
        compute: parse_integer("src", compute)?,
        memory: parse_integer("dst", memory)?,
        bytes,
    })
}
