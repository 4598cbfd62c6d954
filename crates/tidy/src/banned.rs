//! Calls and types that this project does not use, each with what to write instead.

use syn::visit::Visit;
use syn::{Attribute, Meta};

use crate::modules::Modules;
use crate::{File, Findings, Tree, levels, rust};

/// A banned sequence of tokens, where it is banned, and its replacement.
struct Ban {
    tokens: &'static [&'static str],
    scope: Scope,
    instead: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Everywhere,
    OutsideTests,
    /// All code except a `main.rs`, an example, or a test.
    Libraries,
}

const fn ban(tokens: &'static [&'static str], scope: Scope, instead: &'static str) -> Ban {
    Ban { tokens, scope, instead }
}

const UNFINISHED: &str = "write it, or return an error that says what is not supported";
const PRINTED: &str = "a library returns values; `cli` prints by `output::print` and \
    `output::say`, which do not panic where nothing can be written";
const CALLS: [Ban; 9] = [
    ban(&["todo", "!"], Scope::Everywhere, UNFINISHED),
    ban(&["unimplemented", "!"], Scope::Everywhere, UNFINISHED),
    ban(&["dbg", "!"], Scope::Everywhere, "delete it"),
    ban(
        &[".", "unwrap", "("],
        Scope::OutsideTests,
        "return the error, or `expect` with the invariant that makes it impossible",
    ),
    ban(&[".", "unwrap_err", "("], Scope::OutsideTests, "match on the result"),
    ban(&["println", "!"], Scope::Libraries, PRINTED),
    ban(&["print", "!"], Scope::Libraries, PRINTED),
    ban(&["eprintln", "!"], Scope::Libraries, PRINTED),
    ban(&["eprint", "!"], Scope::Libraries, PRINTED),
];

/// What a pure crate must not fetch, with what it is given instead.
const WORLD: [(&str, &str); 6] = [
    ("std::time", "take the time as a `Ps` argument"),
    ("std::thread", "stay a state machine; whoever drives it has the threads"),
    ("std::fs", "take bytes, return bytes"),
    ("std::net", "return what to send"),
    ("std::env", "take it in the configuration"),
    ("std::process", "return an error"),
];

/// The mark that permits a hash map, on its line or the line before.
const ORDER_NOT_OBSERVED: &str = "// tidy: order not observed";

/// Bans unfinished code, `unwrap` outside tests, and printing from a library.
#[must_use]
pub fn calls(tree: &Tree) -> Findings {
    let modules = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.rust() {
        let tokens = rust::tokens(file);
        let texts: Vec<&str> = tokens.iter().map(|token| token.text.as_str()).collect();
        let in_tests = rust::test_lines(file);
        for ban in &CALLS {
            for (start, window) in texts.windows(ban.tokens.len()).enumerate() {
                let line = tokens[start + ban.tokens.len() - 1].line;
                let tested = modules.only_tests(&file.path) || in_tests.contains(line);
                let applies = match ban.scope {
                    Scope::Everywhere => true,
                    Scope::OutsideTests => !tested,
                    Scope::Libraries => !tested && is_library(file),
                };
                if window == ban.tokens && applies {
                    let call = ban.tokens.concat();
                    findings.at(&file.path, line, format!("`{call}`: {}", ban.instead));
                }
            }
        }
    }
    findings
}

fn is_library(file: &File) -> bool {
    let program = file.name() == "main.rs" || file.name() == "build.rs";
    let folder = levels::crate_of(&file.path);
    let printed = file.path.contains("/src/bin/") || file.path.contains("/examples/");
    !program && !printed && folder.is_some()
}

/// Pure crates read no clock, file, socket or environment, and start no thread.
#[must_use]
pub fn world_in_pure_crates(tree: &Tree) -> Findings {
    let modules = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.rust().filter(|file| in_crates(file, &levels::PURE)) {
        if modules.only_tests(&file.path) {
            continue;
        }
        let in_tests = rust::test_lines(file);
        for (path, line) in paths(file).into_iter().filter(|(_, line)| !in_tests.contains(*line)) {
            let within = |world: &str| path == world || path.starts_with(&format!("{world}::"));
            if let Some((world, instead)) = WORLD.iter().find(|(world, _)| within(world)) {
                findings.at(&file.path, line, format!("`{world}` in a pure crate: {instead}"));
            }
        }
    }
    findings
}

/// Paths that a file imports or spells out in place.
fn paths(file: &File) -> Vec<(String, usize)> {
    let mut paths = rust::parse(file).map_or(Vec::new(), |parsed| rust::imports(&parsed));
    for window in rust::tokens(file).windows(4) {
        if window[0].text == "std" && window[1].text == ":" && window[2].text == ":" {
            paths.push((format!("std::{}", window[3].text), window[0].line));
        }
    }
    paths
}

/// Code that decides a run does not iterate in the order of a hash.
#[must_use]
pub fn hash_order(tree: &Tree) -> Findings {
    let modules = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.rust().filter(|file| in_crates(file, &levels::DETERMINISTIC)) {
        let in_tests = rust::test_lines(file);
        let imported: Vec<usize> = rust::parse(file)
            .map_or(Vec::new(), |parsed| rust::imports(&parsed))
            .into_iter()
            .map(|(_, line)| line)
            .collect();
        let lines: Vec<&str> = file.text().lines().collect();
        for token in rust::tokens(file) {
            let hashed = token.text.ends_with("HashMap") || token.text.ends_with("HashSet");
            let tested = modules.only_tests(&file.path) || in_tests.contains(token.line);
            // An import is not a use: each use must state that its order is not observed.
            if !hashed || tested || imported.contains(&token.line) {
                continue;
            }
            let marked = |line: usize| lines[line - 1].contains(ORDER_NOT_OBSERVED);
            let excused = marked(token.line) || (token.line > 1 && marked(token.line - 1));
            if !excused {
                let instead = "`BTreeMap`, an index, or say `// tidy: order not observed`";
                findings.at(&file.path, token.line, format!("`{}`: use {instead}", token.text));
            }
        }
    }
    findings
}

fn in_crates(file: &File, crates: &[&str]) -> bool {
    levels::crate_of(&file.path).is_some_and(|name| crates.contains(&name))
}

/// An ignored test states its reason; dead code is deleted, not allowed.
#[must_use]
pub fn attributes(tree: &Tree) -> Findings {
    struct Attributes<'a>(&'a str, Findings);
    impl<'ast> Visit<'ast> for Attributes<'_> {
        fn visit_attribute(&mut self, attribute: &'ast Attribute) {
            let line = attribute.pound_token.span.start().line;
            if attribute.path().is_ident("ignore") && matches!(attribute.meta, Meta::Path(_)) {
                self.1.at(self.0, line, "say why: `#[ignore = \"reason\"]`");
            }
            let list = attribute.meta.require_list();
            if list.is_ok_and(|list| list.tokens.to_string().contains("dead_code")) {
                self.1.at(self.0, line, "dead code is deleted, not allowed");
            }
        }
    }
    let mut findings = Findings::default();
    for file in tree.rust() {
        let mut attributes = Attributes(&file.path, Findings::default());
        if let Some(parsed) = rust::parse(file) {
            attributes.visit_file(&parsed);
        }
        findings.violations.extend(attributes.1.violations);
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const TESTS: &str = "#[cfg(test)]\nmod tests {\n    fn t() { x.unwrap(); println!(); }\n}\n";

    #[test]
    fn unfinished_code_fails_everywhere() {
        let text = "fn a() {\n    todo!();\n    unimplemented!()\n}\nfn b() {\n    dbg!(1);\n}\n";
        let tree = Tree::from_files([("crates/sim/tests/a.rs", text)]);
        let path = "crates/sim/tests/a.rs";
        let places = [2, 3, 6].map(|line| format!("{path}:{line}"));
        assert_eq!(calls(&tree).places(), places);
    }

    #[test]
    fn unwrap_fails_outside_tests_and_inside_macros() {
        let text =
            format!("fn a() {{\n    f!(x\n    .unwrap());\n    x.unwrap_or(1);\n}}\n{TESTS}");
        let tree = Tree::from_files([
            ("crates/cli/Cargo.toml", "[package]\nname = \"c\"\n"),
            ("crates/cli/src/main.rs", &*text),
        ]);
        assert_eq!(calls(&tree).places(), ["crates/cli/src/main.rs:3"]);
    }

    #[test]
    fn printing_fails_everywhere_but_in_programs_of_one_file() {
        let text = format!("fn a() {{\n    println!(\"x\");\n    eprint!(\"x\");\n}}\n{TESTS}");
        let tree = Tree::from_files([
            ("crates/sim/src/lib.rs", &*text),
            ("crates/cli/src/print.rs", &*text),
            ("crates/sim/src/main.rs", &*text),
        ]);
        let places = ["cli/src/print", "sim/src/lib"]
            .iter()
            .flat_map(|path| [2, 3].map(|line| format!("crates/{path}.rs:{line}")));
        assert_eq!(calls(&tree).places(), places.collect::<Vec<_>>());
    }

    #[test]
    fn the_world_fails_in_a_pure_crate_however_it_is_imported() {
        let text = "use std::{fmt, fs};\nuse std::time::Instant;\nfn a() {\n    \
                    std::thread::yield_now();\n    let _ = std::net::Ipv4Addr::LOCALHOST;\n}\n\
                    #[cfg(test)]\nmod tests {\n    use std::fs;\n}\n";
        let tree =
            Tree::from_files([("crates/edm/src/lib.rs", text), ("crates/sim/src/lib.rs", text)]);
        let places = [1, 2, 4, 5].map(|line| format!("crates/edm/src/lib.rs:{line}"));
        assert_eq!(world_in_pure_crates(&tree).places(), places);
    }

    #[test]
    fn a_hash_map_fails_unless_its_order_is_not_observed() {
        let text = "use std::collections::HashMap;\nstruct A {\n    a: HashMap<u8, u8>,\n    \
                    // tidy: order not observed\n    b: HashMap<u8, u8>,\n    \
                    c: FxHashSet<u8>,\n}\n";
        let tree =
            Tree::from_files([("crates/sim/src/lib.rs", text), ("crates/cli/src/a.rs", text)]);
        let places = ["crates/sim/src/lib.rs:3", "crates/sim/src/lib.rs:6"];
        assert_eq!(hash_order(&tree).places(), places);
    }

    #[test]
    fn a_bare_ignore_and_allowed_dead_code_fail() {
        let text = "#![allow(dead_code)]\n#[test]\n#[ignore]\nfn a() {}\n#[test]\n\
                    #[ignore = \"slow\"]\nfn b() {\n    #[cfg_attr(x, expect(dead_code))]\n    \
                    fn c() {}\n}\n";
        let tree = Tree::from_files([("crates/sim/tests/a.rs", text)]);
        let places = [1, 3, 8].map(|line| format!("crates/sim/tests/a.rs:{line}"));
        assert_eq!(attributes(&tree).places(), places);
    }
}
