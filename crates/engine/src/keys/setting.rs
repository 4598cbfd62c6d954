//! Keys set from outside, which are read as if they stood in the scenario.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use ethermem_files::{InputError, found};

use super::table::SET;

/// One key of a scenario and its value, which override its file: `fabric.nodes=16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    key: String,
    /// The value as TOML; empty if the key is removed.
    value: String,
}

/// Text that is not `KEY=VALUE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError(String);

impl fmt::Display for SettingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SettingError {}

impl Setting {
    /// The key, with its tables: `fabric.edm.chunk_bytes`.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.key
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

impl FromStr for Setting {
    type Err = SettingError;

    /// Reads `KEY=VALUE`. A value is TOML, or a word that is then quoted. No value removes the key
    /// from the scenario.
    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let error = |problem: &str| Err(SettingError(format!("{}: {problem}", found(text))));
        let Some((key, value)) = text.split_once('=') else {
            return error("must be KEY=VALUE, such as fabric.nodes=16");
        };
        let (key, value) = (key.trim(), value.trim());
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !key.split('.').all(is_name) {
            return error("must be keys with their tables, such as fabric.nodes=16");
        }
        if value.contains(char::is_control) {
            return error("must be values on one line");
        }
        if value.is_empty() || is_toml(value) {
            return Ok(Setting { key: key.to_owned(), value: value.to_owned() });
        }
        let word = format!("'{value}'");
        if value.starts_with(['"', '\'', '[', '{']) || !is_toml(&word) {
            return error("the value is not TOML");
        }
        Ok(Setting { key: key.to_owned(), value: word })
    }
}

/// Refuses settings of keys that a command sets by other arguments, which the setting would
/// contradict.
///
/// # Errors
/// [`InputError`] with the setting.
pub fn refuse_own(settings: &[Setting], own: &[&str]) -> Result<(), InputError> {
    let Some(setting) = settings.iter().find(|setting| own.contains(&setting.key())) else {
        return Ok(());
    };
    let problem = format!("{setting}: another argument sets it: must be another key");
    Err(InputError::file(Path::new(SET), problem))
}

fn is_toml(value: &str) -> bool {
    DeTable::parse(&format!("key = {value}\n")).is_ok_and(|table| table.get_ref().len() == 1)
}

/// A scenario's text, followed by a line for every setting. The offsets of errors refer to it.
pub struct Lines<'s> {
    settings: &'s [Setting],
    /// The scenario, and a line for every setting.
    pub text: String,
    /// Each line at its offset in `text`, with spaces before it, so that its spans are offsets
    /// there.
    padded: Vec<String>,
}

impl<'s> Lines<'s> {
    /// Appends the lines of `settings` to `text`.
    pub fn new(text: &str, settings: &'s [Setting]) -> Lines<'s> {
        let mut text = text.to_owned();
        let mut padded = Vec::new();
        for setting in settings.iter().filter(|setting| !setting.value.is_empty()) {
            text.push('\n');
            let line = format!("{} = {}\n", setting.key, setting.value);
            padded.push(" ".repeat(text.len()) + &line);
            text.push_str(&line);
        }
        Lines { settings, text, padded }
    }

    /// Applies the settings to `root` in order, and removes keys without a value.
    pub fn apply<'t>(&'t self, root: &mut DeTable<'t>) {
        let mut padded = self.padded.iter();
        for setting in self.settings {
            if setting.value.is_empty() {
                remove(root, &setting.key);
            } else if let Some(line) = padded.next() {
                let table = DeTable::parse(line).expect("a setting is read when it is made");
                merge(root, table.into_inner());
            }
        }
    }
}

/// Joins tables; any other value is replaced, with its position.
fn merge<'t>(into: &mut DeTable<'t>, from: DeTable<'t>) {
    for (key, mut value) in from {
        if let Some(old) = into.get_mut(&key)
            && let (DeValue::Table(old), DeValue::Table(new)) = (old.get_mut(), value.get_mut())
        {
            merge(old, std::mem::replace(new, DeTable::new()));
        } else {
            into.remove(&key);
            into.insert(key, value);
        }
    }
}

fn remove(root: &mut DeTable<'_>, key: &str) {
    match key.split_once('.') {
        None => {
            root.remove(key);
        }
        Some((table, rest)) => {
            if let Some(DeValue::Table(table)) = root.get_mut(table).map(Spanned::get_mut) {
                remove(table, rest);
            }
        }
    }
}
