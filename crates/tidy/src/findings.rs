use std::fmt;

/// A place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Path relative to the root of the repository.
    pub path: String,
    /// Line from 1; absent if the whole file is meant.
    pub line: Option<usize>,
    /// What is wrong, and what to write instead.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.path, self.message),
            None => write!(f, "{}: {}", self.path, self.message),
        }
    }
}

/// Findings of one rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Violations that fail the test.
    pub violations: Vec<Violation>,
    /// Violations that are only printed.
    pub warnings: Vec<Violation>,
    /// Why the rule, or a part of it, could not be checked here.
    pub skipped: Option<String>,
}

impl Findings {
    /// The result of a rule that could not run on this machine.
    #[must_use]
    pub fn skip(reason: impl Into<String>) -> Findings {
        Findings { skipped: Some(reason.into()), ..Findings::default() }
    }

    pub(crate) fn at(&mut self, path: &str, line: usize, message: impl Into<String>) {
        let violation =
            Violation { path: path.to_owned(), line: Some(line), message: message.into() };
        if !self.violations.contains(&violation) {
            self.violations.push(violation);
        }
    }

    pub(crate) fn file(&mut self, path: &str, message: impl Into<String>) {
        self.violations.push(Violation {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        });
    }

    pub(crate) fn warn(&mut self, path: &str, message: impl Into<String>) {
        self.warnings.push(Violation {
            path: path.to_owned(),
            line: None,
            message: message.into(),
        });
    }

    /// The places as `path:line`, which the rules' tests compare.
    #[cfg(test)]
    pub(crate) fn places(&self) -> Vec<String> {
        let place = |v: &Violation| match v.line {
            Some(line) => format!("{}:{line}", v.path),
            None => v.path.clone(),
        };
        self.violations.iter().map(place).collect()
    }
}
