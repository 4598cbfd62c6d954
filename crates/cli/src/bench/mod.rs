//! `ethermem bench`: how long operations on a pool take.

mod figure;
mod micro;
mod ycsb;

use clap::Subcommand;
use ethermem_bench::BenchError;
use ethermem_sim::run::shell_line;

use crate::failure::Failure;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Measure one operation, by length and by how many are under way
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

/// What a measurement's failure is to the person who asked for it.
fn failure(error: &BenchError) -> Failure {
    match error {
        BenchError::Interrupted => Failure::Interrupted("while measuring".to_owned()),
        error if error.is_defect() => Failure::Broken { what: error.to_string(), command: typed() },
        error => Failure::input(error),
    }
}

/// The command as it was typed.
fn typed() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    shell_line(words.iter().map(String::as_str))
}
