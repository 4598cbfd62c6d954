//! Rules over prose: comments of Rust and SystemVerilog, docstrings and comments of Python, and
//! pages in Markdown.
//!
//! A program can check a part of plain English: words that name no component, first sentences
//! without a subject and a verb, and the width of a page.

use crate::{File, Findings, Tree};

/// Widest line of a page, in characters.
const COLUMNS_MAX: usize = crate::text::COLUMNS_MAX;

/// Words that say too little, in lower case, and what to write instead.
const VAGUE: [(&str, &str); 8] = [
    ("nobody", "name the component: no client, no process, no node"),
    ("somebody", "name the component: a client, an operator, a caller"),
    ("anybody", "name the component: any client, any process"),
    ("everybody", "name the component: all clients, all processes"),
    ("allowed are", "say what it must be: `must be 1 to 8`"),
    ("allowed is", "say what it must be: `must be 1 to 8`"),
    ("is none of it", "say what is excluded"),
    ("see the module", "say what it is"),
];

/// How a first sentence without a subject begins, and what to write instead.
const FRAGMENTS: [(&str, &str); 8] = [
    ("Which.", "say what it is, with its unit"),
    ("Where.", "say what place it is"),
    ("Why.", "say what the reason is of"),
    ("What.", "say what it is"),
    ("The same.", "repeat the noun"),
    ("The same of ", "repeat the noun"),
    ("Of the ", "begin with the noun"),
    ("Whether ", "begin with `True if`"),
];

/// A line of prose, without the marks of its comment.
struct Line<'a> {
    number: usize,
    text: &'a str,
    /// It begins a comment, or a paragraph of a page.
    is_first: bool,
}

/// Comments and pages name components, and say what a value must be.
#[must_use]
pub fn words(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_checked(file)) {
        for line in lines(file) {
            let text = without_code(line.text).to_lowercase();
            for (word, instead) in VAGUE.iter().filter(|(word, _)| has_words(&text, word)) {
                findings.at(&file.path, line.number, format!("`{word}`: {instead}"));
            }
        }
    }
    findings
}

/// The first sentence of a comment has a subject and a verb.
#[must_use]
pub fn first_sentences(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.files().filter(|file| is_checked(file) && file.extension() != "md") {
        for line in lines(file).into_iter().filter(|line| line.is_first) {
            for (start, instead) in
                FRAGMENTS.iter().filter(|(start, _)| line.text.starts_with(start))
            {
                let start = start.trim_end();
                findings.at(&file.path, line.number, format!("`{start}` begins it: {instead}"));
            }
        }
    }
    findings
}

/// A line of a page fits 100 columns. Tables, code and lines that are one link may be wider.
#[must_use]
pub fn page_width(tree: &Tree) -> Findings {
    let mut findings = Findings::default();
    for file in tree.markdown().filter(|file| !is_generated(file)) {
        for line in lines(file) {
            let columns = line.text.chars().count();
            let is_table = line.text.trim_start().starts_with('|');
            let is_code = line.text.starts_with("    ");
            let is_one_word = !line.text.trim().contains(' ');
            if columns > COLUMNS_MAX
                && !is_table
                && !is_code
                && !is_one_word
                && !is_long_link(line.text)
            {
                let message = format!("{columns} columns; break it at {COLUMNS_MAX}");
                findings.at(&file.path, line.number, message);
            }
        }
    }
    findings
}

/// A list's entry that is one link cannot be broken.
fn is_long_link(text: &str) -> bool {
    let text = text.trim_start_matches(['-', '*', ' ']);
    text.starts_with('[')
        && text.trim_end_matches(['.', ' ']).ends_with(')')
        && text.matches("](").count() == 1
}

/// A page, or a part of one, that a program writes says so in a comment.
fn is_generated(file: &File) -> bool {
    file.text().contains("<!-- made from")
}

fn is_checked(file: &File) -> bool {
    !file.is_data() && ["rs", "sv", "py", "md", "h"].contains(&file.extension())
}

fn lines(file: &File) -> Vec<Line<'_>> {
    match file.extension() {
        "md" => page(file.text()),
        "py" => comments(file.text(), &["#"]),
        "h" => comments(file.text(), &["/**", "/*", "*", "//"]),
        _ => comments(file.text(), &["///", "//!", "//"]),
    }
}

/// The lines of comments, each comment's first line marked.
fn comments<'a>(text: &'a str, marks: &[&str]) -> Vec<Line<'a>> {
    let mut found = Vec::new();
    let mut before = "";
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let mark = marks.iter().find(|mark| line.starts_with(**mark)).copied().unwrap_or("");
        if !mark.is_empty() {
            let text = line[mark.len()..].trim();
            found.push(Line { number: index + 1, text, is_first: mark != before });
        }
        before = mark;
    }
    found
}

/// The lines of a page outside of its code blocks.
fn page(text: &str) -> Vec<Line<'_>> {
    let mut found = Vec::new();
    let (mut in_code, mut is_first) = (false, true);
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            found.push(Line { number: index + 1, text: line, is_first });
            is_first = line.trim().is_empty();
        }
    }
    found
}

/// A line without what stands between backticks and between quotes.
fn without_code(text: &str) -> String {
    let outside = text.split('`').step_by(2).collect::<Vec<_>>().join(" ");
    outside.split('"').step_by(2).collect::<Vec<_>>().join(" ")
}

fn has_words(text: &str, words: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric();
    text.match_indices(words).any(|(start, _)| {
        !text[..start].ends_with(is_letter) && !text[start + words.len()..].starts_with(is_letter)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_name_no_component_fail_outside_of_code() {
        let rust = "/// So nobody waits.\n// uid `nobody`, and \"nobody\"\nlet nobody = 1;\n";
        let tree = Tree::from_files([
            ("crates/sim/src/a.rs", rust),
            ("rtl/a.sv", "  // Allowed are 1 to 4.\n"),
            ("a.py", "# somebody\nx = 'somebody'\n"),
            ("a.md", "Anybody may.\n\n```text\nanybody\n```\n"),
        ]);
        let places = words(&tree).places();
        assert_eq!(places, ["a.md:1", "a.py:1", "crates/sim/src/a.rs:1", "rtl/a.sv:1"]);
    }

    #[test]
    fn a_first_sentence_without_a_subject_fails() {
        let rust = "/// Which.\na: u8,\n/// Number of the port.\n/// Which. And on.\nb: u8,\n// \
                    Whether it is.\n/// Whether it was.\nfn c() {}\n";
        let tree = Tree::from_files([("crates/sim/src/a.rs", rust)]);
        let places = [1, 6, 7].map(|line| format!("crates/sim/src/a.rs:{line}"));
        assert_eq!(first_sentences(&tree).places(), places);
    }

    #[test]
    fn a_wide_line_of_a_page_fails_unless_it_cannot_be_broken() {
        let (wide, link) = ("word ".repeat(21), format!("- [{}](a.md)\n", "word ".repeat(21)));
        let page =
            format!("{wide}end\n| {wide} |\n```text\n{wide}end\n```\n{link}{}\n", "w".repeat(101));
        let tree = Tree::from_files([("docs/a.md", &*page)]);
        assert_eq!(page_width(&tree).places(), ["docs/a.md:1"]);
    }
}
