//! `ethermem bench`: measurements of operations on a pool.

mod micro;
mod ycsb;

use clap::Subcommand;

use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure one operation, by length and by number of operations in flight
    Micro(micro::Arguments),
    /// Run YCSB's workloads on pools
    Ycsb(Box<ycsb::Arguments>),
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::Micro(arguments) => micro::run(arguments),
        Command::Ycsb(arguments) => ycsb::run(arguments),
    }
}
