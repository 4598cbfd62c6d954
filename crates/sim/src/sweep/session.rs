//! A sweep in progress: finished points, missing points, and the file of results at its end.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use super::{
    Identity, Journal, JournalError, Point, Record, Summary, Sweep, summarise, write_rows,
};
use crate::output::OutputError;
use crate::scenario::Setting;
use crate::workload::InputError;

/// Why a sweep cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its input cannot be used.
    #[error(transparent)]
    Input(#[from] InputError),
    /// Its finished points cannot be kept.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// Its results cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
}

/// Maximum bytes of a file name that every file system accepts.
const NAME_BYTES_MAX: usize = 255;

/// The name of the journal for a file of results; it is a digest if the usual name would be too
/// long.
fn journal_name(out: &OsStr) -> OsString {
    let mut name = out.to_owned();
    name.push(".journal");
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let digest = Sha256::digest(out.as_encoded_bytes());
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{hex}.journal").into()
}

/// A sweep, its file of results, and the journal of its finished points beside it. Threads share
/// it.
pub struct Session {
    sweep: Sweep,
    out: PathBuf,
    journal: Mutex<Journal>,
    journal_path: PathBuf,
}

impl Session {
    /// Reads the sweep in `file`, as [`Sweep::load`] does, and opens the journal beside `out`.
    ///
    /// # Errors
    /// The errors of [`Sweep::load`] and [`Journal::open`]; also if `out` is not a file name.
    pub fn open(file: &Path, settings: &[Setting], out: &Path) -> Result<Session, SessionError> {
        let Some(name) = out.file_name().filter(|_| !out.exists() || out.is_file()) else {
            let problem = "must be the name of a file, beside which the journal has room";
            return Err(InputError::file(out, problem).into());
        };
        let sweep = Sweep::load(file, settings)?;
        let journal_path = out.with_file_name(journal_name(name));
        let journal = Mutex::new(Journal::open(&journal_path)?);
        Ok(Session { sweep, out: out.to_owned(), journal, journal_path })
    }

    /// The sweep.
    #[must_use]
    pub fn sweep(&self) -> &Sweep {
        &self.sweep
    }

    /// The path of the journal.
    #[must_use]
    pub fn journal(&self) -> &Path {
        &self.journal_path
    }

    /// Number of finished points in the journal that do not belong to this sweep. Another `--set`,
    /// another seed, or another version of the program made them.
    #[must_use]
    pub fn unused(&self) -> usize {
        let points: BTreeSet<Identity> = self.sweep.points.iter().map(|p| p.identity).collect();
        let journal = self.lock();
        let used = points.iter().filter(|&&point| journal.get(point).is_some()).count();
        journal.len() - used
    }

    /// Number of points of this sweep that the journal has.
    #[must_use]
    pub fn finished(&self) -> usize {
        let journal = self.lock();
        self.sweep.points.iter().filter(|point| journal.get(point.identity).is_some()).count()
    }

    /// Indices of the points to run. Each identity occurs once, since a sample may draw a point
    /// twice. The longest run comes first, so that no worker ends up alone with it.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let journal = self.lock();
        let mut seen: BTreeSet<Identity> = BTreeSet::new();
        let points = self.sweep.points.iter().enumerate();
        let missing = points.filter(|(_, point)| journal.get(point.identity).is_none());
        let missing = missing.filter(|(_, point)| seen.insert(point.identity));
        let mut missing: Vec<(usize, &Point)> = missing.collect();
        let work = |point: &Point| point.scenario.work();
        missing.sort_by(|(_, one), (_, other)| work(other).total_cmp(&work(one)));
        missing.into_iter().map(|(at, _)| at).collect()
    }

    /// Adds a finished point; returns when it is on the disk.
    ///
    /// # Errors
    /// The errors of [`Journal::add`].
    pub fn add(&self, record: Record) -> Result<(), JournalError> {
        self.lock().add(record)
    }

    /// Writes the results, and returns the summary of each place over its seeds.
    ///
    /// # Errors
    /// [`OutputError`] when they cannot be written; the journal still has all points.
    ///
    /// # Panics
    /// If a point is missing.
    pub fn write(&self) -> Result<Vec<Summary>, OutputError> {
        let Sweep { axes, points, .. } = &self.sweep;
        let journal = self.lock();
        let record = |point: &Point| journal.get(point.identity).expect("a finished point");
        let records: Vec<&Record> = points.iter().map(record).collect();
        let summaries = summarise(axes, points, &records);
        write_rows(&self.out, &self.sweep, &records, &summaries)?;
        Ok(summaries)
    }

    /// Locks the journal. Each record is added whole or not at all, so the journal is valid even if
    /// a thread panicked.
    fn lock(&self) -> MutexGuard<'_, Journal> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_has_a_name_that_every_file_system_takes() {
        assert_eq!(journal_name(OsStr::new("load.parquet")), "load.parquet.journal");
        let longest = "n".repeat(NAME_BYTES_MAX - ".journal".len());
        assert_eq!(journal_name(OsStr::new(&longest)).len(), NAME_BYTES_MAX);
        let names = [248, 250, 255].map(|length| journal_name(OsStr::new(&"n".repeat(length))));
        for name in &names {
            assert!(name.len() <= NAME_BYTES_MAX, "{name:?}");
        }
        // Each file of results has a journal of its own.
        assert_eq!(BTreeSet::from(names).len(), 3);
    }
}
