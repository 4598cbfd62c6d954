//! Finished points on the disk: one line each, accepted only if it is whole.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{Identity, METRICS, Record};

/// Why a journal cannot be used: one line that names it and the reason.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// Another sweep has it open.
    #[error("{}: another sweep writes it: wait for its end, or give another --out", .0.display())]
    Busy(PathBuf),
    /// The operating system refuses the file.
    #[error("cannot write {}: {reason}", path.display())]
    Io {
        /// The journal.
        path: PathBuf,
        /// The reason.
        #[source]
        reason: io::Error,
    },
}

/// A file of [`Record`]s as lines of JSON, open for one sweep at a time.
///
/// A line counts if it has its line break and parses as a record. The rest that a kill or a full
/// disk left is cut off when the journal is opened, and its point runs again.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Number of bytes of whole lines.
    length_bytes: u64,
    records: BTreeMap<String, Record>,
}

impl Journal {
    /// Opens or creates the journal at `path`.
    ///
    /// # Errors
    /// [`JournalError`] when it is open elsewhere, is not a file, or cannot be read or written.
    pub fn open(path: &Path) -> Result<Journal, JournalError> {
        let failed = |reason| JournalError::Io { path: path.to_owned(), reason };
        if path.exists() && !path.is_file() {
            return Err(failed(io::Error::other("not a file")));
        }
        let options = File::options().read(true).append(true).create(true).open(path);
        let mut file = options.map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::Busy(path.to_owned())),
            Err(TryLockError::Error(reason)) => return Err(failed(reason)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let whole_bytes = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
        if whole_bytes < bytes.len() {
            file.set_len(whole_bytes as u64).map_err(failed)?;
            file.seek(SeekFrom::End(0)).map_err(failed)?;
        }
        let lines = bytes[..whole_bytes].split(|&byte| byte == b'\n');
        let records = lines.filter_map(record).map(|record| (record.point.clone(), record));
        let records = records.collect();
        Ok(Journal { path: path.to_owned(), file, length_bytes: whole_bytes as u64, records })
    }

    /// The record of a point, if it is finished.
    #[must_use]
    pub fn get(&self, point: Identity) -> Option<&Record> {
        self.records.get(&point.to_string())
    }

    /// Number of finished points.
    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// Adds a finished point, and returns when it is on the disk.
    ///
    /// # Errors
    /// [`JournalError`] when it does not fit; a partly written line is removed.
    ///
    /// # Panics
    /// Never: a record serialises.
    pub fn add(&mut self, record: Record) -> Result<(), JournalError> {
        let mut line = serde_json::to_vec(&record).expect("keys are strings");
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_data());
        if let Err(reason) = written {
            // If this fails too, the line is cut off when the journal is opened again.
            let _ = self.file.set_len(self.length_bytes);
            return Err(JournalError::Io { path: self.path.clone(), reason });
        }
        self.length_bytes += line.len() as u64;
        self.records.insert(record.point.clone(), record);
        Ok(())
    }
}

fn record(line: &[u8]) -> Option<Record> {
    let record: Record = serde_json::from_slice(line).ok()?;
    (record.values.len() == METRICS.len()).then_some(record)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn sample(point: usize) -> Record {
        // The shortest decimals of these numbers are long.
        let value = |at: usize| (!at.is_multiple_of(5)).then(|| (at + point) as f64 / 3.0 + 1e-9);
        let values = (0..METRICS.len()).map(value).collect();
        Record { point: format!("{point:064x}"), values, notices: vec!["a\nb".to_owned()] }
    }

    #[test]
    fn a_journal_cut_at_any_byte_has_its_whole_lines_and_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut journal = Journal::open(&path).unwrap();
        for point in 0..3 {
            journal.add(sample(point)).unwrap();
        }
        drop(journal);
        let whole = fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let kept = whole[..cut].iter().filter(|&&byte| byte == b'\n').count();
            let mut journal = Journal::open(&path).unwrap();
            assert_eq!(journal.records.len(), kept, "cut at {cut}");
            for point in kept..3 {
                journal.add(sample(point)).unwrap();
            }
            drop(journal);
            assert!(fs::read(&path).unwrap() == whole, "cut at {cut}");
        }
    }

    #[test]
    fn what_is_kept_comes_back_bit_for_bit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        Journal::open(&path).unwrap().add(sample(7)).unwrap();
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.records.values().collect::<Vec<_>>(), [&sample(7)]);
    }

    #[test]
    fn a_line_that_is_no_record_is_not_taken() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let mut text = String::from("{\"point\":\"half{\"point\":\"x\"}\n\0\0\0\n\n");
        text += "{\"point\":\"00\",\"values\":[1.0],\"notices\":[]}\n";
        text += &serde_json::to_string(&sample(1)).unwrap();
        fs::write(&path, text + "\n").unwrap();
        let journal = Journal::open(&path).unwrap();
        assert_eq!(journal.records.keys().collect::<Vec<_>>(), [&sample(1).point]);
    }

    #[test]
    fn one_sweep_at_a_time_and_files_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("j");
        let _open = Journal::open(&path).unwrap();
        let busy = Journal::open(&path).unwrap_err();
        assert!(matches!(busy, JournalError::Busy(_)), "{busy}");
        let error = Journal::open(folder.path()).unwrap_err().to_string();
        assert!(error.ends_with(": not a file"), "{error}");
    }
}
