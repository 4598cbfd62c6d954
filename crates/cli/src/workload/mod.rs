//! `ethermem workload`: what messages there are, before any network carries them.

mod generate;
mod list;
mod show;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// List the size distributions that come with the program
    List(list::Arguments),
    /// Show sizes, tail, blocks per message and arrival rate of a workload
    Show(show::Arguments),
    /// Write the messages of a scenario to a trace file
    Generate(generate::Arguments),
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::List(arguments) => list::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        Command::Generate(arguments) => generate::run(arguments),
    }
}
