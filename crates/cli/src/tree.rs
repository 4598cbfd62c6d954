//! `ethermem command-tree`: clap's data of each command, for tests that go through all of them.

use clap::{ArgAction, Command};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::print;

/// One command that can be run.
#[derive(Serialize)]
struct Entry {
    /// Words of the command, without `ethermem`.
    command: Vec<String>,
    arguments: Vec<Argument>,
}

#[derive(Serialize)]
struct Argument {
    /// Flag with its dashes; `None` for a positional argument.
    flag: Option<String>,
    /// Name of its value in the help; `None` for a switch.
    value: Option<String>,
    /// All allowed values, if they are few.
    values: Vec<String>,
    is_required: bool,
    takes_many: bool,
}

pub(crate) fn run(root: &Command) -> Result<(), Failure> {
    let mut entries = Vec::new();
    add(root, &mut Vec::new(), &mut entries);
    print(&ethermem_sim::output::to_json(&entries))
}

fn add(command: &Command, words: &mut Vec<String>, entries: &mut Vec<Entry>) {
    for child in command.get_subcommands().filter(|child| !child.is_hide_set()) {
        words.push(child.get_name().to_owned());
        add(child, words, entries);
        words.pop();
    }
    if command.is_subcommand_required_set() || words.is_empty() {
        return;
    }
    let built_in = |id: &str| id == "help" || id == "version";
    let arguments =
        command.get_arguments().filter(|argument| !built_in(argument.get_id().as_str()));
    entries.push(Entry { command: words.clone(), arguments: arguments.map(argument).collect() });
}

fn argument(argument: &clap::Arg) -> Argument {
    let takes = argument.get_action().takes_values();
    let name = argument.get_value_names().and_then(|names| names.first());
    let possible = argument.get_possible_values();
    Argument {
        flag: argument.get_long().map(|long| format!("--{long}")),
        value: takes.then(|| name.map_or_else(String::new, ToString::to_string)),
        values: possible.iter().map(|value| value.get_name().to_owned()).collect(),
        is_required: argument.is_required_set(),
        takes_many: matches!(argument.get_action(), ArgAction::Append),
    }
}
