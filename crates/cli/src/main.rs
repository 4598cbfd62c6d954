//! The `ethermem` command: parses arguments, calls the libraries, prints.
//!
//! Results go to the standard output, everything else to the standard error. The exit code is 0 on
//! success, and 2 when an argument or a file cannot be used (one line says what, where and what is
//! allowed). It is 1 when an invariant is violated, and 130 after Ctrl-C. The libraries compute
//! everything; this crate has only arguments, threads, progress and files.

mod bench;
mod capacity;
mod compare;
mod ddc;
#[cfg(feature = "serve")]
mod doctor;
mod failure;
mod files;
mod interrupt;
mod keygen;
#[cfg(feature = "serve")]
mod kv;
mod latency;
mod lists;
#[cfg(feature = "serve")]
mod logs;
mod manual;
#[cfg(feature = "serve")]
mod node;
mod output;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod remote;
mod replay;
mod replay_lines;
mod report;
mod rtl;
mod selection;
mod sim;
mod sweep;
mod terminal;
mod tree;
mod value;
mod workload;

use std::collections::HashSet;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

/// Memory over Ethernet, simulated: latency, slowdown and throughput of remote memory.
#[derive(Parser)]
#[command(
    name = "ethermem",
    version = env!("ETHERMEM_VERSION"),
    propagate_version = true,
    max_term_width = 100,
    after_help = "Exit codes: 0 done, 2 bad input, 1 a broken invariant, 130 interrupted.\n\
                  `ethermem help COMMAND` shows examples of each command."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the latency of one unloaded message, stage by stage
    Latency(latency::Arguments),
    /// Run a scenario or a trace on one fabric
    Sim(sim::Arguments),
    /// Run the same messages on several fabrics, side by side
    Compare(compare::Arguments),
    /// Find the load that each fabric sustains, and its latency at equal goodput and at equal share
    Capacity(capacity::Arguments),
    /// Run a scenario with keys varied, on several fabrics and seeds; continues after a kill
    Sweep(sweep::Arguments),
    /// Replay programs' accesses to remote memory on fabrics, in many clusters of blades
    Replay(replay::Arguments),
    /// Replay a program's cache lines on fabrics, through caches and prefetchers
    ReplayLines(replay_lines::Arguments),
    /// Inspect workloads, or write one as a trace
    #[command(subcommand)]
    Workload(workload::Command),
    /// Run a program with a part of its memory remote
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Run(remote::run::Arguments),
    /// Record a program's accesses to remote memory
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Profile(remote::profile::Arguments),
    /// Estimate the cost of a network for a program whose memory is remote
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Emulate(remote::emulate::Arguments),
    /// Estimate the cost of every fabric for a program: profile, replay, emulate, one page
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    Study(remote::study::Arguments),
    /// Run programs whose sockets pass their bytes through shared memory
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    #[command(subcommand)]
    Rack(remote::rack::Command),
    /// Serve this machine's memory to others
    #[cfg(feature = "serve")]
    Node(node::Arguments),
    /// Report properties of this machine that cost a memory node or its clients latency
    #[cfg(feature = "serve")]
    Doctor(doctor::Arguments),
    /// Make a key for a tenant of a memory node
    Keygen(keygen::Arguments),
    /// Run the hardware itself, compiled to a program
    #[command(subcommand)]
    Rtl(rtl::Command),
    /// List the fabrics of the simulator
    Fabrics(lists::Arguments),
    /// List the limits of requests
    #[cfg(feature = "serve")]
    Limits(lists::Arguments),
    /// Measure pools as applications use them: single operations, YCSB
    #[command(subcommand)]
    Bench(bench::Command),
    /// Run every workload on EDM and its references, and write a page of figures
    Report(report::Arguments),
    /// Serve a key-value store in remote memory to clients of Redis
    #[cfg(feature = "serve")]
    Kv(kv::Arguments),
    /// Print the JSON Schema of a scenario, or of results
    Schema(manual::schema::Arguments),
    /// Print a shell's completions of commands and arguments
    Completions(manual::completions::Arguments),
    /// Write a manual page for each command
    Man(manual::man::Arguments),
    /// Print every command and its arguments as JSON, for programs that check or document them
    #[command(name = "command-tree", hide = true)]
    Tree,
}

/// Flags of equal meaning with different names. Each command takes both names.
const TWINS: [[&str; 2]; 2] = [["fabric", "fabrics"], ["metrics-listen", "metrics-address"]];

fn taking_twin(argument: Arg) -> Arg {
    let twin = TWINS.iter().find_map(|[one, other]| match argument.get_long() {
        Some(long) if long == *one => Some(*other),
        Some(long) if long == *other => Some(*one),
        _ => None,
    });
    twin.into_iter().fold(argument, Arg::alias)
}

/// Commands that this build leaves out; the complete program has them.
const NOT_HERE: &[&str] =
    if cfg!(feature = "serve") { &[] } else { &["node", "kv", "doctor", "limits"] };

/// Lets an option take numbers below 0 as values, which it then refuses with its own error.
fn taking_negative_numbers(argument: Arg) -> Arg {
    let takes = argument.get_action().takes_values();
    argument.allow_negative_numbers(takes)
}

/// The long help of every `--pool` lists the table of schemes.
fn telling_schemes(argument: Arg) -> Arg {
    if argument.get_long() != Some("pool") {
        return argument;
    }
    let help = argument.get_help().map(ToString::to_string).unwrap_or_default();
    argument.long_help(format!("{help}\n\n{}", ethermem::schemes_text(&ethermem::SCHEMES)))
}

fn adapted(command: clap::Command) -> clap::Command {
    let adapt = |argument| telling_schemes(taking_twin(taking_negative_numbers(argument)));
    command.mut_args(adapt).mut_subcommands(adapted)
}

fn command() -> clap::Command {
    adapted(Cli::command())
}

/// The first value that a list with commas has twice: what it stands for would run twice.
fn given_twice(command: &clap::Command, matches: &ArgMatches) -> Option<String> {
    if let Some((name, matches)) = matches.subcommand() {
        return given_twice(command.find_subcommand(name)?, matches);
    }
    let mut lists = command.get_arguments().filter(|it| it.get_value_delimiter() == Some(','));
    lists.find_map(|list| {
        let values = matches.try_get_raw(list.get_id().as_str()).ok()??;
        let mut known = HashSet::new();
        let twice = values.into_iter().find(|&value| !known.insert(value))?;
        let (flag, value) = (list.get_long()?, twice.display());
        Some(format!("--{flag}: `{value}` is given twice: must be given once"))
    })
}

fn parse() -> Result<Cli, clap::Error> {
    let mut command = command();
    let matches = command.try_get_matches_from_mut(std::env::args_os())?;
    match given_twice(&command, &matches) {
        Some(problem) => Err(command.error(ErrorKind::ValueValidation, problem)),
        None => Cli::from_arg_matches(&matches),
    }
}

fn main() -> ExitCode {
    let cli = match parse() {
        Ok(cli) => cli,
        Err(error) => return failure::report_usage(&error, NOT_HERE),
    };
    // Programs receive their own signals, and these commands return the programs' exit codes.
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    match &cli.command {
        Command::Run(arguments) => return ended(remote::run::run(arguments)),
        Command::Profile(arguments) => return ended(remote::profile::run(arguments)),
        Command::Emulate(arguments) => return ended(remote::emulate::run(arguments)),
        Command::Study(arguments) => return ended(remote::study::run(arguments)),
        Command::Rack(command) => return ended(remote::rack::run(command)),
        _ => {}
    }
    interrupt::listen();
    let done = match cli.command {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        Command::Run(_)
        | Command::Profile(_)
        | Command::Emulate(_)
        | Command::Study(_)
        | Command::Rack(_) => unreachable!("done above"),
        Command::Latency(arguments) => latency::run(&arguments),
        Command::Sim(arguments) => sim::run(&arguments),
        Command::Compare(arguments) => compare::run(&arguments),
        Command::Capacity(arguments) => capacity::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Replay(arguments) => replay::run(&arguments),
        Command::ReplayLines(arguments) => replay_lines::run(&arguments),
        Command::Workload(command) => workload::run(&command),
        #[cfg(feature = "serve")]
        Command::Node(arguments) => node::run(&arguments),
        #[cfg(feature = "serve")]
        Command::Doctor(arguments) => doctor::run(&arguments),
        Command::Keygen(arguments) => keygen::run(&arguments),
        Command::Rtl(command) => rtl::run(&command),
        Command::Fabrics(arguments) => lists::fabrics(&arguments),
        #[cfg(feature = "serve")]
        Command::Limits(arguments) => lists::limits(&arguments),
        Command::Bench(command) => bench::run(&command),
        Command::Report(arguments) => report::run(&arguments),
        #[cfg(feature = "serve")]
        Command::Kv(arguments) => kv::run(&arguments),
        Command::Schema(arguments) => manual::schema::run(&arguments),
        Command::Completions(arguments) => manual::completions::run(&arguments, &command()),
        Command::Man(arguments) => manual::man::run(&arguments, command()),
        Command::Tree => tree::run(&command()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn ended(code: Result<ExitCode, failure::Failure>) -> ExitCode {
    code.unwrap_or_else(|failure| failure.report())
}
