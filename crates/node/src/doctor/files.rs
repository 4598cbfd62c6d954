//! Small files of `/proc` and `/sys`.

use std::fs;
use std::path::{Path, PathBuf};

/// Files below a root folder.
pub(super) struct Files(PathBuf);

impl Files {
    pub(super) fn new(root: &Path) -> Files {
        Files(root.to_owned())
    }

    /// Text of a file, trimmed; `None` if it cannot be read.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    /// Content of a file that is one number.
    pub(super) fn number(&self, path: &str) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// Sorted names in a folder with a prefix; numbers are sorted by value.
    pub(super) fn names(&self, folder: &str, prefix: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.0.join(folder)) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| name.starts_with(prefix)).collect();
        names.sort_by_key(|name| (name.len(), name.clone()));
        names
    }

    /// Those of [`Files::names`] with only digits behind the prefix.
    pub(super) fn numbered(&self, folder: &str, prefix: &str) -> Vec<String> {
        let mut names = self.names(folder, prefix);
        names.retain(|name| {
            let rest = &name[prefix.len()..];
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
        });
        names
    }
}
