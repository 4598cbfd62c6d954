//! `ethermem rtl`: the hardware itself, compiled and run.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use ethermem_bench::ycsb::Workload;
use ethermem_experiments::rtl::ycsb::{Outcome, RECORD_BYTES, Request, share, workload};
use ethermem_experiments::words::bytes_in;

use crate::failure::Failure;
use crate::output::Format;

#[derive(Subcommand)]
pub(crate) enum Command {
    /// Run a key-value store's operations on the RTL of a compute node, a switch and a memory node
    Ycsb(Arguments),
}

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem rtl ycsb --workload A --remote-share 0.5\n  \
    ethermem rtl ycsb --workload B --clients 8 --operations 20000 --format json\n  \
    ethermem rtl ycsb --workload F --operations 20 --fst waves.fst\n\
    \n\
    A compute node, a switch and a memory node run as compiled RTL at 25 Gb/s, joined by lines as\n\
    long as those of the published testbed; records are drawn as YCSB's zipfian. A read ends with\n\
    its last byte, a write when memory has it. Local operations take the DRAM's 82 ns. Beside\n\
    each is the same message on the simulator's EDM, alone: with several clients the difference\n\
    is what they wait for each other. The first run compiles the model, which takes minutes. It\n\
    runs in the repository and needs its tools (rtl/README.md).")]
pub(crate) struct Arguments {
    /// Core workload: A, B, C or F
    #[arg(long, value_name = "NAME", value_parser = workload)]
    workload: Workload,

    /// Fraction of the operations that go to the memory node
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    remote_share: f64,

    /// Number of operations, including local ones
    #[arg(long, value_name = "COUNT", default_value = "2000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    operations: u64,

    /// Number of remote operations in flight
    #[arg(long, value_name = "COUNT", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..=16))]
    clients: u64,

    /// Length of a read in bytes
    #[arg(long, value_name = "BYTES", default_value = "1024",
          value_parser = bytes_in(1..=RECORD_BYTES))]
    read_bytes: u64,

    /// Length of a write in bytes
    #[arg(long, value_name = "BYTES", default_value = "100",
          value_parser = bytes_in(1..=RECORD_BYTES))]
    write_bytes: u64,

    /// Seed of the operations
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,

    /// Path of the repository, if it is not the working directory or above it
    #[arg(long, value_name = "FOLDER")]
    rtl: Option<PathBuf>,

    /// Write the waves of all modules to this file, in FST; the first run with waves builds a
    /// separate model
    #[arg(long, value_name = "FILE")]
    fst: Option<PathBuf>,

    /// Format of the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    let Command::Ycsb(arguments) = command;
    let request = Request {
        workload: arguments.workload,
        remote_share: arguments.remote_share,
        operations: arguments.operations,
        clients: arguments.clients,
        read_bytes: arguments.read_bytes,
        write_bytes: arguments.write_bytes,
        seed: arguments.seed,
        rtl: arguments.rtl.clone(),
        fst: arguments.fst.clone(),
    };
    arguments.format.print(&request.run()?, Outcome::table)
}
