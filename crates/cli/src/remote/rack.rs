//! `ethermem rack`: programs whose sockets pass their bytes through shared memory.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use ethermem_experiments::remote::can_be_written;
use ethermem_rack::Config;
use ethermem_sim::output::to_json;

use super::{end_after, show};
use crate::failure::Failure;

const EXAMPLES: &str = "Example:\n  \
    ethermem rack run --config rack.toml -- redis-server --bind 127.0.0.1\n  \
    ethermem rack run --config rack.toml -- redis-benchmark -h 127.0.0.1\n\
    \n\
    The exit code and all output are the program's.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program in a rack: its connections to other programs of the rack use memory
    Run(Arguments),
}

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// The rack's file: its name, its nodes, its memory
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// The node that the program runs on; it must be in the file
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Write the report to this file, as JSON
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    let Command::Run(arguments) = command;
    let config = Config::read(&arguments.config).map_err(Failure::input)?;
    if let Some(name) = &arguments.node {
        config.node(name).map_err(Failure::input)?;
    }
    if let Some(path) = &arguments.report {
        can_be_written(path)?;
    }
    let (report, status) =
        ethermem_rack::run(&config, &arguments.program).map_err(Failure::input)?;
    let told = arguments.report.as_ref().map_or(Ok(()), |path| {
        let written = std::fs::write(path, to_json(&report));
        written.map_err(|error| Failure::input(format!("cannot write {}: {error}", path.display())))
    });
    show(&report.table());
    end_after(told, status)
}
