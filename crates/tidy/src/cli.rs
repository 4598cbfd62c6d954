//! The README promises only what the command line takes.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use pulldown_cmark::{Event, Parser, Tag, TagEnd};

use crate::{File, Findings, Tree};

/// Every `--flag` that the README shows after `ethermem` is in the help of `binary`, which was
/// built from the sources under `root`.
#[must_use]
pub fn flags(tree: &Tree, root: &Path, binary: &Path) -> Findings {
    let Some(readme) = tree.get("README.md") else {
        return Findings::skip("flags of the README: there is no README.md");
    };
    // Cargo builds the binary for some test runs and not for others: an old one says nothing.
    let is_older = |than: &File| changed(binary) < changed(&root.join(&than.path));
    if tree.under("crates/cli").any(is_older) {
        return Findings::skip("flags of the README: `ethermem` is not built from this tree");
    }
    match help(binary, &[]) {
        Some(help) if !help.is_empty() => undocumented(readme.text(), &help),
        _ => Findings::skip("flags of the README: `ethermem --help` does not answer"),
    }
}

/// When a file was last written; `None`, which is before any time, when there is no such file.
fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|found| found.modified()).ok()
}

fn undocumented(readme: &str, help: &str) -> Findings {
    let known: BTreeSet<&str> = flags_in(help).collect();
    let mut findings = Findings::default();
    for (flag, line) in cited_flags(readme) {
        if !known.contains(flag.as_str()) {
            findings.at("README.md", line, format!("`{flag}` is not in `ethermem --help`"));
        }
    }
    findings
}

/// The help of a command and of all commands below it; `None` when it has none.
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
    // Two spaces before a name; more before the second line of its description.
    let named = listed.filter(|line| !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

/// Flags in code of the README, in lines that call `ethermem` or spans that are a flag alone.
fn cited_flags(readme: &str) -> Vec<(String, usize)> {
    let mut cited = Vec::new();
    let mut in_block = false;
    for (event, range) in Parser::new(readme).into_offset_iter() {
        let first_line = readme[..range.start].matches('\n').count() + 1;
        match event {
            Event::Start(Tag::CodeBlock(_)) => in_block = true,
            Event::End(TagEnd::CodeBlock) => in_block = false,
            Event::Code(code) if code.starts_with("--") => {
                cited.extend(flags_in(&code).map(|flag| (flag.to_owned(), first_line)));
            }
            Event::Code(code) => cite_call(&code, first_line, &mut cited),
            Event::Text(text) if in_block => {
                for (index, line) in text.lines().enumerate() {
                    cite_call(line, first_line + index, &mut cited);
                }
            }
            _ => {}
        }
    }
    cited
}

fn cite_call(code: &str, line: usize, cited: &mut Vec<(String, usize)>) {
    if let Some((_, arguments)) = code.split_once("ethermem ") {
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
        let places = ["README.md:1", "README.md:1", "README.md:5"];
        assert_eq!(undocumented(readme, HELP).places(), places);
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
