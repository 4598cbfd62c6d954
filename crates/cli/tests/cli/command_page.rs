//! `docs/reference/commands.md`, made from `ethermem command-tree`.

use std::fmt::Write as _;

use serde::Deserialize;

const HEAD: &str = "\
# All commands

Every command and argument, as `ethermem COMMAND --help` lists them. A test of the program writes
this page from `ethermem command-tree`, and holds the page to the program.
[The `ethermem` command](cli.md) explains exit codes, shared arguments and the JSON that commands
print.
";

#[derive(Deserialize)]
pub(crate) struct Entry {
    command: Vec<String>,
    about: String,
    usage: String,
    after_help: Option<String>,
    arguments: Vec<Argument>,
}

#[derive(Deserialize)]
struct Argument {
    value: Option<String>,
    values: Vec<String>,
    defaults: Vec<String>,
    is_hidden: bool,
    takes_many: bool,
    form: String,
    help: String,
}

pub(crate) fn page(entries: &[Entry]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str(&list(entries, &[]));
    for entry in entries {
        section(entry, entries, &mut page);
    }
    page
}

/// A table of the commands right below one, or nothing.
fn list(entries: &[Entry], above: &[String]) -> String {
    let below: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.command.split_last().is_some_and(|(_, first)| first == above))
        .collect();
    if below.is_empty() {
        return String::new();
    }
    let mut table = "\n| command | does |\n|---|---|\n".to_owned();
    for entry in below {
        let name = name(entry);
        let about = cell(&entry.about);
        let _ = writeln!(table, "| [`{name}`](#{}) | {about} |", name.replace(' ', "-"));
    }
    table
}

fn name(entry: &Entry) -> String {
    format!("ethermem {}", entry.command.join(" "))
}

fn section(entry: &Entry, entries: &[Entry], page: &mut String) {
    let _ = writeln!(page, "\n## `{}`\n\n{}.\n", name(entry), cell(&entry.about));
    let _ = writeln!(page, "```text\n{}\n```", entry.usage);
    let shown = || entry.arguments.iter().filter(|argument| !argument.is_hidden);
    if shown().next().is_some() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in shown() {
            let _ = writeln!(page, "| `{}` | {} |", form(argument), meaning(argument));
        }
    }
    page.push_str(&list(entries, &entry.command));
    if let Some(after) = &entry.after_help {
        let lines: Vec<&str> = after.lines().map(str::trim_end).collect();
        let _ = writeln!(page, "\n```text\n{}\n```", lines.join("\n").trim_end());
    }
}

fn form(argument: &Argument) -> String {
    let shown = argument.form.replace('|', "\\|");
    if argument.takes_many && !shown.ends_with("...") { format!("{shown}...") } else { shown }
}

/// The help of an argument with its values and its default.
fn meaning(argument: &Argument) -> String {
    let quoted = |words: &[String]| {
        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    let mut meaning = cell(&argument.help);
    if argument.value.is_some() && !argument.values.is_empty() {
        let _ = write!(meaning, ". One of {}", quoted(&argument.values));
    }
    if !argument.defaults.is_empty() {
        let _ = write!(meaning, ". Default: {}", quoted(&argument.defaults));
    }
    meaning
}

/// A text as a cell of a table takes it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;").trim_end_matches('.').to_owned()
}
