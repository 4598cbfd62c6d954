//! `ethermem rack`: programs whose sockets pass their bytes through shared memory, and over all
//! NICs between racks.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Subcommand};
use ethermem_experiments::remote::can_be_written;
use ethermem_rack::Config;
use ethermem_sim::output::to_json;

use super::{end_after, show};
use crate::failure::Failure;
use crate::files::Files;
use crate::interrupt;
use crate::output::say;

/// Time that the process of NICs has to end.
const PATIENCE: Duration = Duration::from_secs(2);

const EXAMPLES: &str = "Example:\n  \
    ethermem rack run --config rack.toml -- redis-server --bind 127.0.0.1\n  \
    ethermem rack run --config rack.toml -- redis-benchmark -h 127.0.0.1\n\
    \n\
    The exit code and all output are the program's.";

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a program in a rack: its connections to other programs of the rack use memory
    Run(Arguments),
    /// Carry connections to programs of other racks over all NICs of this rack
    Nics(NicsArguments),
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

const NICS_EXAMPLES: &str = "Example:\n  \
    ethermem rack nics --config rack.toml\n\
    \n\
    It runs until SIGINT or SIGTERM. Its own connections to programs of the rack use memory.";

#[derive(Args)]
#[command(after_help = NICS_EXAMPLES)]
pub(crate) struct NicsArguments {
    /// The rack's file: its nodes with their NICs, and the other racks
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// This process runs in the rack already
    #[arg(long, hide = true)]
    inside: bool,
}

pub(crate) fn run(command: &Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => run_program(arguments),
        Command::Nics(arguments) => nics(arguments),
    }
}

/// Carries connections between racks, in a process of the rack.
fn nics(arguments: &NicsArguments) -> Result<ExitCode, Failure> {
    let config = Config::read(&arguments.config).map_err(Failure::input)?;
    if config.others.is_empty() {
        let path = arguments.config.display();
        return Err(Failure::input(format!("{path}: no other rack: must have a `[[rack]]`")));
    }
    if arguments.inside {
        interrupt::listen();
        interrupt::patience(PATIENCE);
        let mut tell = |notice| say(format_args!("{notice}"));
        ethermem_rack::nics::serve(&config, interrupt::flag(), &mut tell)
            .map_err(Failure::input)?;
        interrupt::is_over();
        return Ok(ExitCode::SUCCESS);
    }
    let own = std::env::current_exe().map_err(Failure::input)?;
    let words = ["rack", "nics", "--inside", "--config"].map(OsString::from);
    let words = [&[own.into()][..], &words, &[arguments.config.clone().into()]].concat();
    // The process itself must reach the other racks by single NICs.
    let config = Config { others: Vec::new(), ..config };
    let (_, status) = ethermem_rack::run(&config, &words).map_err(Failure::input)?;
    super::end(status)
}

fn run_program(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let files = Files::default().reading("also --config", Some(&arguments.config));
    files.writing("--report", arguments.report.as_deref()).check()?;
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
