//! `ethermem command-page`: `docs/reference/commands.md`, the reference of all commands.

use std::fmt::Write as _;

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};

use crate::failure::Failure;
use crate::output::print;

const HEAD: &str = "\
# All commands

Every command and argument, as `ethermem COMMAND --help` lists them. The program writes this page
(`ethermem command-page`), and a test holds the page to the program.
[The `ethermem` command](cli.md) explains exit codes, shared arguments and the JSON that commands
print.
";

pub(crate) fn run(root: &Command) -> Result<(), Failure> {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    let mut page = HEAD.to_owned();
    page.push_str(&list(&root));
    for command in shown(&root) {
        section(command, &mut page);
    }
    print(&page)
}

fn shown(command: &Command) -> impl Iterator<Item = &Command> {
    command.get_subcommands().filter(|below| !below.is_hide_set())
}

/// A table of a command's subcommands.
fn list(command: &Command) -> String {
    let mut table = "\n| command | does |\n|---|---|\n".to_owned();
    for below in shown(command) {
        let name = below.get_bin_name().unwrap_or_else(|| below.get_name());
        let about = below.get_about().map(line).unwrap_or_default();
        let _ = writeln!(table, "| [`{name}`](#{}) | {about} |", name.replace(' ', "-"));
    }
    table
}

fn section(command: &Command, page: &mut String) {
    let name = command.get_bin_name().unwrap_or_else(|| command.get_name());
    let about = command.get_about().map(line).unwrap_or_default();
    let _ = writeln!(page, "\n## `{name}`\n\n{about}.\n");
    let usage = command.clone().render_usage().to_string();
    let usage = usage.strip_prefix("Usage: ").unwrap_or(&usage);
    let _ = writeln!(page, "```text\n{}\n```", usage.trim_end());
    let arguments: Vec<&Arg> = command.get_arguments().filter(|one| is_own(one)).collect();
    if !arguments.is_empty() {
        page.push_str("\n| argument | meaning |\n|---|---|\n");
        for argument in arguments {
            let _ = writeln!(page, "| `{}` | {} |", form(argument), meaning(argument));
        }
    }
    if shown(command).next().is_some() {
        page.push_str(&list(command));
    }
    if let Some(after) = command.get_after_help() {
        let after = after.to_string();
        let lines: Vec<&str> = after.lines().map(str::trim_end).collect();
        let _ = writeln!(page, "\n```text\n{}\n```", lines.join("\n").trim_end());
    }
    for below in shown(command) {
        section(below, page);
    }
}

/// True for an argument of the command itself; false for one that every command has.
fn is_own(argument: &Arg) -> bool {
    !["help", "version"].contains(&argument.get_id().as_str()) && !argument.is_hide_set()
}

/// Form of an argument in the help: `--set <KEY=VALUE>`.
fn form(argument: &Arg) -> String {
    let many = matches!(argument.get_action(), ArgAction::Append);
    let shown = argument.to_string().replace('|', "\\|");
    if many && !shown.ends_with("...") { format!("{shown}...") } else { shown }
}

/// Help of an argument, with its default and its values.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut meaning = help.map(line).unwrap_or_default();
    let takes = argument.get_action().takes_values();
    let values = argument.get_possible_values();
    let values: Vec<String> = values.iter().map(|one| format!("`{}`", one.get_name())).collect();
    if takes && !values.is_empty() {
        let _ = write!(meaning, ". One of {}", values.join(", "));
    }
    let defaults: Vec<String> = argument
        .get_default_values()
        .iter()
        .filter(|_| takes)
        .map(|value| format!("`{}`", value.to_string_lossy()))
        .collect();
    if !defaults.is_empty() {
        let _ = write!(meaning, ". Default: {}", defaults.join(", "));
    }
    meaning
}

/// A text on one line, for a cell of a table.
fn line(text: &StyledStr) -> String {
    let text = text.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ").replace('|', "\\|").replace('<', "&lt;");
    line.trim_end_matches('.').to_owned()
}
