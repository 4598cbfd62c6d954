//! `ethermem emulate`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ethermem_experiments::Error;
use ethermem_experiments::remote::emulate::{Request, once_table};
use ethermem_experiments::remote::{REPEATS, Share, repeats};
use ethermem_sim::output::TableStyle;

use super::network::NetworksArguments;
use super::run::Where;
use super::{Common, end, end_after};
use crate::failure::Failure;
use crate::files::Files;
use crate::terminal::runner;

const EXAMPLES: &str = "Examples:\n  \
    ethermem emulate --local 25% --latency-us 5 --bandwidth-gbps 40 -- python3 analysis.py\n  \
    ethermem emulate --grid --repeats 5 --out out/grid -- ./query\n  \
    ethermem emulate --local 25% --latency-from edm.parquet --fabric edm -- ./query\n  \
    ethermem emulate --once --local 64MiB --latency-us 5 -- redis-server\n\
    \n\
    The program runs once with all its memory local, and then, for each network and share,\n\
    several times with delays and without. The slowdown is the one over the other. It is within\n\
    5 % or not if its whole 95 % interval is, and undecided otherwise.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Private memory of the program that stays local: sizes, or fractions of its peak; several are
    /// all tried
    #[arg(long, value_name = "SIZE|PERCENT,...", value_delimiter = ',')]
    local: Vec<Share>,
    #[command(flatten)]
    networks: NetworksArguments,
    /// Try the latencies, rates and fractions of the OSDI'16 study, if none are given
    #[arg(long)]
    grid: bool,
    /// Least number of runs with delays, and of runs without
    #[arg(long, value_name = "COUNT", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(REPEATS))]
    repeats: u32,
    /// Largest number of them: more than --repeats where clock and waits do not tell if a slowdown
    /// is within 5 %, or have intervals wider than a quarter [default: 4 times the least; 1 of 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(REPEATS))]
    repeats_max: Option<u32>,
    /// Where this command, which serves the faults, and the threads that make them run, with delays
    /// and without: a fault is served soonest on one processor
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Where::Free)]
    placement: Where,
    /// Write a page of tables and figures into this folder: the study's, for this program
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Run once, with the delays, and report no slowdown: for a server, whose clients measure it. A
    /// fraction is then of what the program holds at the time
    #[arg(long, conflicts_with_all = ["grid", "repeats", "repeats_max", "out"])]
    once: bool,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    let files = arguments.networks.reading(Files::default());
    common.check(files.writing_page("--out", arguments.out.as_deref()))?;
    let request = Request {
        program: common.ran.request(),
        local: arguments.local.clone(),
        networks: arguments.networks.request(),
        grid: arguments.grid,
        placement: arguments.placement.into(),
        repeats: repeats(arguments.repeats, arguments.repeats_max)?,
        out: arguments.out.clone(),
    };
    if arguments.once {
        let (status, run) = request.once()?;
        return end_after(common.tell(&run, &once_table(&run, TableStyle::Plain)), status);
    }
    match request.run(&runner(None)) {
        Ok(report) => {
            common.tell(&report, &report.table(TableStyle::Plain))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(Error::Ended(status)) => end(status),
        Err(error) => Err(error.into()),
    }
}
