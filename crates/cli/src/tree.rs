//! `ethermem command-tree`: what clap knows of each command, for programs that go through all of
//! them: tests, and the page `docs/reference/commands.md`.

use clap::builder::StyledStr;
use clap::{Arg, ArgAction, Command};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::print;

/// One command.
#[derive(Serialize)]
struct Entry {
    /// Its words, without `ethermem`.
    command: Vec<String>,
    /// True if the command only has commands below it, and cannot be run.
    is_group: bool,
    about: String,
    usage: String,
    /// What the help says after the arguments, as examples.
    after_help: Option<String>,
    arguments: Vec<Argument>,
}

#[derive(Serialize)]
struct Argument {
    /// With its dashes; none of a positional argument.
    flag: Option<String>,
    /// What stands for its value in the help; none of a switch.
    value: Option<String>,
    /// All values that may be given, where those are few.
    values: Vec<String>,
    defaults: Vec<String>,
    is_required: bool,
    /// True if the help leaves it out.
    is_hidden: bool,
    takes_many: bool,
    /// As the help shows it: `--set <KEY=VALUE>`.
    form: String,
    help: String,
}

pub(crate) fn run(root: &Command) -> Result<(), Failure> {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    let mut entries = Vec::new();
    add(&root, &mut Vec::new(), &mut entries);
    print(&ethermem_sim::output::to_json(&entries))
}

/// Adds the commands below one, each before those below it.
fn add(command: &Command, words: &mut Vec<String>, entries: &mut Vec<Entry>) {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        words.push(below.get_name().to_owned());
        entries.push(entry(below, words));
        add(below, words, entries);
        words.pop();
    }
}

fn entry(command: &Command, words: &[String]) -> Entry {
    let is_own = |argument: &&Arg| !["help", "version"].contains(&argument.get_id().as_str());
    let usage = command.clone().render_usage().to_string();
    Entry {
        command: words.to_vec(),
        is_group: command.is_subcommand_required_set(),
        about: command.get_about().map(line).unwrap_or_default(),
        usage: usage.strip_prefix("Usage: ").unwrap_or(&usage).trim_end().to_owned(),
        after_help: command.get_after_help().map(ToString::to_string),
        arguments: command.get_arguments().filter(is_own).map(argument).collect(),
    }
}

fn argument(argument: &Arg) -> Argument {
    let takes = argument.get_action().takes_values();
    let name = argument.get_value_names().and_then(|names| names.first());
    let possible = argument.get_possible_values();
    let help = argument.get_help().or_else(|| argument.get_long_help());
    let defaults = argument.get_default_values().iter().filter(|_| takes);
    Argument {
        flag: argument.get_long().map(|long| format!("--{long}")),
        value: takes.then(|| name.map_or_else(String::new, ToString::to_string)),
        values: possible.iter().map(|value| value.get_name().to_owned()).collect(),
        defaults: defaults.map(|value| value.to_string_lossy().into_owned()).collect(),
        is_required: argument.is_required_set(),
        is_hidden: argument.is_hide_set(),
        takes_many: matches!(argument.get_action(), ArgAction::Append),
        form: argument.to_string(),
        help: help.map(line).unwrap_or_default(),
    }
}

/// A text on one line.
fn line(text: &StyledStr) -> String {
    text.to_string().split_whitespace().collect::<Vec<_>>().join(" ")
}
