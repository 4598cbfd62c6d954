//! `docs/reference/pool.md` lists every name of the pool in Rust, C and Python, and each exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

type Names = BTreeSet<String>;

/// Source files of each class's public functions.
const CLASSES: [(&str, &[&str]); 6] = [
    ("Pool", &["ethermem/src/pool.rs"]),
    ("Thread", &["pool/src/thread/mod.rs"]),
    ("Region", &["pool/src/thread/region.rs"]),
    ("Pending", &["pool/src/pending.rs"]),
    ("Store", &["kv/src/store.rs"]),
    ("Client", &["kv/src/client/mod.rs", "kv/src/client/read.rs", "kv/src/client/scan.rs"]),
];

fn text(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Public functions of the classes in Rust.
fn of_rust() -> Names {
    let mut names = Names::new();
    for (class, files) in CLASSES {
        for file in files {
            let mut is_of_class = false;
            for line in text(&format!("crates/{file}")).lines() {
                if let Some(of) = line.strip_prefix("impl") {
                    let of =
                        of.split_once("> ").filter(|_| of.starts_with('<')).map_or(of, |p| p.1);
                    is_of_class = of.trim_start().split([' ', '<']).next() == Some(class);
                    is_of_class &= !line.contains(" for ");
                }
                let line = line.trim_start();
                let line = line.strip_prefix("pub async fn ").or(line.strip_prefix("pub fn "));
                if let Some(name) = line.and_then(|line| line.split(['(', '<']).next())
                    && is_of_class
                {
                    names.insert(format!("{class}::{name}"));
                }
            }
        }
    }
    names
}

/// Functions of the header.
fn of_c() -> Names {
    let header = text("crates/capi/include/ethermem.h");
    let before_brackets = header.lines().filter_map(|line| line.split_once('('));
    let words = before_brackets.filter_map(|(left, _)| left.split([' ', '*']).next_back());
    words.filter(|word| word.starts_with('r')).map(str::to_owned).collect()
}

/// Methods of the classes in the stubs, except those that Python itself calls.
fn of_python() -> Names {
    let mut class = "";
    let mut names = Names::new();
    for line in text("python/ethermem/_native.pyi").lines() {
        if let Some(rest) = line.strip_prefix("class ") {
            class = rest.split(['(', ':']).next().unwrap();
        } else if let Some(rest) = line.strip_prefix("    def ") {
            let name = rest.split('(').next().unwrap();
            if CLASSES.iter().any(|(known, _)| *known == class) && !name.starts_with("__") {
                names.insert(format!("{class}.{name}"));
            }
        }
    }
    names
}

/// Names of one form in one column of the table.
fn of_table(column: usize, is_name: fn(&str) -> bool) -> Names {
    let page = text("docs/reference/pool.md");
    let rows = page.lines().filter(|line| line.starts_with("| ")).skip(1);
    let cells = rows.map(|row| row.split('|').nth(column).expect("three columns").to_owned());
    let code = cells.flat_map(|cell| {
        cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<String>>()
    });
    code.filter(|name| is_name(name)).collect()
}

fn of_a_class(name: &str) -> bool {
    CLASSES
        .iter()
        .any(|(class, _)| name.strip_prefix(class).is_some_and(|rest| rest.starts_with(['.', ':'])))
}

#[test]
fn the_table_of_names_is_what_the_three_languages_have() {
    let rust = of_rust();
    assert!(rust.len() > 50, "{rust:?}");
    assert_eq!(of_table(1, of_a_class), rust);
    let c = of_c();
    assert!(c.len() > 35, "{c:?}");
    let called = |name: &str| name.starts_with('r') && !name.contains(' ') && name != "read_into";
    assert_eq!(of_table(2, called), c);
    let python = of_python();
    assert!(python.len() > 45, "{python:?}");
    assert_eq!(of_table(3, of_a_class), python);
}
