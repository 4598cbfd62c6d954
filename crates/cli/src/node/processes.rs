//! `ethermem node processes`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ethermem_experiments::operate::processes::{Ended, Id, end, list, table};

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
    #[arg(value_name = "TENANT/PROCESS")]
    id: Id,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let (control, format) = (arguments.control.as_deref(), arguments.format);
    match &arguments.command {
        None => format.print(&list(control)?[..], table),
        Some(Command::End(End { id })) => format.print(&end(control, *id)?, Ended::line),
    }
}
