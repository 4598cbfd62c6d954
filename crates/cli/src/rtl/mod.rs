//! `ethermem rtl`: the hardware itself, compiled and run.

pub(crate) mod flow;
pub(crate) mod stages;
mod ycsb;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a key-value store's operations on the RTL of a compute node, a switch and a memory node
    Ycsb(ycsb::Arguments),
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Ycsb(arguments) => ycsb::run(arguments),
    }
}
