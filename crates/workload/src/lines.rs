//! Comma-separated text with one row per line; at most one line is in memory.

use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};

use super::{InputError, found};

/// Maximum bytes of a line: a file without line ends is refused, and not read into memory.
const LINE_BYTES_MAX: usize = 4096;
/// The byte order mark that spreadsheets put before the first character of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The rows of a file with their line numbers; blank lines and lines that start with # are skipped.
pub(crate) struct Lines<R> {
    reader: R,
    file: PathBuf,
    line: u64,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(reader: R, file: &Path) -> Lines<R> {
        Lines { reader, file: file.to_owned(), line: 0, buffer: Vec::new() }
    }

    /// Steps to the next row; returns false at the end of the file.
    pub(crate) fn advance(&mut self) -> Result<bool, InputError> {
        loop {
            self.buffer.clear();
            let mut limited = self.reader.by_ref().take(LINE_BYTES_MAX as u64 + 1);
            let read = limited
                .read_until(b'\n', &mut self.buffer)
                .map_err(|error| InputError::io(&self.file, "be read", &error))?;
            if read == 0 {
                return Ok(false);
            }
            self.line += 1;
            if self.line == 1 && self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.drain(..BYTE_ORDER_MARK.len());
            }
            if self.buffer.len() > LINE_BYTES_MAX {
                let problem = format!("a line longer than {LINE_BYTES_MAX} B: no row of a table");
                return Err(self.error(problem));
            }
            let row = self.buffer.trim_ascii();
            if !row.is_empty() && row[0] != b'#' {
                return Ok(true);
            }
        }
    }

    /// The row that [`Lines::advance`] stepped to.
    pub(crate) fn row(&self) -> Result<&str, InputError> {
        std::str::from_utf8(self.buffer.trim_ascii())
            .map_err(|_| self.error("not UTF-8 text: a table is comma-separated text"))
    }

    /// An error about the row that [`Lines::advance`] stepped to.
    pub(crate) fn error(&self, problem: impl AsRef<str>) -> InputError {
        InputError::line(&self.file, self.line, problem)
    }

    /// The line number of the row, counted from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }
}

/// The fields of a row, without the spaces and the pair of quotes around each.
pub(crate) fn fields(row: &str) -> impl Iterator<Item = &str> {
    row.split(',').map(|field| {
        let field = field.trim_ascii();
        field.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(field)
    })
}

/// The `N` first fields of a row that must have exactly `N`.
pub(crate) fn exact_fields<'r, const N: usize>(
    row: &'r str,
    names: &[&str; N],
) -> Result<[&'r str; N], String> {
    let mut values = [""; N];
    let mut count = 0;
    for field in fields(row) {
        if let Some(value) = values.get_mut(count) {
            *value = field;
        }
        count += 1;
    }
    if count == N {
        return Ok(values);
    }
    let row = found(row);
    Err(format!("{row}: {count} fields: must be {N}, {}", names.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(bytes: &[u8]) -> Result<Vec<(u64, String)>, InputError> {
        let mut lines = Lines::new(bytes, Path::new("t.csv"));
        let mut rows = Vec::new();
        while lines.advance()? {
            let row = lines.row()?.to_owned();
            rows.push((lines.line, row));
        }
        Ok(rows)
    }

    #[test]
    fn rows_keep_the_line_numbers_of_the_file() {
        let text = b"# origin\n\na,b\r\n  \n1, 2\n# end\n3,4";
        let expected = vec![(3, "a,b".into()), (5, "1, 2".into()), (7, "3,4".into())];
        assert_eq!(rows(text), Ok(expected));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_field() {
        assert_eq!(rows(b"\xef\xbb\xbfa,b\n"), Ok(vec![(1, "a,b".into())]));
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let error = rows(&vec![b'x'; 1 << 20]).expect_err("1 MiB in one line");
        assert_eq!(error.to_string(), "t.csv:1: a line longer than 4096 B: no row of a table");
        assert!(rows(&vec![b'x'; LINE_BYTES_MAX]).is_ok());
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_line() {
        let error = rows(b"a\n\xff\xfe\n").expect_err("not UTF-8");
        let expected = "t.csv:2: not UTF-8 text: a table is comma-separated text";
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn fields_lose_spaces_and_quotes() {
        assert_eq!(fields("1, \"read\" ,\"a").collect::<Vec<_>>(), ["1", "read", "\"a"]);
        assert_eq!(exact_fields("1,2", &["a", "b"]), Ok(["1", "2"]));
        let error = exact_fields("1", &["a", "b"]).expect_err("one of two");
        assert_eq!(error, "1: 1 fields: must be 2, a,b");
    }
}
