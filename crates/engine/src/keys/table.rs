//! TOML tables read key by key: a requested key is known, and a remaining key is an error.

use std::cell::RefCell;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use ethermem_files::{InputError, found};

/// A key that scenarios may have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The name with its tables: `fabric.edm.chunk_bytes`.
    pub name: String,
    /// The value that applies without the key.
    pub default: String,
    /// The valid values.
    pub allowed: String,
    /// True if the key's reader says that it accepts only whole numbers.
    pub is_whole: bool,
}

/// The place of a setting, as errors name it.
pub const SET: &str = "--set";

/// The text of a scenario, and the keys that were requested from it.
pub struct Source<'s> {
    /// The path of the scenario's file.
    pub file: &'s Path,
    /// The text of the file, and after `file_bytes` of it the settings.
    pub text: &'s str,
    /// Length of the file's own text.
    pub file_bytes: usize,
    /// The keys that were requested, in order.
    pub keys: RefCell<Vec<Key>>,
}

/// A table of a scenario; it is empty if the scenario does not have it.
pub struct Table<'s> {
    source: &'s Source<'s>,
    /// The name with the enclosing tables, separated by dots; empty for the root.
    name: String,
    values: Option<&'s DeTable<'s>>,
    /// The keys that were requested, and how an error lists each.
    known: RefCell<Vec<(String, String)>>,
}

impl<'s> Source<'s> {
    /// The line number, from 1, of an offset in the text.
    #[must_use]
    pub fn line(&self, offset: usize) -> u64 {
        let before = self.text.as_bytes().get(..offset).unwrap_or(self.text.as_bytes());
        1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64
    }

    /// An error about the text from `offset` on.
    pub fn error(&self, offset: usize, problem: impl AsRef<str>) -> InputError {
        if offset >= self.file_bytes && self.file_bytes < self.text.len() {
            return InputError::file(Path::new(SET), problem);
        }
        InputError::line(self.file, self.line(offset), problem)
    }

    /// The table of all keys, with the values `values`.
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
    /// [`InputError`] when it is not a table.
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

    /// The value of `key`, if it is present; `parse` returns `None` for an invalid value.
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
    pub fn read<T>(
        &self,
        key: &str,
        default: impl Display,
        allowed: &str,
        parse: impl FnOnce(&DeValue<'_>) -> Option<T>,
    ) -> Result<Option<T>, InputError> {
        self.ask(key, default.to_string(), allowed, false, parse)
    }

    /// Reads as [`Table::read`] does; `is_whole` says that `parse` accepts only whole numbers.
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

    /// Reads an integer, or `"auto"`, which is the default and gives `None`.
    ///
    /// # Errors
    /// [`InputError`] for what is not allowed.
    pub fn integer_or_auto(
        &self,
        key: &str,
        range: RangeInclusive<u64>,
    ) -> Result<Option<u64>, InputError> {
        const AUTO: &str = "auto";
        let allowed = format!("\"{AUTO}\", {} to {}", range.start(), range.end());
        let read = self.ask(key, format!("\"{AUTO}\""), &allowed, true, |value| {
            if as_text(value) == Some(AUTO) {
                return Some(None);
            }
            as_integer(value).filter(|number| range.contains(number)).map(Some)
        });
        Ok(read?.flatten())
    }

    /// Reads an integer.
    ///
    /// # Errors
    /// [`InputError`] for an invalid value.
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

    /// Reads an integer whose default or bounds follow from other keys and have names in errors:
    /// `default` is (value, name), `allowed` (least, most, name of the most).
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
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

    /// Reads a number, written with or without a point.
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
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

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
    pub fn flag(&self, key: &str, default: bool) -> Result<bool, InputError> {
        let parse = |value: &DeValue<'_>| match value {
            DeValue::Boolean(value) => Some(*value),
            _ => None,
        };
        Ok(self.read(key, default, "true, false", parse)?.unwrap_or(default))
    }

    /// Reads one of `choices` by name; the first one is the default.
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
    ///
    /// # Panics
    /// If there are no choices.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Result<T, InputError> {
        let (default, default_value) = choices[0];
        let value = self.choice_or(key, format!("\"{default}\""), choices)?;
        Ok(value.unwrap_or(default_value))
    }

    /// Reads one of `choices` by name, if the key is present.
    ///
    /// # Errors
    /// The errors of [`Table::integer`].
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

    /// True if the table has `key`.
    #[must_use]
    pub fn has(&self, key: &str) -> bool {
        self.value(key).is_some()
    }

    /// Refuses `key` where it would have no effect.
    ///
    /// # Errors
    /// [`InputError`] that says when the key is valid.
    pub fn only(&self, key: &str, when: &str, holds: bool) -> Result<(), InputError> {
        if holds || !self.has(key) {
            return Ok(());
        }
        Err(self.error(key, format!("it changes nothing: allowed only {when}")))
    }

    /// An error about the value of `key`, or about its absence.
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

    /// The keys and values of a table whose keys are not known beforehand; `None` if it is absent.
    pub fn values(&self) -> Option<&'s DeTable<'s>> {
        self.values
    }

    /// Refuses keys that were not requested.
    ///
    /// # Errors
    /// [`InputError`] with the first unknown key.
    pub fn finish(self) -> Result<(), InputError> {
        self.check_known()
    }

    /// Refuses unknown keys as [`Table::finish`] does, without consuming the table.
    pub fn check_known(&self) -> Result<(), InputError> {
        let Some(values) = self.values else {
            return Ok(());
        };
        let known = self.known.borrow();
        let unknown = |key: &str| !known.iter().any(|(known, _)| known == key);
        // The table keeps its keys sorted; the first one of the file is expected.
        let first =
            values.keys().filter(|key| unknown(key.get_ref())).min_by_key(|key| key.span().start);
        let Some(key) = first else { return Ok(()) };
        let name = found(&self.full(key.get_ref()));
        let allowed: Vec<&str> = known.iter().map(|(_, shown)| shown.as_str()).collect();
        let problem = format!("{name}: unknown key: must be one of {}", allowed.join(", "));
        Err(self.source.error(key.span().start, problem))
    }

    fn not_allowed(&self, key: &str, allowed: &str) -> InputError {
        // Choices are single words; a range is a phrase.
        let mut choices = allowed.split(", ");
        let is_list = allowed.contains(", ") && choices.all(|choice| !choice.contains(' '));
        let one_of = if is_list { "one of " } else { "" };
        self.error(key, format!("must be {one_of}{allowed}"))
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.to_owned() } else { format!("{}.{key}", self.name) }
    }

    fn value(&self, key: &str) -> Option<&'s Spanned<DeValue<'s>>> {
        self.values?.get(key)
    }
}

/// Reads a whole number that is not negative.
#[must_use]
pub fn as_integer(value: &DeValue<'_>) -> Option<u64> {
    match value {
        DeValue::Integer(value) => u64::from_str_radix(value.as_str(), value.radix()).ok(),
        _ => None,
    }
}

/// Reads a number written with or without a point.
#[must_use]
pub fn as_number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(value) => value.as_str().parse().ok(),
        DeValue::Integer(_) => as_integer(value).map(|value| value as f64),
        _ => None,
    }
}

/// Reads a text.
#[must_use]
pub fn as_text<'v>(value: &'v DeValue<'_>) -> Option<&'v str> {
    match value {
        DeValue::String(value) => Some(value),
        _ => None,
    }
}
