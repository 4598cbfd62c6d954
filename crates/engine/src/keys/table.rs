//! TOML tables read key by key: what is asked for is known, what is left over is an error.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use ethermem_files::{InputError, found};

/// A key that scenarios know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// With its tables: `fabric.edm.chunk_bytes`.
    pub name: String,
    /// What holds without it.
    pub default: String,
    /// What it may be.
    pub allowed: String,
    /// Whether only whole numbers are taken, as far as its reader says so.
    pub is_whole: bool,
}

/// What errors call the place of a setting.
pub const SET: &str = "--set";

/// The text of a scenario, and every key that was asked of it.
pub struct Source<'s> {
    /// The file that it is from.
    pub file: &'s Path,
    /// The file's, and behind `file_bytes` of it the settings.
    pub text: &'s str,
    /// Length of the file's own text.
    pub file_bytes: usize,
    /// The keys that were asked for, in order.
    pub keys: RefCell<Vec<Key>>,
}

/// A table of a scenario, empty when the scenario does not have it.
pub struct Table<'s> {
    source: &'s Source<'s>,
    /// With the tables around it, dots between; empty for the root.
    name: String,
    values: Option<&'s DeTable<'s>>,
    /// Every key that was asked for, and how an error lists it.
    known: RefCell<Vec<(String, String)>>,
}

impl<'s> Source<'s> {
    /// The line, from 1, in which an offset of the text lies.
    #[must_use]
    pub fn line(&self, offset: usize) -> u64 {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
    }

    /// A problem of the text from `offset` on.
    pub fn error(&self, offset: usize, problem: impl AsRef<str>) -> InputError {
        if offset >= self.file_bytes && self.file_bytes < self.text.len() {
            return InputError::file(Path::new(SET), problem);
        }
        InputError::line(self.file, self.line(offset), problem)
    }

    /// The table of all keys, whose values are `values`.
    #[must_use]
    pub fn root(&'s self, values: &'s DeTable<'s>) -> Table<'s> {
        let known = RefCell::default();
        Table { source: self, name: String::new(), values: Some(values), known }
    }
}

impl<'s> Table<'s> {
    /// The table `key` of this one.
    ///
    /// # Errors
    /// [`InputError`] when it is no table.
    pub fn table(&self, key: &str) -> Result<Table<'s>, InputError> {
        self.known.borrow_mut().push((key.to_owned(), format!("[{}]", self.full(key))));
        let values = match self.value(key) {
            None => None,
            Some(value) => match value.get_ref() {
                DeValue::Table(values) => Some(values),
                _ => return Err(self.not_allowed(key, &format!("a table [{}]", self.full(key)))),
            },
        };
        let known = RefCell::default();
        Ok(Table { source: self.source, name: self.full(key), values, known })
    }

    /// What `key` is, when it is there; `parse` gives `None` for what is not allowed.
    ///
    /// # Errors
    /// As [`Table::integer`].
    pub fn read<T>(
        &self,
        key: &str,
        default: impl Display,
        allowed: &str,
        parse: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<T>, InputError> {
        self.ask(key, default.to_string(), allowed, false, parse)
    }

    /// As [`Table::read`]; `is_whole` says that `parse` takes whole numbers alone.
    fn ask<T>(
        &self,
        key: &str,
        default: String,
        allowed: &str,
        is_whole: bool,
        parse: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<T>, InputError> {
        self.known.borrow_mut().push((key.to_owned(), key.to_owned()));
        let known = Key { name: self.full(key), default, allowed: allowed.to_owned(), is_whole };
        self.source.keys.borrow_mut().push(known);
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match parse(value.get_ref()) {
            Some(value) => Ok(Some(value)),
            None => Err(self.not_allowed(key, allowed)),
        }
    }

    /// An integer.
    ///
    /// # Errors
    /// [`InputError`] for what is not allowed.
    pub fn integer(
        &self,
        key: &str,
        default: u64,
        allowed: RangeInclusive<u64>,
    ) -> Result<u64, InputError> {
        let name = format!("{} to {}", allowed.start(), allowed.end());
        let parse = |value: &DeValue<'_>| as_integer(value).filter(|value| allowed.contains(value));
        Ok(self.ask(key, default.to_string(), &name, true, parse)?.unwrap_or(default))
    }

    /// An integer whose default or bounds follow from other keys, named as people are told them:
    /// `default` is (value, name), `allowed` (least, most, name of the most).
    ///
    /// # Errors
    /// As [`Table::integer`].
    pub fn bounded(
        &self,
        key: &str,
        default: (u64, &str),
        allowed: (u64, u64, &str),
    ) -> Result<u64, InputError> {
        let (least, most, most_name) = allowed;
        let name = format!("{least} to {most_name}");
        let parse = |value: &DeValue<'_>| Some(as_integer(value));
        let value = self.ask(key, default.1.to_owned(), &name, true, parse)?;
        match value {
            None => Ok(default.0),
            Some(Some(value)) if (least..=most).contains(&value) => Ok(value),
            Some(_) => Err(self.not_allowed(key, &format!("{least} to {most}"))),
        }
    }

    /// A number, written with or without a point.
    ///
    /// # Errors
    /// As [`Table::integer`].
    pub fn number(
        &self,
        key: &str,
        default: f64,
        allowed: RangeInclusive<f64>,
    ) -> Result<f64, InputError> {
        let name = format!("{} to {}", allowed.start(), allowed.end());
        let parse = |value: &DeValue<'_>| as_number(value).filter(|value| allowed.contains(value));
        Ok(self.read(key, default, &name, parse)?.unwrap_or(default))
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// As [`Table::integer`].
    pub fn flag(&self, key: &str, default: bool) -> Result<bool, InputError> {
        let parse = |value: &DeValue<'_>| match value {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        };
        Ok(self.read(key, default, "true, false", parse)?.unwrap_or(default))
    }

    /// One of `choices` by name; the first one is the default.
    ///
    /// # Errors
    /// As [`Table::integer`].
    ///
    /// # Panics
    /// When there are no choices.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, InputError> {
        let (default, default_value) = choices[0];
        let value = self.choice_or(key, format!("\"{default}\""), choices)?;
        Ok(value.unwrap_or(default_value))
    }

    /// One of `choices` by name, when it is there.
    ///
    /// # Errors
    /// As [`Table::integer`].
    pub fn choice_or<T: Copy>(
        &self,
        key: &str,
        default: impl Display,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, InputError> {
        let names: Vec<String> = choices.iter().map(|(name, _)| format!("\"{name}\"")).collect();
        self.read(key, default, &names.join(", "), |value| {
            let name = as_text(value)?;
            choices.iter().find(|(choice, _)| *choice == name).map(|(_, value)| *value)
        })
    }

    /// Whether the table has `key`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Refuses `key` where it would change nothing.
    ///
    /// # Errors
    /// [`InputError`] that says when the key is allowed.
    pub fn only(&self, key: &str, when: &str, holds: bool) -> Result<(), InputError> {
        if holds || !self.has(key) {
            return Ok(());
        }
        Err(self.error(key, format!("it changes nothing: allowed only {when}")))
    }

    /// A problem of what `key` is, or of its absence.
    #[must_use]
    pub fn error(&self, key: &str, problem: impl Display) -> InputError {
        let name = self.full(key);
        let Some(value) = self.value(key) else {
            return InputError::file(self.source.file, format!("{name} is not set: {problem}"));
        };
        let span = value.span();
        let text = self.source.text.get(span.clone()).unwrap_or_default();
        self.source.error(span.start, format!("{name} = {}: {problem}", found(text)))
    }

    /// The keys and values of a table whose keys are not known beforehand; `None` where it is
    /// absent.
    pub fn values(&self) -> Option<&'s DeTable<'s>> {
        self.values
    }

    /// Refuses what was not asked for.
    ///
    /// # Errors
    /// [`InputError`] with the first unknown key.
    pub fn finish(self) -> Result<(), InputError> {
        self.check_known()
    }

    /// As [`Table::finish`], of a table that is lent.
    pub fn check_known(&self) -> Result<(), InputError> {
        let Some(values) = self.values else {
            return Ok(());
        };
        let known = self.known.borrow();
        let unknown = |key: &str| !known.iter().any(|(known, _)| known == key);
        // The table keeps its keys sorted; people expect the first one of the file.
        let first =
            values.keys().filter(|key| unknown(key.get_ref())).min_by_key(|key| key.span().start);
        let Some(key) = first else { return Ok(()) };
        let name = found(&self.full(key.get_ref()));
        let allowed: Vec<&str> = known.iter().map(|(_, shown)| shown.as_str()).collect();
        let problem = format!("{name}: unknown key: allowed are {}", allowed.join(", "));
        Err(self.source.error(key.span().start, problem))
    }

    fn not_allowed(&self, key: &str, allowed: &str) -> InputError {
        self.error(key, format!("allowed are {allowed}"))
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn value(&self, key: &str) -> Option<&'s Spanned<DeValue<'s>>> {
        self.values?.get(key)
    }
}

/// A whole number that is not negative.
#[must_use]
pub fn as_integer(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(value) => u64::from_str_radix(value.as_str(), value.radix()).ok(),
        _ => None,
    }
}

/// A number written with or without a point.
#[must_use]
pub fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(value) => value.as_str().parse().ok(),
        DeValue::Integer(_) => as_integer(value).map(|value| value as f64),
        _ => None,
    }
}

/// A text.
#[must_use]
pub fn as_text<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    match value {
        DeValue::String(value) => Some(value),
        _ => None,
    }
}
