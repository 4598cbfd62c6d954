//! Keys set from outside: they are read as if the scenario said them.

use std::fmt;
use std::str::FromStr;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use ethermem_files::found;

/// One key of a scenario and what it is set to, over what its file says: `fabric.nodes=16`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    key: String,
    /// TOML; empty when the key is taken out.
    value: String,
}

/// Text that is no `KEY=VALUE`.
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

    /// Reads `KEY=VALUE`. A value is TOML, or a word that then stands for itself in quotes; no
    /// value takes the key out of the scenario.
    fn from_str(text: &str) -> Result<Setting, SettingError> {
        let error = |problem: &str| Err(SettingError(format!("{}: {problem}", found(text))));
        let Some((key, value)) = text.split_once('=') else {
            return error("allowed are KEY=VALUE, such as fabric.nodes=16");
        };
        let (key, value) = (key.trim(), value.trim());
        let is_name = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        };
        if !key.split('.').all(is_name) {
            return error("allowed are keys with their tables, such as fabric.nodes=16");
        }
        if value.contains(char::is_control) {
            return error("allowed are values on one line");
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

fn is_toml(value: &str) -> bool {
    DeTable::parse(&format!("key = {value}\n")).is_ok_and(|table| table.get_ref().len() == 1)
}

/// A scenario's text with a line for every setting after it: what the offsets of errors count in.
pub(crate) struct Lines<'s> {
    settings: &'s [Setting],
    pub(crate) text: String,
    /// Each line at its offset in `text`, spaces before it, so that its spans are offsets there.
    padded: Vec<String>,
}

impl<'s> Lines<'s> {
    pub(crate) fn new(text: &str, settings: &'s [Setting]) -> Lines<'s> {
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

    /// Puts the settings into `root`, in their order, and takes out what has no value.
    pub(crate) fn apply<'t>(&'t self, root: &mut DeTable<'t>) {
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

/// Tables are joined, anything else is replaced, its position with it.
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;

    use crate::scenario::{Changes, Scenario};

    const FABRICS: [&str; 2] = ["edm", "raw-ethernet"];
    const TEXT: &str = "[fabric]\nnodes = 16\n[fabric.edm]\nchunk_bytes = 128\n";

    fn parse(text: &str, settings: &[&str]) -> Result<Scenario, String> {
        let settings = settings.iter().map(|text| text.parse());
        let settings = settings.collect::<Result<_, _>>().map_err(|e: super::SettingError| e.0)?;
        let changes = Changes { settings, trace: None };
        Scenario::parse_with(text, Path::new("s.toml"), &changes, &FABRICS)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_setting_is_as_if_the_file_said_so() {
        let cases: [(&[&str], &str); 6] = [
            (&["fabric.nodes=32"], "[fabric]\nnodes = 32\n[fabric.edm]\nchunk_bytes = 128\n"),
            (
                &["fabric.link_gbps = 25"],
                "[fabric]\nnodes = 16\nlink_gbps = 25\nedm.chunk_bytes = 128",
            ),
            (
                &["fabric.edm.policy=fcfs"],
                "fabric = {nodes = 16, edm = {chunk_bytes = 128, policy = 'fcfs'}}",
            ),
            (
                &["run.seed=7", "run.seed=8"],
                "fabric = {nodes = 16, edm.chunk_bytes = 128}\nrun.seed = 8",
            ),
            (&["fabric.edm.chunk_bytes="], "[fabric]\nnodes = 16\n"),
            (&["fabric.edm={chunk_bytes=64}"], "[fabric]\nnodes = 16\nedm.chunk_bytes = 64\n"),
        ];
        for (settings, same) in cases {
            assert_eq!(parse(TEXT, settings), parse(same, &[]), "{settings:?}");
            assert!(parse(same, &[]).is_ok(), "{same}");
        }
    }

    #[test]
    fn errors_say_whether_the_file_or_a_setting_is_wrong() {
        let cases: [(&str, &[&str], &str); 9] = [
            (TEXT, &["fabric.nodes=1"], "--set: fabric.nodes = 1: allowed are 2 to 512"),
            (
                TEXT,
                &["run.seed=1", "fabric.nodes=1.5"],
                "--set: fabric.nodes = 1.5: allowed are 2 to 512",
            ),
            (
                "[fabric]\nnodes = 1\n",
                &["run.seed=1"],
                "s.toml:2: fabric.nodes = 1: allowed are 2 to 512",
            ),
            ("[fabric]\nnodes = ", &["run.seed=1"], "s.toml:2: not TOML: "),
            ("", &["run.seed=1"], "s.toml: empty: a scenario has at least one key"),
            (TEXT, &["fabric.nods=1"], "--set: fabric.nods: unknown key: allowed are kind, "),
            (TEXT, &["fabric.nods="], "--set: fabric.nods: unknown key: "),
            (TEXT, &["fabric=3"], "--set: fabric = 3: allowed are a table [fabric]"),
            (
                TEXT,
                &["fabric.edm={chunk_bytes = 1}"],
                "--set: fabric.edm.chunk_bytes = 1: allowed are ",
            ),
        ];
        for (text, settings, error) in cases {
            let found = parse(text, settings).unwrap_err();
            assert!(found.starts_with(error), "{settings:?}: {found}");
        }
    }

    #[test]
    fn what_is_no_setting_is_refused_when_it_is_made() {
        for text in
            ["", "nodes", "=1", ".=1", "a..b=1", "a b=1", "a=\"x", "a=[1", "a=1\nb=2", "a=x'y"]
        {
            let error = text.parse::<super::Setting>().expect_err(text).to_string();
            assert!(error.contains("allowed are ") || error.ends_with("is not TOML"), "{error}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    proptest! {
        #[test]
        fn no_setting_panics(text in "\\PC*", key in "[a-z_.]{0,12}", value in "\\PC{0,12}") {
            let _ = parse(TEXT, &[&text]);
            let _ = parse(TEXT, &[&format!("{key}={value}")]);
            let _ = parse(TEXT, &[&format!("fabric.nodes={value}")]);
        }
    }
}
