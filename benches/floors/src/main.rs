//! What this machine's network costs by itself, and what others make of it: the floors that the
//! memory node is held against, and its peers, measured in turn in one run.
//!
//! It talks to loopback addresses alone, or, for the ring, to an interface that it is told.

mod catalogue;
mod long;
mod measure;
mod neighbours;
mod probes;
mod report;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand, value_parser};

use crate::catalogue::Case;
use crate::probes::node::NodeKind;
use crate::probes::relay::Loss;
use crate::probes::udp::{Blocking, Exchange};
use crate::probes::{Cpus, ProbeError};
use crate::report::{Line, Report};

#[derive(Parser)]
#[command(about = "Floors and peers of the memory node, measured in turn on this machine")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure, and print a table.
    Run(RunArguments),
    /// Measure a read of 64 B where processors are shared, beside a blocking exchange.
    Neighbours {
        /// Rounds: in each, everything is measured once, in turn.
        #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Samples of a round.
        #[arg(long, default_value_t = 5_000)]
        #[arg(value_parser = value_parser!(u32).range(200..=10_000_000))]
        samples: u32,
        /// The processors: the first alone, then both.
        #[arg(long, default_value_t = 0)]
        client_cpu: usize,
        #[arg(long, default_value_t = 1)]
        server_cpu: usize,
        /// Also write everything as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Measure reads and writes of 64 KiB to 16 MiB, beside a TCP exchange of the same bytes.
    Long {
        /// Rounds: in each, everything is measured once, in turn.
        #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..=1000))]
        rounds: u32,
        /// Bytes that each measurement moves, at least four operations.
        #[arg(long, default_value_t = 128 << 20)]
        #[arg(value_parser = value_parser!(u64).range(1 << 20..=1 << 36))]
        volume_bytes: u64,
        /// Only rows that have this in their name; may be repeated.
        #[arg(long, value_name = "TEXT")]
        only: Vec<String>,
        /// The processors: the first alone, then both.
        #[arg(long, default_value_t = 0)]
        client_cpu: usize,
        #[arg(long, default_value_t = 1)]
        server_cpu: usize,
        /// Also write everything as JSON.
        #[arg(long, value_name = "FILE")]
        json: Option<PathBuf>,
    },
    /// Name what can be measured.
    List,
    /// A busy program.
    #[command(hide = true)]
    Burn,
    /// The other end of a blocking exchange.
    #[command(hide = true)]
    ServeBlocking {
        #[arg(long)]
        to: SocketAddr,
    },
    /// The other end of a TCP exchange.
    #[command(hide = true)]
    ServeStream {
        #[arg(long)]
        to: SocketAddr,
        #[arg(long)]
        memory_bytes: usize,
    },
    /// The other end of a UDP floor.
    #[command(hide = true)]
    ServeUdp {
        #[command(flatten)]
        exchange: Exchange,
        #[arg(long)]
        cpu: usize,
    },
    /// The memory node.
    #[command(hide = true)]
    ServeNode {
        #[arg(long)]
        cpu: Option<usize>,
        #[arg(long)]
        encrypted: bool,
        #[arg(long)]
        ring: bool,
        #[arg(long, requires = "seed", value_parser = value_parser!(u32).range(..=1_000_000))]
        loss_ppm: Option<u32>,
        #[arg(long)]
        seed: Option<u64>,
    },
}

#[derive(clap::Args)]
struct RunArguments {
    /// Rounds: in each, everything is measured once, in turn.
    #[arg(long, default_value_t = 7, value_parser = value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Samples of a round, fewer where one takes long.
    #[arg(long, default_value_t = 20_000)]
    #[arg(value_parser = value_parser!(u32).range(200..=10_000_000))]
    samples: u32,
    /// Only what has this in its name, and the floors of it; may be repeated.
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// CPU of clients.
    #[arg(long, default_value_t = 0)]
    client_cpu: usize,
    /// CPU of servers.
    #[arg(long, default_value_t = 1)]
    server_cpu: usize,
    /// Interface of the ring.
    #[arg(long, default_value = "lo")]
    interface: String,
    /// Also write everything as JSON.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match arguments.command {
        Command::Run(run) => measure(&run),
        Command::List => {
            catalogue::all("lo").iter().for_each(|case| println!("{}", case.name));
            Ok(ExitCode::SUCCESS)
        }
        Command::Neighbours { rounds, samples, client_cpu, server_cpu, json } => {
            let cpus = Cpus { client: client_cpu, server: server_cpu };
            neighbours(cpus, rounds, samples, json.as_deref())
        }
        Command::Long { rounds, volume_bytes, only, client_cpu, server_cpu, json } => {
            let cpus = Cpus { client: client_cpu, server: server_cpu };
            long(cpus, rounds, volume_bytes, &only, json.as_deref())
        }
        Command::ServeStream { to, memory_bytes } => {
            probes::stream::serve(to, memory_bytes).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::Burn => neighbours::burn().map(|()| ExitCode::SUCCESS).map_err(Into::into),
        Command::ServeBlocking { to } => {
            Blocking::serve(to).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::ServeUdp { exchange, cpu } => {
            probes::udp::serve(exchange, cpu).map(|()| ExitCode::SUCCESS).map_err(Into::into)
        }
        Command::ServeNode { cpu, encrypted, ring, loss_ppm, seed } => {
            let loss = loss_ppm.zip(seed).map(|(ppm, seed)| Loss { ppm, seed });
            probes::node::serve(cpu, NodeKind { encrypted, loss, ring })
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn neighbours(
    cpus: Cpus,
    rounds: u32,
    samples: u32,
    json: Option<&Path>,
) -> Result<ExitCode, Box<dyn Error>> {
    let rows = neighbours::measure(cpus, rounds, samples)?;
    println!("{}", neighbours::table(&rows));
    write_json(json, &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn long(
    cpus: Cpus,
    rounds: u32,
    volume_bytes: u64,
    only: &[String],
    json: Option<&Path>,
) -> Result<ExitCode, Box<dyn Error>> {
    let rows = long::rows(only);
    if rows.is_empty() {
        eprintln!("error: --only {only:?} is in no row; without it, all are measured and named");
        return Ok(ExitCode::from(2));
    }
    let rows = long::measure(rows, cpus, rounds, volume_bytes)?;
    println!("{}", long::table(&rows));
    write_json(json, &rows)?;
    Ok(ExitCode::SUCCESS)
}

fn write_json(path: Option<&Path>, found: &impl serde::Serialize) -> Result<(), Box<dyn Error>> {
    let Some(path) = path else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.map_or(Ok(()), std::fs::create_dir_all)?;
    let mut file = std::fs::File::create(path)?;
    serde_json::to_writer_pretty(&mut file, found)?;
    writeln!(file)?;
    Ok(())
}

fn measure(run: &RunArguments) -> Result<ExitCode, Box<dyn Error>> {
    let cases = chosen(catalogue::all(&run.interface), &run.only);
    if cases.is_empty() {
        eprintln!("error: --only {:?} is in no name; `list` prints them", run.only);
        return Ok(ExitCode::from(2));
    }
    let cpus = Cpus { client: run.client_cpu, server: run.server_cpu };
    if cpus.client == cpus.server {
        eprintln!("error: --client-cpu and --server-cpu are both {}: both poll", cpus.client);
        return Ok(ExitCode::from(2));
    }
    let mut report = Report {
        kernel: std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned(),
        client_cpu: cpus.client,
        server_cpu: cpus.server,
        rounds: run.rounds,
        samples: run.samples,
        lines: Vec::new(),
    };
    report.lines =
        cases.iter().map(|case| Line::new(case.name.clone(), case.floor.clone())).collect();
    let mut failed = false;
    for round in 1..=run.rounds {
        eprint!("\rround {round} of {}", run.rounds);
        for (case, line) in cases.iter().zip(&mut report.lines) {
            failed |= measure_once(case, line, cpus, run.samples);
        }
    }
    eprintln!();
    report.summarise();
    println!("{}", report.table());
    write_json(run.json.as_deref(), &report)?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns true if the measurement failed. A case that cannot be measured here is reported once and
/// left out.
fn measure_once(case: &Case, line: &mut Line, cpus: Cpus, samples: u32) -> bool {
    if line.skipped.is_some() {
        return false;
    }
    match case.probe.round(cpus, (samples / case.samples_divisor).max(1)) {
        Ok(round) => line.rounds.push(Some(round)),
        Err(ProbeError::Lacking(reason)) => {
            eprintln!("\nSKIPPED: {}: {reason}", case.name);
            line.skipped = Some(reason);
        }
        Err(ProbeError::Failed(reason)) => {
            eprintln!("\nerror: {}: {reason}", case.name);
            line.rounds.push(None);
            return true;
        }
    }
    false
}

/// Those that are named, and their floors.
fn chosen(cases: Vec<Case>, only: &[String]) -> Vec<Case> {
    let named = |case: &Case| only.is_empty() || only.iter().any(|text| case.name.contains(text));
    let floors: Vec<String> =
        cases.iter().filter(|case| named(case)).filter_map(|case| case.floor.clone()).collect();
    cases.into_iter().filter(|case| named(case) || floors.contains(&case.name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_chosen_brings_its_floor() {
        let names = |only: &str| -> Vec<String> {
            let cases = chosen(catalogue::all("lo"), &[only.to_owned()]);
            cases.into_iter().map(|case| case.name).collect()
        };
        assert_eq!(
            names("benchmark GET 4096"),
            ["F: udp, 64 -> 4096 B, window 64", "redis-benchmark GET 4096 B, pipeline 16"]
        );
        assert!(names("no such thing").is_empty());
    }
}
