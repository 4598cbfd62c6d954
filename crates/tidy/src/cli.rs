//! The README and the documentation use only flags that the command line accepts.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::{File, Findings, Tree};

/// Every `--flag` that the README and the pages of `docs/` show after `ethermem` is in the help of
/// `binary`, which was built from the sources under `root`.
#[must_use]
pub fn flags(tree: &Tree, root: &Path, binary: &Path) -> Findings {
    let Some(readme) = tree.get("README.md") else {
        return Findings::skip("flags of the README: there is no README.md");
    };
    // Cargo does not build the binary for every test run, and an outdated one proves nothing.
    let is_older = |than: &File| changed(binary) < changed(&root.join(&than.path));
    if tree.under("crates/cli").any(is_older) {
        return Findings::skip("flags of the README: `ethermem` is not built from this tree");
    }
    match help(binary, &[]) {
        Some(help) if !help.is_empty() => {
            let mut findings = undocumented(readme, &help);
            for page in tree.under("docs").filter(|file| file.extension() == "md") {
                findings.violations.extend(undocumented(page, &help).violations);
            }
            findings
        }
        _ => Findings::skip("flags of the README: `ethermem --help` does not answer"),
    }
}

/// Modification time of a file; `None`, which sorts before any time, if it does not exist.
fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

fn undocumented(page: &File, help: &str) -> Findings {
    let known: BTreeSet<&str> = flags_in(help).collect();
    let mut findings = Findings::default();
    for (flag, line) in cited_flags(page) {
        if !known.contains(flag.as_str()) {
            findings.at(&page.path, line, format!("`{flag}` is not in `ethermem --help`"));
        }
    }
    findings
}

/// The help of a command and of all its subcommands; `None` if it has none.
fn help(binary: &Path, command: &[&str]) -> Option<String> {
    let output = Command::new(binary).args(command).arg("--help").output().ok()?;
    output.status.success().then_some(())?;
    let mut text = String::from_utf8(output.stdout).ok()?;
    let below: Vec<String> = subcommands(&text).map(str::to_owned).collect();
    for name in below {
        text.extend(help(binary, &[command, &[&*name]].concat()));
    }
    Some(text)
}

/// The names under `Commands:`, without `help`, which would repeat everything.
fn subcommands(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    // A name has two spaces before it; the second line of its description has more.
    let named = listed.filter(|line| !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

/// Flags in a page's code, in calls of `ethermem`, and in spans of the README that are only a flag.
/// Other pages also name other programs' flags, so a call there must begin its line.
fn cited_flags(page: &File) -> Vec<(String, usize)> {
    let (text, is_readme) = (page.text(), page.path == "README.md");
    let mut cited = Vec::new();
    let mut in_block = false;
    for (event, range) in Parser::new(text).into_offset_iter() {
        let first_line = text[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Code(code) if is_readme && code.starts_with("--") => {
                cited.extend(flags_in(&code).map(|flag| (flag.to_owned(), first_line)));
            }
            Event::Code(code) => cite_call(&code, is_readme, first_line, &mut cited),
            Event::Text(text) if in_block => {
                for (index, line) in text.lines().enumerate() {
                    cite_call(line, is_readme, first_line + index, &mut cited);
                }
            }
            _ => {}
        }
    }
    cited
}

fn cite_call(code: &str, anywhere: bool, line: usize, cited: &mut Vec<(String, usize)>) {
    // Arguments after ` -- ` and ` | ` belong to other programs.
    let code = code.split(" -- ").next().unwrap_or(code);
    let code = code.split(" | ").next().unwrap_or(code);
    let call = code.split_once("ethermem ").filter(|(before, _)| anywhere || before.is_empty());
    if let Some((_, arguments)) = call {
        cited.extend(flags_in(arguments).map(|flag| (flag.to_owned(), line)));
    }
}

fn flags_in(text: &str) -> impl Iterator<Item = &str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
    words.filter(|word| word.len() > 2 && word.starts_with("--") && !word.starts_with("---"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELP: &str = "Usage: ethermem <COMMAND>\n\nCommands:\n  sim      Runs\n           \
                        more\n  latency  Prints\n  help     Repeats\n\nOptions:\n  \
                        -s, --seed <SEED>\n      --format=<FORMAT>\n";

    #[test]
    fn a_flag_that_the_help_does_not_know_fails() {
        let readme = "`ethermem sim --seed 1 --sede 2`, `--format`, `--from`, `cargo --locked`\n\
                      \n```sh\ncargo run --release\nethermem latency --format=json --of\n```\n";
        let tree = Tree::from_files([("README.md", readme), ("docs/a.md", readme)]);
        let places = ["README.md:1", "README.md:1", "README.md:5"];
        assert_eq!(undocumented(tree.get("README.md").unwrap(), HELP).places(), places);
        let places = ["docs/a.md:1", "docs/a.md:5"];
        assert_eq!(undocumented(tree.get("docs/a.md").unwrap(), HELP).places(), places);
    }

    #[test]
    fn the_commands_are_read_from_the_help() {
        assert_eq!(subcommands(HELP).collect::<Vec<_>>(), ["sim", "latency"]);
    }

    #[test]
    fn a_binary_that_is_missing_or_older_than_its_source_is_skipped_aloud() {
        let root = tempfile::tempdir().unwrap();
        let source = "crates/cli/src/main.rs";
        let tree = Tree::from_files([("README.md", ""), (source, "")]);
        std::fs::create_dir_all(root.path().join("crates/cli/src")).unwrap();
        let binary = root.path().join("ethermem");
        std::fs::write(root.path().join(source), "").unwrap();
        assert!(flags(&tree, root.path(), &binary).skipped.is_some());
        std::fs::write(&binary, "").unwrap();
        let old = SystemTime::UNIX_EPOCH;
        std::fs::File::open(&binary).unwrap().set_modified(old).unwrap();
        assert!(flags(&tree, root.path(), &binary).skipped.unwrap().contains("not built"));
    }
}
