//! The levels of the house: which crate may use which, and which are pure; and the libraries.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::modules::packages;
use crate::{Findings, Tree};

/// From the foundation up; a crate uses only the crates before it.
pub const LEVELS: [&str; 21] = [
    "units", "wire", "edm", "clio", "wasm", "files", "http", "trace", "packet", "udp", "node",
    "sim", "study", "ethermem", "pager", "kv", "resp", "bench", "capi", "py", "cli",
];
/// Levels that no other crate uses: what people call.
pub const TOPS: [&str; 3] = ["capi", "py", "cli"];
/// Crates outside the levels, which use none of them.
pub const APART: [&str; 1] = ["tidy"];
/// Crates that take everything as an argument: no clock, no file, no socket, no thread.
pub const PURE: [&str; 4] = ["units", "wire", "edm", "clio"];
/// Crates whose results are the same bytes in every run.
pub const DETERMINISTIC: [&str; 8] =
    ["units", "wire", "edm", "clio", "files", "trace", "sim", "study"];

const PREFIX: &str = "ethermem-";
/// The crate that applications import, by its folder and its package.
const LIBRARY: &str = "ethermem";

/// The package of a folder under `crates/`.
fn package_of(folder: &str) -> String {
    if folder == LIBRARY { LIBRARY.to_owned() } else { format!("{PREFIX}{folder}") }
}

/// The folder under `crates/` of a package, if it is one of this project.
fn folder_of(package: &str) -> Option<&str> {
    if package == LIBRARY { Some(LIBRARY) } else { package.strip_prefix(PREFIX) }
}

/// The folder under `crates/` that `path` is in.
pub(crate) fn crate_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(folder, _)| folder)
}

/// A crate is named after its folder, has a level, and depends only on the levels before its own.
#[must_use]
pub fn dependencies(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for (folder, manifest) in packages(tree) {
        let Some(name) = folder.strip_prefix("crates/") else {
            continue;
        };
        let path = format!("{folder}/Cargo.toml");
        let package = manifest["package"].get("name").and_then(Value::as_str);
        let expected = package_of(name);
        if package != Some(&expected) {
            findings.file(&path, format!("the package must be named `{expected}`"));
        }
        let allowed = match LEVELS.iter().position(|level| *level == name) {
            Some(level) => LEVELS[..level].iter().filter(|below| !TOPS.contains(below)).collect(),
            None if APART.contains(&name) => Vec::new(),
            None => {
                findings.file(&path, "has no level: add it to LEVELS in crates/tidy");
                continue;
            }
        };
        for used in used_crates(&manifest) {
            if !allowed.contains(&&used.as_str()) {
                let message = format!("`{name}` may not use `{used}`; it may use {allowed:?}");
                findings.file(&path, message);
            }
        }
    }
    findings
}

/// The table of libraries in ARCHITECTURE.md has a line for every dependency, and no other line.
#[must_use]
pub fn libraries(tree: &Tree) -> Findings {
    let path = "ARCHITECTURE.md";
    let text = tree.get(path).map_or("", |file| file.text());
    let section = text.split("\n## ").find(|section| section.starts_with("Libraries\n"));
    let rows = section.unwrap_or_default().lines().filter_map(|line| line.strip_prefix("| `"));
    let explained: BTreeSet<String> =
        rows.filter_map(|row| row.split_once('`')).map(|(name, _)| name.to_owned()).collect();
    let ours = |folder: &str| ["crates/", "benches/"].iter().any(|ours| folder.starts_with(ours));
    let packages = packages(tree).into_iter().filter(|(folder, _)| ours(folder));
    let used: BTreeSet<String> = packages
        .flat_map(|(_, manifest)| dependency_names(&manifest))
        .filter(|name| folder_of(name).is_none())
        .collect();
    let mut findings = Findings::default();
    for name in used.difference(&explained) {
        findings.file(path, format!("`{name}` is a dependency: say why under \"Libraries\""));
    }
    for name in explained.difference(&used) {
        findings.file(path, format!("`{name}` is no dependency: drop its row"));
    }
    findings
}

/// The crates of this project that a manifest depends on.
fn used_crates(manifest: &Table) -> Vec<String> {
    let names = dependency_names(manifest).into_iter();
    names.filter_map(|name| folder_of(&name).map(str::to_owned)).collect()
}

/// The packages that a manifest depends on, for any reason and on any target.
fn dependency_names(manifest: &Table) -> Vec<String> {
    let on_targets = manifest.get("target").and_then(Value::as_table);
    let on_targets = on_targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut names = Vec::new();
    for table in on_targets.chain([manifest]) {
        for kind in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let dependencies = table.get(kind).and_then(Value::as_table);
            for (key, dependency) in dependencies.into_iter().flatten() {
                let renamed = dependency.get("package").and_then(Value::as_str);
                names.push(renamed.unwrap_or(key).to_owned());
            }
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(folder: &str, dependencies: &str) -> Vec<String> {
        let path = format!("crates/{folder}/Cargo.toml");
        let text = format!("[package]\nname = \"ethermem-{folder}\"\n{dependencies}");
        super::dependencies(&Tree::from_files([(&*path, &*text)])).places()
    }

    #[test]
    fn a_crate_uses_the_levels_before_it_and_no_other() {
        let fails = |folder: &str, text: &str| check(folder, text).len();
        assert_eq!(fails("edm", "[dependencies]\nethermem-wire.workspace = true\n"), 0);
        assert_eq!(fails("wire", "[dependencies]\nethermem-edm.workspace = true\n"), 1);
        assert_eq!(fails("wire", "[dev-dependencies]\nethermem-sim = { path = \"x\" }\n"), 1);
        assert_eq!(fails("wire", "[dependencies]\nx = { package = \"ethermem-cli\" }\n"), 1);
        assert_eq!(fails("wire", "[target.'cfg(unix)'.dependencies]\nethermem-sim = \"1\"\n"), 1);
        assert_eq!(fails("py", "[dependencies]\nethermem-sim.workspace = true\n"), 0);
        assert_eq!(fails("cli", "[dependencies]\nethermem-py.workspace = true\n"), 1);
        assert_eq!(fails("tidy", "[dependencies]\nethermem-units.workspace = true\n"), 1);
        assert_eq!(fails("tidy", "[dependencies]\nsyn = \"2\"\n"), 0);
    }

    #[test]
    fn a_crate_without_a_level_or_with_another_name_fails() {
        assert_eq!(check("telepathy", ""), ["crates/telepathy/Cargo.toml"]);
        let tree = Tree::from_files([("crates/edm/Cargo.toml", "[package]\nname = \"edm\"\n")]);
        assert_eq!(dependencies(&tree).places(), ["crates/edm/Cargo.toml"]);
    }

    #[test]
    fn a_library_without_a_reason_and_a_reason_without_a_library_fail() {
        let tree = Tree::from_files([
            ("ARCHITECTURE.md", "# A\n\n## Libraries\n\n| `syn` | why |\n| `gone` | why |\n"),
            (
                "crates/edm/Cargo.toml",
                "[package]\nname = \"e\"\n[dependencies]\nsyn = \"3\"\nserde = \"1\"\n\
                 ethermem-wire = \"1\"\n",
            ),
            ("benches/x/Cargo.toml", "[package]\nname = \"x\"\n[dependencies]\nnix = \"1\"\n"),
            ("fuzz/Cargo.toml", "[package]\nname = \"f\"\n[dependencies]\nother = \"1\"\n"),
        ]);
        let findings = libraries(&tree);
        let messages: Vec<_> = findings.violations.iter().map(|found| &found.message).collect();
        assert_eq!(messages.len(), 3);
        let names = ["`nix`", "`serde`", "`gone`"];
        assert!(messages.iter().zip(names).all(|(message, name)| message.starts_with(name)));
    }
}
