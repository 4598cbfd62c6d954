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

/// A line for each way to a node that was chosen, once.
fn chosen<'r>(of: impl Iterator<Item = (&'r String, &'r Option<String>)>) -> String {
    let mut lines: Vec<String> = Vec::new();
    for (pool, choice) in of {
        let line = choice.as_ref().map(|choice| format!("{pool}: {choice}\n"));
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines.concat()
}

/// The command as it was typed.
fn typed() -> String {
    let words: Vec<String> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    shell_line(words.iter().map(String::as_str))
}
