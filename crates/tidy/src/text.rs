//! Rules for lines: width, whitespace, length of files, leftovers, machine-specific paths.

use crate::modules::Modules;
use crate::{File, Findings, Tree, rust};

/// Widest line of code, in characters.
pub const COLUMNS_MAX: usize = 100;

/// File extension, number of lines for a warning, number of lines for a failure.
const LINES_MAX: [(&str, usize, usize); 3] = [("rs", 500, 800), ("sv", 250, 300), ("py", 500, 800)];

/// Words that mark unfinished work, split so that this file does not break its own rule.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Machine-specific folders, and whether an example in the docs may show one.
const MACHINE_PATHS: [(&str, bool); 4] = [
    (concat!("/ho", "me/"), true),
    (concat!("/t", "mp/"), true),
    (concat!("/ro", "ot/"), false),
    (concat!("/wo", "rk/"), false),
];

fn is_code(file: &File) -> bool {
    let by_extension = ["rs", "sv", "svh", "py", "sh", "toml", "c", "h"];
    let by_path = ["Makefile", ".ci/run"];
    !file.is_data()
        && (by_extension.contains(&file.extension()) || by_path.contains(&file.path.as_str()))
}

fn is_prose(file: &File) -> bool {
    let prose = ["md", "yml", "yaml", "json", "html", "editorconfig", "gitattributes", "gitignore"];
    !file.is_data() && prose.contains(&file.extension())
}

/// A line of code fits [`COLUMNS_MAX`] columns.
#[must_use]
pub fn line_width(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_code(file)) {
        for (index, line) in file.text().lines().enumerate() {
            let columns = line.chars().count();
            if columns > COLUMNS_MAX {
                let message = format!("{columns} columns; break it at {COLUMNS_MAX}");
                findings.at(&file.path, index + 1, message);
            }
        }
    }
    findings
}

/// Files have no tabs (except a Makefile), no trailing whitespace, and exactly one final newline.
#[must_use]
pub fn whitespace(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_code(file) || is_prose(file)) {
        let text = file.text();
        for (index, line) in text.split('\n').enumerate() {
            if line.contains('\t') && file.name() != "Makefile" {
                findings.at(&file.path, index + 1, "a tab; indent with spaces");
            }
            if line.ends_with([' ', '\t', '\r']) {
                findings.at(&file.path, index + 1, "whitespace at the end of the line; cut it");
            }
        }
        if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
            findings.file(&file.path, "must end with exactly one newline");
        }
    }
    findings
}

/// A file is short enough to be read in one go.
#[must_use]
pub fn file_length(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_code(file)) {
        let lines = file.text().lines().count();
        let limit = LINES_MAX.iter().find(|(extension, ..)| *extension == file.extension());
        let Some(&(_, warned, allowed)) = limit else {
            continue;
        };
        if lines > allowed {
            let message = format!("{lines} lines, {allowed} allowed; split it by what it does");
            findings.file(&file.path, message);
        } else if lines > warned {
            findings.warn(&file.path, format!("{lines} lines; past {allowed} the rule fails"));
        }
    }
    findings
}

/// Files have no mark of unfinished work: finish it, or document the limit.
#[must_use]
pub fn leftovers(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_code(file)) {
        for (index, line) in file.text().lines().enumerate() {
            for word in LEFTOVERS.iter().filter(|word| has_word(line, word)) {
                let message = format!("{word}: finish it, or say the limit in the docs");
                findings.at(&file.path, index + 1, message);
            }
        }
    }
    findings
}

/// Files have no machine-specific absolute path, except tests and examples in the docs.
#[must_use]
pub fn machine_paths(tree: &Tree) -> Findings {
    let modules = Modules::of(tree);
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_code(file) || is_prose(file)) {
        if is_test_script(file) || modules.only_tests(&file.path) {
            continue;
        }
        let is_docs = file.extension() == "md";
        let in_tests = rust::test_lines(file);
        for (index, line) in file.text().lines().enumerate() {
            let exempt = |allowed_in_docs: bool| {
                (is_docs && allowed_in_docs) || in_tests.contains(index + 1)
            };
            for (prefix, allowed_in_docs) in MACHINE_PATHS {
                if has_path(line, prefix) && !exempt(allowed_in_docs) {
                    let message =
                        format!("{prefix}: a path of one machine; take it as an argument");
                    findings.at(&file.path, index + 1, message);
                }
            }
        }
    }
    findings
}

fn is_test_script(file: &File) -> bool {
    file.extension() == "py" && file.name().starts_with("test_")
}

fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(inside) && !line[start + word.len()..].starts_with(inside)
    })
}

/// True if an absolute path starts with `prefix`; `a/work/b` and `$(OUT)/work/` do not count.
fn has_path(line: &str, prefix: &str) -> bool {
    let before = |c: char| c.is_whitespace() || "\"'`(=:,[<>{".contains(c);
    line.match_indices(prefix).any(|(start, _)| start == 0 || line[..start].ends_with(before))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_101_columns_fails_and_one_of_100_does_not() {
        let text = format!("{}\n{}\n", "é".repeat(100), "x".repeat(101));
        let tree = Tree::from_files([("a.py", &*text), ("a.md", &*text), ("Cargo.lock", &*text)]);
        assert_eq!(line_width(&tree).places(), ["a.py:2"]);
    }

    #[test]
    fn a_tab_a_trailing_space_and_a_missing_newline_fail() {
        let tree = Tree::from_files([
            ("Makefile", "all:\n\techo\n"),
            ("a.rs", "fn a() {}\n\t\nfn b() {} \nfn c() {}\r\n"),
            ("b.sh", "true"),
            ("c.md", "text\n\n"),
            ("golden/wire/a.json", "{}"),
        ]);
        let places = whitespace(&tree).places();
        assert_eq!(places, ["a.rs:2", "a.rs:2", "a.rs:3", "a.rs:4", "b.sh", "c.md"]);
    }

    #[test]
    fn a_long_file_warns_and_a_longer_one_fails() {
        let (warned, failed) = ("\n".repeat(501), "\n".repeat(801));
        let tree = Tree::from_files([("a.rs", &*warned), ("b.rs", &*failed), ("c.md", &*failed)]);
        let findings = file_length(&tree);
        assert_eq!(findings.places(), ["b.rs"]);
        assert_eq!(findings.warnings.len(), 1);
    }

    #[test]
    fn marks_of_unfinished_work_fail_as_whole_words() {
        let marks = LEFTOVERS.map(|word| format!("# {word}: later\n")).concat();
        let text = format!("{marks}mktemp -d out.{}\nTODOS\n", "X".repeat(6));
        let tree = Tree::from_files([("a.sh", &*text)]);
        assert_eq!(leftovers(&tree).places(), ["a.sh:1", "a.sh:2", "a.sh:3"]);
    }

    #[test]
    fn a_path_of_one_machine_fails_outside_tests_and_examples() {
        let rust = "const A: &str = \"/root/x\";\n#[cfg(test)]\nmod t {\n    const B: &str = \
                    \"/tmp/x\";\n}\n";
        let tree = Tree::from_files([
            ("a.py", "open('/tmp/x')\nopen(f'{out}/tmp/x')\n"),
            ("a.rs", rust),
            ("b.md", "`/tmp/x` and https://host/work/x\n/work/x\n"),
            ("test_a.py", "open('/tmp/x')\n"),
        ]);
        assert_eq!(machine_paths(&tree).places(), ["a.py:1", "a.rs:1", "b.md:2"]);
    }
}
