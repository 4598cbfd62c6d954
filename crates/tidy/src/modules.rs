//! The Rust files that the compiler reads, found by following `mod` from each package's targets.

use std::collections::BTreeMap;

use syn::{Expr, ExprLit, Item, Lit, Meta};
use toml::{Table, Value};

use crate::tree::{folder, join};
use crate::{File, Findings, Tree, rust};

/// Module names that do not say what is inside.
const EMPTY_NAMES: [&str; 6] = ["utils", "util", "helpers", "misc", "common2", "stuff"];

/// Every Rust file is reached from some target.
#[must_use]
pub fn dead_files(tree: &Tree) -> Findings {
    let reached = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.rust().filter(|file| !reached.contains(&file.path)) {
        findings.file(&file.path, "no `mod` reaches it; declare it or delete it");
    }
    findings
}

/// A module is named after its content, not its age or usefulness.
#[must_use]
pub fn names(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| ["rs", "py", "sv"].contains(&file.extension())) {
        for part in file.path.split('/') {
            if says_nothing(part.split('.').next().unwrap_or(part)) {
                findings.file(&file.path, format!("`{part}`: name it by what it holds"));
            }
        }
        let parsed = rust::parse(file).map_or(Vec::new(), |parsed| parsed.items);
        for item in &parsed {
            if let Item::Mod(module) = item
                && module.content.is_some()
                && says_nothing(&module.ident.to_string())
            {
                let message = format!("`mod {}`: name it by what it holds", module.ident);
                findings.at(&file.path, module.ident.span().start().line, message);
            }
        }
    }
    findings
}

fn says_nothing(name: &str) -> bool {
    EMPTY_NAMES.contains(&name)
        || name.starts_with("new_")
        || name.starts_with("old_")
        || name.ends_with("_new")
        || name.ends_with("_old")
}

/// The files that some target reaches, and whether only tests reach them.
#[derive(Debug, Default)]
pub(crate) struct Modules {
    only_tests: BTreeMap<String, bool>,
}

/// A file to follow: the folder of its child modules, and whether only tests reach it.
struct Step {
    path: String,
    children: String,
    only_tests: bool,
}

impl Modules {
    pub(crate) fn of(tree: &Tree) -> Modules {
        let mut modules = Modules::default();
        let mut steps: Vec<Step> = target_roots(tree).into_iter().map(root_step).collect();
        while let Some(step) = steps.pop() {
            let Some(file) = tree.get(&step.path) else {
                continue;
            };
            // A file is visited again only when code other than tests turns out to reach it.
            let known = modules.only_tests.get(&step.path);
            if known.is_some_and(|&only_tests| !only_tests || step.only_tests) {
                continue;
            }
            modules.only_tests.insert(step.path.clone(), step.only_tests);
            let parsed = rust::parse(file).map_or(Vec::new(), |parsed| parsed.items);
            declared(tree, &step, &step.children, &parsed, &mut steps);
            steps.extend(included(file, step.only_tests));
        }
        modules
    }

    pub(crate) fn contains(&self, path: &str) -> bool {
        self.only_tests.contains_key(path)
    }

    /// True if only tests compile the file at `path`; false for a file that nothing reaches.
    pub(crate) fn only_tests(&self, path: &str) -> bool {
        self.only_tests.get(path).copied().unwrap_or(false)
    }
}

fn root_step(path: String) -> Step {
    let children = folder(&path).to_owned();
    let only_tests = rust::is_test_target(&path);
    Step { path, children, only_tests }
}

/// The files declared by `mod` in `items`, for a module with its children in `children`.
fn declared(tree: &Tree, step: &Step, children: &str, items: &[Item], steps: &mut Vec<Step>) {
    for item in items {
        let Item::Mod(module) = item else { continue };
        let name = module.ident.to_string();
        let below = format!("{children}/{name}");
        let only_tests = step.only_tests || rust::only_in_tests(&module.attrs);
        if let Some((_, items)) = &module.content {
            let step = Step { path: step.path.clone(), children: String::new(), only_tests };
            declared(tree, &step, &below, items, steps);
            continue;
        }
        if let Some(path) = path_attribute(module) {
            let path = join(folder(&step.path), &path).unwrap_or_default();
            let children = folder(&path).to_owned();
            steps.push(Step { path, children, only_tests });
            continue;
        }
        let candidates = [format!("{below}.rs"), format!("{below}/mod.rs")];
        if let Some(path) = candidates.into_iter().find(|path| tree.get(path).is_some()) {
            steps.push(Step { path, children: below, only_tests });
        }
    }
}

fn path_attribute(module: &syn::ItemMod) -> Option<String> {
    module.attrs.iter().find_map(|attribute| match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("path") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) => Some(path.value()),
            _ => None,
        },
        _ => None,
    })
}

/// The files that `include!` inserts.
fn included(file: &File, only_tests: bool) -> Vec<Step> {
    let tokens = rust::tokens(file);
    let pasted = tokens.windows(4).filter(|window| {
        window[0].text == "include" && window[1].text == "!" && window[2].text == "("
    });
    let path = |literal: &str| join(folder(&file.path), literal.trim_matches('"'));
    let step = |path: String| Step { children: folder(&path).to_owned(), path, only_tests };
    pasted.filter_map(|window| path(&window[3].text)).map(step).collect()
}

/// The root file of every target of every package, by cargo's convention or by the manifest.
fn target_roots(tree: &Tree) -> Vec<String> {
    let mut roots = Vec::new();
    for (folder, manifest) in packages(tree) {
        let at = |path: &str| join(&folder, path).unwrap_or_default();
        roots.extend(["src/lib.rs", "src/main.rs", "build.rs"].map(at));
        for targets in ["src/bin", "tests", "benches", "examples"].map(at) {
            roots.extend(tree.under(&targets).map(|file| file.path.clone()).filter(|path| {
                let below = &path[targets.len() + 1..];
                below.ends_with("/main.rs") || (below.ends_with(".rs") && !below.contains('/'))
            }));
        }
        let build = manifest.get("package").and_then(|package| package.get("build"));
        roots.extend(build.and_then(Value::as_str).map(at));
        roots.extend(built_roots(&manifest).into_iter().map(|path| at(&path)));
        for kind in ["lib", "bin", "test", "bench", "example"] {
            roots.extend(named_targets(&manifest, kind).iter().map(|path| at(path)));
        }
    }
    roots
}

/// Files that a build script compiles by itself: `roots` of `[package.metadata.tidy]`.
fn built_roots(manifest: &Table) -> Vec<String> {
    let tidy = manifest.get("package").and_then(|package| package.get("metadata")?.get("tidy"));
    let roots = tidy.and_then(|tidy| tidy.get("roots")?.as_array());
    roots.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn named_targets(manifest: &Table, kind: &str) -> Vec<String> {
    let path = |target: &Value| target.get("path")?.as_str().map(str::to_owned);
    match manifest.get(kind) {
        Some(Value::Array(targets)) => targets.iter().filter_map(path).collect(),
        Some(target) => path(target).into_iter().collect(),
        None => Vec::new(),
    }
}

/// The folder and the manifest of every package.
pub(crate) fn packages(tree: &Tree) -> Vec<(String, Table)> {
    let manifest = |file: &File| {
        let table: Table = file.text().parse().ok()?;
        table.contains_key("package").then(|| (folder(&file.path).to_owned(), table))
    };
    tree.files().filter(|file| file.name() == "Cargo.toml").filter_map(manifest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &str = "[package]\nname = \"x\"\n";

    #[test]
    fn a_file_that_no_module_declares_is_dead() {
        let tree = Tree::from_files([
            ("crates/x/Cargo.toml", MANIFEST),
            ("crates/x/src/lib.rs", "mod a;\nmod b { mod c; }\n#[path = \"p/q.rs\"]\nmod d;\n"),
            ("crates/x/src/a.rs", "mod e;\n"),
            ("crates/x/src/a/e.rs", ""),
            ("crates/x/src/b/c/mod.rs", "include!(\"made.rs\");\n"),
            ("crates/x/src/b/c/made.rs", ""),
            ("crates/x/src/p/q.rs", ""),
            ("crates/x/src/e.rs", ""),
            ("crates/x/tests/t.rs", "mod shared;\n"),
            ("crates/x/tests/shared/mod.rs", ""),
            ("crates/x/tests/shared/gone.rs", ""),
            ("examples/stray.rs", ""),
        ]);
        let dead = ["crates/x/src/e.rs", "crates/x/tests/shared/gone.rs", "examples/stray.rs"];
        assert_eq!(dead_files(&tree).places(), dead);
    }

    #[test]
    fn targets_that_a_manifest_names_are_roots() {
        let manifest = "[package]\nname = \"x\"\nbuild = \"../commit.rs\"\n[[bin]]\n\
                        name = \"b\"\npath = \"targets/b.rs\"\n\
                        [[example]]\nname = \"e\"\npath = \"../examples/e.rs\"\n\
                        [package.metadata.tidy]\nroots = [\"agent/a.rs\"]\n";
        let tree = Tree::from_files([
            ("fuzz/Cargo.toml", manifest),
            ("fuzz/targets/b.rs", ""),
            ("fuzz/targets/c.rs", ""),
            ("fuzz/agent/a.rs", ""),
            ("examples/e.rs", ""),
            ("commit.rs", ""),
        ]);
        assert_eq!(dead_files(&tree).places(), ["fuzz/targets/c.rs"]);
    }

    #[test]
    fn a_file_declared_under_cfg_test_is_a_test() {
        let tree = Tree::from_files([
            ("crates/x/Cargo.toml", MANIFEST),
            ("crates/x/src/lib.rs", "#[cfg(test)]\nmod tests;\nmod b;\n"),
            ("crates/x/src/tests.rs", "mod deep;\n"),
            ("crates/x/src/tests/deep.rs", ""),
            ("crates/x/src/b.rs", ""),
        ]);
        let modules = Modules::of(&tree);
        assert!(modules.only_tests("crates/x/src/tests/deep.rs"));
        assert!(!modules.only_tests("crates/x/src/b.rs"));
    }

    #[test]
    fn names_that_say_nothing_fail() {
        let tree = Tree::from_files([
            ("crates/x/src/utils.rs", ""),
            ("crates/x/src/new_host/a.rs", ""),
            ("rtl/sched/em_sched_old.sv", ""),
            ("crates/x/src/lib.rs", "mod fine;\nmod util {}\n"),
            ("rtl/common/em_fifo.sv", ""),
        ]);
        let broken = [
            "crates/x/src/lib.rs:2",
            "crates/x/src/new_host/a.rs",
            "crates/x/src/utils.rs",
            "rtl/sched/em_sched_old.sv",
        ];
        assert_eq!(names(&tree).places(), broken);
    }
}
