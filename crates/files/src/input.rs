//! Parquet input from outside. A damaged file ends in an error of one line, as any other bad input
//! does.

use std::fs::File;
use std::path::{Path, PathBuf};

use parquet::basic::Type;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};

use crate::InputError;
use crate::contain::contain;

/// The physical types of whole numbers.
pub const INTEGERS: [Type; 2] = [Type::INT32, Type::INT64];

/// A Parquet file, and the path by which errors name it.
pub struct ParquetInput<R: ChunkReader> {
    path: PathBuf,
    reader: SerializedFileReader<R>,
}

impl ParquetInput<File> {
    /// Opens a file.
    ///
    /// # Errors
    /// [`InputError`] when the file cannot be read or is not Parquet.
    pub fn open(path: &Path) -> Result<ParquetInput<File>, InputError> {
        let file = File::open(path).map_err(|error| InputError::io(path, "be read", &error))?;
        if file.metadata().is_ok_and(|metadata| metadata.is_dir()) {
            let problem = "is a folder: must be a file in Parquet";
            return Err(InputError::file(path, problem));
        }
        ParquetInput::new(file, path)
    }
}

impl<R: ChunkReader + 'static> ParquetInput<R> {
    /// Reads from any reader; errors name it by `path`.
    ///
    /// # Errors
    /// [`InputError`] when the bytes are not Parquet.
    pub fn new(reader: R, path: &Path) -> Result<ParquetInput<R>, InputError> {
        let reader = contain(|| SerializedFileReader::new(reader));
        let reader = reader.ok_or_else(|| damaged(path))?;
        let reader = reader.map_err(|error| unreadable(path, &error))?;
        Ok(ParquetInput { path: path.to_owned(), reader })
    }

    /// The path by which errors name the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows that the footer promises; `None` when the footer's number is negative.
    #[must_use]
    pub fn rows(&self) -> Option<u64> {
        u64::try_from(self.reader.metadata().file_metadata().num_rows()).ok()
    }

    pub(crate) fn row_groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// The text under `key` in the file's metadata.
    #[must_use]
    pub fn note(&self, key: &str) -> Option<&str> {
        let notes = self.reader.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == key)?.value.as_deref()
    }

    /// The index of the column `name`, if the file has one.
    ///
    /// # Errors
    /// [`InputError`] when the column is repeated or its type is not `allowed`.
    pub fn column(&self, name: &str, allowed: &[Type]) -> Result<Option<usize>, InputError> {
        let schema = self.reader.metadata().file_metadata().schema_descr();
        let mut columns = schema.columns().iter();
        let Some(index) = columns.position(|column| column.path().string() == name) else {
            return Ok(None);
        };
        let column = schema.column(index);
        if !allowed.contains(&column.physical_type()) || column.max_rep_level() > 0 {
            let names: Vec<String> = allowed.iter().map(ToString::to_string).collect();
            let (found, allowed) = (column.physical_type(), names.join(", "));
            let problem = format!("column {name} of type {found}: must be {allowed}, not repeated");
            return Err(InputError::file(&self.path, problem));
        }
        Ok(Some(index))
    }

    /// The index of the column `name`; `needed` names all columns that a file must have.
    ///
    /// # Errors
    /// [`InputError`] when the column is missing or repeated, or its type is not `allowed`.
    pub fn required(
        &self,
        name: &str,
        allowed: &[Type],
        needed: &str,
    ) -> Result<usize, InputError> {
        self.column(name, allowed)?.ok_or_else(|| {
            let problem = format!("no column {name}: must be files with {needed}");
            InputError::file(&self.path, problem)
        })
    }

    /// Readers of the columns at `indices` of a row group, each at its first row.
    pub(crate) fn columns<const N: usize>(
        &self,
        row_group: usize,
        indices: [usize; N],
    ) -> Result<[ColumnReader; N], InputError> {
        let read = || -> Result<Vec<ColumnReader>, ParquetError> {
            let group = self.reader.get_row_group(row_group)?;
            indices.iter().map(|&index| group.get_column_reader(index)).collect()
        };
        let columns = self.decode(read)?.map_err(|error| unreadable(&self.path, &error))?;
        Ok(columns.try_into().unwrap_or_else(|_| unreachable!("a reader for each index")))
    }

    /// Returns what `decode` makes of the file. After a panic, what `decode` worked on must not be
    /// used.
    pub(crate) fn decode<T>(&self, decode: impl FnOnce() -> T) -> Result<T, InputError> {
        contain(decode).ok_or_else(|| damaged(&self.path))
    }
}

fn damaged(path: &Path) -> InputError {
    InputError::file(path, "not readable as Parquet: damaged")
}

fn unreadable(path: &Path, error: &ParquetError) -> InputError {
    InputError::file(path, format!("not readable as Parquet: {}", words(error)))
}

pub(crate) fn words(error: &ParquetError) -> String {
    match error {
        ParquetError::General(words) | ParquetError::EOF(words) | ParquetError::NYI(words) => {
            words.clone()
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_parquet_is_said_in_one_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.parquet");
        std::fs::write(&path, "time_ns,kind\n1,read\n").unwrap();
        let refused = |path: &Path| ParquetInput::open(path).err().unwrap().to_string();
        let line = refused(&path);
        let start = format!("{}: not readable as Parquet: ", path.display());
        assert!(line.starts_with(&start) && line.lines().count() == 1, "{line}");
        let line = refused(folder.path());
        assert!(line.ends_with("is a folder: must be a file in Parquet"), "{line}");
        let line = refused(&folder.path().join("none"));
        assert!(line.ends_with("cannot be read: No such file or directory"), "{line}");
    }
}
