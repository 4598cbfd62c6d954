//! Rules for the layout: crate documentation, large files.

use crate::{Findings, Tree, levels, rust};

/// Largest file in the tree and in the history, in bytes.
pub const BLOB_BYTES_MAX: u64 = 512 * 1024;

/// Smallest number of characters of a crate's documentation that can say what the crate is for.
const DOC_CHARS_MIN: usize = 40;

/// Every crate's documentation begins with what the crate is.
#[must_use]
pub fn crate_docs(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.rust() {
        let Some(name) = levels::crate_of(&file.path) else {
            continue;
        };
        let root = |target: &str| file.path == format!("crates/{name}/src/{target}.rs");
        if !root("lib") && !root("main") {
            continue;
        }
        let documented = file.text().lines().take_while(|line| line.starts_with("//!"));
        let chars: usize = documented.map(|line| line.chars().count() - 3).sum();
        if chars < DOC_CHARS_MIN {
            findings.at(&file.path, 1, "open with `//!`: what the crate is and does not do");
        }
    }
    findings
}

/// Rust code that does not parse would escape every other rule.
#[must_use]
pub fn rust_parses(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.rust().filter(|file| rust::parse(file).is_none()) {
        findings.file(&file.path, "does not parse as Rust");
    }
    findings
}

/// No file is larger than [`BLOB_BYTES_MAX`].
#[must_use]
pub fn large_files(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| file.size_bytes > BLOB_BYTES_MAX) {
        let message = format!("{} B, {BLOB_BYTES_MAX} allowed; generate it", file.size_bytes);
        findings.file(&file.path, message);
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_does_not_say_what_it_is_fails() {
        let tree = Tree::from_files([
            ("crates/a/src/lib.rs", "//! placeholder\n"),
            ("crates/b/src/main.rs", "fn main() {}\n"),
            ("crates/c/src/lib.rs", "//! Everything that the switch and the host agree on.\n"),
            ("crates/c/src/inner.rs", ""),
        ]);
        assert_eq!(crate_docs(&tree).places(), ["crates/a/src/lib.rs:1", "crates/b/src/main.rs:1"]);
    }

    #[test]
    fn rust_that_does_not_parse_fails() {
        let tree = Tree::from_files([("a.rs", "fn a( {}\n"), ("b.rs", "fn b() {}\n")]);
        assert_eq!(rust_parses(&tree).places(), ["a.rs"]);
    }

    #[test]
    fn a_file_over_the_limit_fails() {
        let limit = usize::try_from(BLOB_BYTES_MAX).unwrap();
        let (fits, large) = ("x".repeat(limit), "x".repeat(limit + 1));
        let tree = Tree::from_files([("golden/a.bin", &*large), ("golden/b.bin", &*fits)]);
        assert_eq!(large_files(&tree).places(), ["golden/a.bin"]);
    }
}
