use std::fmt;
use std::path::Path;

/// Maximum number of characters of a found value that an error repeats.
const FOUND_CHARS_MAX: usize = 60;

/// Input that cannot be used. It prints as one line: the file, the line or key, what was found and
/// what it must be. A retry helps only after the file was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputError {
    file: String,
    line: Option<u64>,
    problem: String,
    unusable: bool,
}

impl InputError {
    /// An error about the whole file.
    #[must_use]
    pub fn file(file: &Path, problem: impl AsRef<str>) -> InputError {
        let file = one_line(&file.display().to_string());
        InputError { file, line: None, problem: one_line(problem.as_ref()), unusable: false }
    }

    /// An error at `line`, counted from 1.
    #[must_use]
    pub fn line(file: &Path, line: u64, problem: impl AsRef<str>) -> InputError {
        InputError { line: Some(line), ..InputError::file(file, problem) }
    }

    /// This error, moved to `line` of `file`.
    #[must_use]
    pub fn moved(self, file: &Path, line: u64) -> InputError {
        InputError::line(file, line, self.problem)
    }

    /// The problem without its place, then the place.
    #[must_use]
    pub fn parts(&self) -> (&str, &str) {
        (&self.problem, &self.file)
    }

    /// An error about a file that the operating system refuses to open or read.
    #[must_use]
    pub fn io(file: &Path, doing: &str, error: &std::io::Error) -> InputError {
        let error = InputError::file(file, format!("cannot {doing}: {}", reason(error)));
        InputError { unusable: true, ..error }
    }

    /// True if the operating system refuses the file; what is in it may be right.
    #[must_use]
    pub fn is_unusable(&self) -> bool {
        self.unusable
    }
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.file, self.problem),
            None => write!(f, "{}: {}", self.file, self.problem),
        }
    }
}

impl std::error::Error for InputError {}

/// A found value as an error repeats it: shortened, without characters that could break the line.
#[must_use]
pub fn found(value: &str) -> String {
    let mut chars = value.chars();
    let mut shown = one_line(&chars.by_ref().take(FOUND_CHARS_MAX).collect::<String>());
    if chars.next().is_some() {
        shown.push_str("...");
    }
    shown
}

fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for c in text.chars() {
        // Line and paragraph separators are no control characters but break lines.
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// The system's words, without the "(os error 2)" that `std` appends.
fn reason(error: &std::io::Error) -> String {
    let text = error.to_string();
    match text.rfind(" (os error ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_was_found() {
        let hostile = format!("a\nb\r\u{2028}{}", "x".repeat(100));
        let error = InputError::line(Path::new("a\nb.toml"), 7, found(&hostile));
        let shown = error.to_string();
        assert!(shown.starts_with("a\\nb.toml:7: a\\nb\\r\\u{2028}xxx"), "{shown}");
        assert!(shown.ends_with("xxx...") && shown.len() < 100, "{shown}");
    }

    #[test]
    fn the_system_error_number_is_left_out() {
        let error = std::io::Error::from_raw_os_error(2);
        let shown = InputError::io(Path::new("x.toml"), "be read", &error).to_string();
        assert_eq!(shown, "x.toml: cannot be read: No such file or directory");
        assert!(InputError::io(Path::new("x"), "be read", &error).is_unusable());
        assert!(!InputError::line(Path::new("x"), 1, "it is wrong").is_unusable());
    }
}
