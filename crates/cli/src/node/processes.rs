//! `ethermem node processes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ethermem_experiments::operate::processes::table;
use ethermem_node::{AskError, ControlAnswer, ControlQuestion, ask};
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem node processes --control /run/ethermem/control\n  \
    ethermem node processes end 1/7 --control /run/ethermem/control")]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Path of the node's Unix socket: its --control
    #[arg(long, value_name = "PATH", global = true)]
    control: Option<PathBuf>,
    /// Format of the answer
    #[arg(long, value_name = "FORMAT", default_value = "table", global = true)]
    format: Format,
}

#[derive(Subcommand)]
enum Command {
    /// End a process: it ends at once, and the node frees its memory
    End(End),
}

#[derive(Args)]
struct End {
    /// Process to end: its tenant's number and its own, as listed
    #[arg(value_name = "TENANT/PROCESS", value_parser = id)]
    id: Id,
}

#[derive(Clone, Copy)]
struct Id {
    tenant: u16,
    process: u32,
}

/// A process that was ended.
#[derive(Serialize)]
struct Ended {
    tenant: u16,
    process: u32,
    ended: bool,
}

fn id(text: &str) -> Result<Id, String> {
    let numbers = text.split_once('/').and_then(|(tenant, process)| {
        Some(Id { tenant: tenant.parse().ok()?, process: process.parse().ok()? })
    });
    numbers.ok_or_else(|| "must be TENANT/PROCESS, two numbers, as in 1/7".to_owned())
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    match &arguments.command {
        None => match asked(arguments, ControlQuestion::Processes {})? {
            ControlAnswer::Processes(found) => arguments.format.print(&found[..], table),
            _ => Err(mixed_up()),
        },
        Some(Command::End(End { id: Id { tenant, process } })) => {
            let (tenant, process) = (*tenant, *process);
            match asked(arguments, ControlQuestion::End { tenant, process })? {
                ControlAnswer::Ended(true) => {
                    let ended = Ended { tenant, process, ended: true };
                    arguments.format.print(&ended, |_, _| format!("ended {tenant}/{process}\n"))
                }
                ControlAnswer::Ended(false) => Err(Failure::input(format!(
                    "{tenant}/{process}: no such process: it must be one that lives"
                ))),
                _ => Err(mixed_up()),
            }
        }
    }
}

fn asked(arguments: &Arguments, question: ControlQuestion) -> Result<ControlAnswer, Failure> {
    let path = arguments.control.as_deref().ok_or_else(|| {
        Failure::input("--control is missing: it must be the path of the node's --control")
    })?;
    let failed = |problem: &dyn std::fmt::Display| {
        Failure::input(format!("--control {}: {problem}", path.display()))
    };
    match ask(path, question) {
        Ok(ControlAnswer::Refused(problem)) => Err(failed(&problem)),
        Ok(answer) => Ok(answer),
        Err(error @ (AskError::Silent | AskError::Ended | AskError::Malformed(_)))
            if matches!(question, ControlQuestion::End { .. }) =>
        {
            Err(failed(&format!("{error}; the process may be ended or not: list them")))
        }
        Err(error) => Err(failed(&error)),
    }
}

fn mixed_up() -> Failure {
    Failure::input("--control: the answer is to another question: is it a node of this version?")
}
