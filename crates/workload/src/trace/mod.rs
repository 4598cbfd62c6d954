//! Traces of recorded messages: the meaning of a row, and the file formats.

mod check;
mod parquet;
mod row;
mod text;
mod write;

use std::path::{Path, PathBuf};

use ethermem_units::Ps;

use self::parquet::ParquetTrace;
use crate::InputError;
use crate::message::MessageSource;
#[doc(hidden)]
pub use check::check_trace;
pub use text::TextTrace;
pub use write::{WriteTraceError, write_trace};

/// The slot of the EDM artifact's simulator: a 64-bit block at 100 Gb/s.
const EDM_ARTIFACT_SLOT: Ps = Ps(640);

/// The trace file of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceConfig {
    /// The path of the file.
    pub path: PathBuf,
    /// The format of the file.
    pub format: TraceFormat,
}

/// The format of a trace file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFormat {
    /// Comma-separated with a header: `arrival_ps` or `arrival_ns`, `kind`, `compute`, `memory`,
    /// `bytes`, in any order; further columns are ignored.
    Csv,
    /// Parquet with the columns of [`TraceFormat::Csv`].
    Parquet,
    /// The EDM artifact's seven columns without a header: `id,type,src,dst,bytes,reply_bytes,slot`
    /// with type 1 for reads and 3 for writes, and slots of 0.64 ns.
    EdmArtifact,
}

impl TraceConfig {
    /// Opens the trace for a network of `nodes`.
    ///
    /// # Errors
    /// [`InputError`] for a file that cannot be read or is not in the format. Invalid rows are
    /// found when they are drawn.
    pub fn open(&self, nodes: u16) -> Result<Box<dyn MessageSource>, InputError> {
        Ok(match self.format {
            TraceFormat::Parquet => Box::new(ParquetTrace::open(&self.path, nodes)?),
            TraceFormat::Csv | TraceFormat::EdmArtifact => {
                Box::new(TextTrace::open(&self.path, self.format, nodes)?)
            }
        })
    }
}

impl TraceFormat {
    /// Every format.
    pub const ALL: [TraceFormat; 3] =
        [TraceFormat::Csv, TraceFormat::Parquet, TraceFormat::EdmArtifact];

    /// The name in scenarios and on the command line.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TraceFormat::Csv => "csv",
            TraceFormat::Parquet => "parquet",
            TraceFormat::EdmArtifact => "edm-artifact",
        }
    }

    /// The format of a file extension: `.csv` or `.parquet`.
    #[must_use]
    pub fn of_path(path: &Path) -> Option<TraceFormat> {
        let extension = path.extension()?;
        [TraceFormat::Csv, TraceFormat::Parquet]
            .into_iter()
            .find(|format| extension.eq_ignore_ascii_case(format.name()))
    }
}

#[cfg(test)]
mod tests;
