//! Levels of the crates: which crate may use which, which are pure, and the libraries.

use std::collections::BTreeSet;

use toml::{Table, Value};

use crate::module_edges::{FACADE_MODULES, POOL_MODULES};
use crate::modules::{Modules, packages};
use crate::{Findings, Tree, rust};

/// A crate, the crates that it uses, and those that only its tests use.
pub type Edges = (&'static str, &'static [&'static str], &'static [&'static str]);

/// Every edge between crates, from the foundation up: a crate uses only crates before it. An edge
/// that is missing here needs a decision, and one that no manifest has any more must be removed.
pub const EDGES: [Edges; 34] = [
    ("units", &[], &[]),
    ("wire", &["units"], &[]),
    ("edm", &["units", "wire"], &[]),
    ("offload", &["wire"], &[]),
    ("clio", &["offload", "units", "wire"], &[]),
    ("placement", &[], &[]),
    ("cxl", &["placement", "units", "wire"], &[]),
    ("dfabric", &["placement", "units", "wire"], &[]),
    ("wasm", &["clio", "wire"], &["units"]),
    ("files", &[], &[]),
    ("http", &[], &[]),
    ("lines", &[], &[]),
    ("trace", &["files", "lines", "units"], &[]),
    ("ring", &[], &[]),
    ("udp", &["clio", "ring", "units", "wire"], &[]),
    ("node", &["clio", "http", "udp", "units", "wasm", "wire"], &[]),
    ("workload", &["files", "units", "wire"], &[]),
    ("engine", &["edm", "files", "units", "workload"], &[]),
    ("frames", &["engine", "units", "workload"], &[]),
    (
        "fabrics",
        &[
            "clio",
            "cxl",
            "dfabric",
            "edm",
            "engine",
            "frames",
            "placement",
            "units",
            "wire",
            "workload",
        ],
        &[],
    ),
    ("report", &["engine", "units"], &["workload"]),
    (
        "sim",
        &["edm", "engine", "fabrics", "files", "frames", "report", "units", "workload"],
        &["cxl", "wire"],
    ),
    ("study", &["lines", "sim", "trace", "units"], &[]),
    ("pool", &["offload", "units", "wire"], &[]),
    (
        "ethermem",
        &["clio", "cxl", "offload", "pool", "sim", "udp", "units", "wire"],
        &["node", "ring"],
    ),
    ("pager", &["ethermem", "lines", "trace", "units"], &["node"]),
    ("rack", &[], &[]),
    ("kv", &["ethermem"], &["clio", "edm", "node", "sim", "units", "wire"]),
    ("resp", &["ethermem", "http", "kv"], &["node", "units", "wire"]),
    ("bench", &["ethermem", "kv", "sim", "units"], &[]),
    (
        "experiments",
        &[
            "bench", "ethermem", "kv", "lines", "node", "pager", "rack", "resp", "sim", "study",
            "trace", "units",
        ],
        &[],
    ),
    ("capi", &["ethermem", "kv"], &["node", "udp", "units", "wire"]),
    ("py", &["ethermem", "experiments", "kv", "sim", "study", "units"], &[]),
    (
        "cli",
        &[
            "bench",
            "clio",
            "ethermem",
            "experiments",
            "kv",
            "lines",
            "node",
            "pager",
            "rack",
            "resp",
            "sim",
            "study",
            "udp",
            "units",
            "wire",
        ],
        &["trace"],
    ),
];
/// Crates that no other crate uses: the entry points for people.
pub const TOPS: [&str; 3] = ["capi", "py", "cli"];
/// Crates outside the levels.
pub const APART: [&str; 1] = ["tidy"];
/// Libraries that only one crate may use: no other crate parses a command line.
pub const ONE_USER: [(&str, &str); 1] = [("clap", "cli")];
/// Crates that receive everything as an argument: no clock, no file, no socket, no thread.
pub const PURE: [&str; 9] =
    ["units", "wire", "edm", "offload", "clio", "placement", "cxl", "dfabric", "lines"];
/// Crates whose results are the same bytes in every run.
pub const DETERMINISTIC: [&str; 18] = [
    "units",
    "wire",
    "edm",
    "offload",
    "clio",
    "placement",
    "cxl",
    "dfabric",
    "files",
    "lines",
    "trace",
    "workload",
    "engine",
    "frames",
    "fabrics",
    "report",
    "sim",
    "study",
];

const PREFIX: &str = "ethermem-";
/// Folder and package of the crate that applications import.
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

/// A crate is named after its folder, and its manifest has exactly the edges of [`EDGES`].
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
        let (uses, tests_use) = match EDGES.iter().find(|(crate_name, ..)| *crate_name == name) {
            Some((_, uses, tests_use)) => (*uses, *tests_use),
            None if APART.contains(&name) => (&[][..], &[][..]),
            None => {
                findings.file(&path, "has no edges: add it to EDGES in crates/tidy");
                continue;
            }
        };
        let names = names_of_kinds(&manifest, &["dependencies", "build-dependencies"]);
        for (library, user) in ONE_USER.iter().filter(|(_, user)| *user != name) {
            if names.iter().any(|used| used == library) {
                findings.file(&path, format!("`{library}` is for `{user}` alone"));
            }
        }
        let built = used_crates(&manifest, &["dependencies", "build-dependencies"]);
        let tested = used_crates(&manifest, &["dev-dependencies"]);
        let tested: BTreeSet<String> = tested.difference(&built).cloned().collect();
        for (found, listed, when) in [(built, uses, "uses"), (tested, tests_use, "tests with")] {
            for used in found.iter().filter(|used| !listed.contains(&used.as_str())) {
                let message = format!("`{name}` {when} `{used}`: EDGES has {listed:?} alone");
                findings.file(&path, message);
            }
            for gone in listed.iter().filter(|listed| !found.contains(**listed)) {
                findings.file(&path, format!("`{name}` no longer {when} `{gone}`: drop the edge"));
            }
        }
    }
    findings
}

/// A module, and the sibling modules that it uses.
pub type Module = (&'static str, &'static [&'static str]);

/// The modules at the root of crates with internal levels. `scenario`, `registry` and `run` count
/// as one part in three files.
pub const MODULES: [(&str, &[Module]); 4] = [
    ("pool", &POOL_MODULES),
    ("ethermem", &FACADE_MODULES),
    (
        "engine",
        &[
            ("keys", &[]),
            ("config", &["keys"]),
            ("metrics", &[]),
            ("output", &["metrics"]),
            ("engine", &["config", "metrics", "output"]),
            ("topology", &["config", "metrics", "output"]),
        ],
    ),
    (
        "sim",
        &[
            ("registry", &["run", "scenario"]),
            ("scenario", &["registry"]),
            ("run", &["registry", "scenario"]),
            ("schema", &["registry", "scenario"]),
            ("sweep", &["registry", "run", "scenario"]),
            ("compare", &["registry", "run", "scenario", "sweep"]),
        ],
    ),
];

/// Modules use only what [`MODULES`] permits, except in their tests.
#[must_use]
pub fn modules(tree: &Tree) -> Findings {
    let reached = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.rust() {
        let Some((folder, inside)) =
            file.path.strip_prefix("crates/").and_then(|path| path.split_once("/src/"))
        else {
            continue;
        };
        let Some((_, modules)) = MODULES.iter().find(|(name, _)| *name == folder) else { continue };
        let is_module = |name: &str| modules.iter().any(|(module, _)| *module == name);
        let module = inside.split(['/', '.']).next().unwrap_or(inside);
        if module == "lib" || reached.only_tests(&file.path) {
            continue;
        }
        let Some((_, uses)) = modules.iter().find(|(name, _)| *name == module) else {
            findings.file(&file.path, "has no edges: add it to MODULES in crates/tidy");
            continue;
        };
        let tests = rust::test_lines(file);
        for (used, line) in rust::root_modules(file) {
            let known = used == module || !is_module(&used) || uses.contains(&used.as_str());
            if !known && !tests.contains(line) {
                let message = format!("`{module}` may not use `{used}`; it may use {uses:?}");
                findings.at(&file.path, line, message);
            }
        }
    }
    findings
}

/// The table of libraries in ARCHITECTURE.md has exactly one line for every dependency.
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

/// The crates of this project that a manifest depends on in tables of these kinds.
fn used_crates(manifest: &Table, kinds: &[&str]) -> BTreeSet<String> {
    let names = names_of_kinds(manifest, kinds).into_iter();
    names.filter_map(|name| folder_of(&name).map(str::to_owned)).collect()
}

/// The packages that a manifest depends on, for any reason and on any target.
fn dependency_names(manifest: &Table) -> Vec<String> {
    names_of_kinds(manifest, &["dependencies", "dev-dependencies", "build-dependencies"])
}

fn names_of_kinds(manifest: &Table, kinds: &[&str]) -> Vec<String> {
    let on_targets = manifest.get("target").and_then(Value::as_table);
    let on_targets = on_targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let mut names = Vec::new();
    for table in on_targets.chain([manifest]) {
        for &kind in kinds {
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
    fn a_crate_has_the_edges_of_the_list_and_no_other() {
        let fails = |folder: &str, text: &str| check(folder, text).len();
        let units = "ethermem-units.workspace = true\n";
        let both = format!("[dependencies]\n{units}ethermem-wire.workspace = true\n");
        assert_eq!(fails("edm", &both), 0);
        assert_eq!(fails("edm", &format!("[dependencies]\n{units}")), 1);
        assert_eq!(fails("edm", &format!("{both}ethermem-clio.workspace = true\n")), 1);
        let wire = format!("[dependencies]\n{units}");
        assert_eq!(fails("wire", &wire), 0);
        let tests = "[dev-dependencies]\nethermem-sim = { path = \"x\" }\n";
        assert_eq!(fails("wire", &format!("{wire}{tests}")), 1);
        assert_eq!(fails("wire", &format!("{wire}x = {{ package = \"ethermem-cli\" }}\n")), 1);
        let target = "[target.'cfg(unix)'.dependencies]\nethermem-sim = \"1\"\n";
        assert_eq!(fails("wire", &format!("{wire}{target}")), 1);
        assert_eq!(fails("tidy", &format!("[dependencies]\n{units}")), 1);
        assert_eq!(fails("tidy", "[dependencies]\nsyn = \"2\"\n"), 0);
    }

    #[test]
    fn a_library_that_parses_a_command_line_fails() {
        let clap = "[dependencies]\nclap = \"4\"\n";
        assert_eq!(check("files", clap), ["crates/files/Cargo.toml"]);
        assert_eq!(check("files", "[dependencies]\nclap_lex = \"1\"\n").len(), 0);
        let of_cli = |text: &str| check("cli", text).len();
        assert_eq!(of_cli(clap), of_cli("[dependencies]\n"));
    }

    #[test]
    fn the_edges_of_crates_make_no_circle() {
        for (at, (name, uses, tests_use)) in EDGES.iter().enumerate() {
            for used in *uses {
                assert!(EDGES[..at].iter().any(|(below, ..)| below == used), "{name} {used}");
                assert!(!TOPS.contains(used), "{name} {used}");
            }
            for used in *tests_use {
                assert!(EDGES.iter().any(|(known, ..)| known == used), "{name} {used}");
                assert!(!TOPS.contains(used), "{name} {used}");
            }
        }
    }

    #[test]
    fn a_module_that_uses_one_above_it_fails() {
        let places =
            |path: &str, text: &str| modules(&Tree::from_files([(path, text)])).places().len();
        let keys = "crates/engine/src/keys/mod.rs";
        let engine = "crates/engine/src/engine/mod.rs";
        assert_eq!(places(engine, "use crate::metrics::FabricStats;\n"), 0);
        assert_eq!(places(keys, "use crate::metrics::FabricStats;\n"), 1);
        assert_eq!(places(keys, "fn f() -> crate::config::FabricConfig { g() }\n"), 1);
        assert_eq!(places(engine, "use crate::{metrics, topology};\n"), 1);
        let tested = "#[cfg(test)]\nmod tests {\n    use crate::config::FabricConfig;\n}\n";
        assert_eq!(places(keys, tested), 0);
        assert_eq!(places("crates/sim/src/telepathy.rs", ""), 1);
        assert_eq!(places("crates/fabrics/src/telepathy.rs", ""), 0);
    }

    #[test]
    fn a_crate_without_edges_or_with_another_name_fails() {
        assert_eq!(check("telepathy", ""), ["crates/telepathy/Cargo.toml"]);
        let tree = Tree::from_files([("crates/http/Cargo.toml", "[package]\nname = \"http\"\n")]);
        assert_eq!(dependencies(&tree).places(), ["crates/http/Cargo.toml"]);
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
