//! `ethermem profile`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ethermem_experiments::Error;
use ethermem_experiments::remote::lines::{self, RECORDS};
use ethermem_experiments::remote::profile::{Request, table};
use ethermem_experiments::remote::{Share, can_be_written, held};
use ethermem_lines::{Geometry, Levels};
use ethermem_pager::{LineOptions, LineProfileError, ProfileError};
use ethermem_sim::output::TableStyle;

use super::{Common, end, end_after};
use crate::failure::Failure;
use crate::files::Files;

const EXAMPLES: &str = "Examples:\n  \
    ethermem profile --local 25% --out sort.parquet -- sort --parallel=2 big.txt\n  \
    ethermem profile --local 64MiB --report profile.json -- python3 analysis.py\n  \
    ethermem profile --lines --out lines.parquet -- sort small.txt\n\
    \n\
    A share is one of the most that the program holds, which a first run finds out, unless --peak\n\
    says it. The exit code and all output are the program's.\n\
    \n\
    --lines runs the program under valgrind, a thousand times slower or more. Its loads and\n\
    stores go through a model of three caches of 64 B lines; what they read from memory and write\n\
    to it is the trace. Programs that it executes in turn are not traced:\n\
    docs/how-to/replay-lines.md.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Private memory of the program that stays local: a size, or a fraction of its peak
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "25%")]
    local: Share,
    /// Peak memory of the program, if it is known
    #[arg(long, value_name = "SIZE", value_parser = held)]
    peak: Option<u64>,
    /// Write the trace of remote accesses to this file
    #[arg(long, value_name = "FILE", default_value = "profile.parquet")]
    out: PathBuf,
    /// Record the cache lines that the program reads from memory and writes to it, instead of pages
    #[arg(long, conflicts_with_all = ["local", "peak", "no_prefetch"])]
    lines: bool,
    #[command(flatten)]
    caches: Caches,
    #[command(flatten)]
    common: Common,
}

/// Options of recording lines.
#[derive(Args)]
struct Caches {
    /// First cache: its size and ways
    #[arg(long, value_name = "SIZE/WAYS", requires = "lines",
        default_value_t = Levels::default().0[0])]
    l1: Geometry,
    /// Second cache
    #[arg(long, value_name = "SIZE/WAYS", requires = "lines",
        default_value_t = Levels::default().0[1])]
    l2: Geometry,
    /// Last cache, in front of the memory
    #[arg(long, value_name = "SIZE/WAYS", requires = "lines",
        default_value_t = Levels::default().0[2])]
    llc: Geometry,
    /// Largest number of accesses in the trace; the run goes on, and the rest is counted
    #[arg(long, value_name = "COUNT", requires = "lines", default_value = "10000000",
        value_parser = clap::value_parser!(u64).range(RECORDS))]
    records: u64,
    /// Instructions at the start that only fill the caches
    #[arg(long, value_name = "COUNT", requires = "lines", default_value_t = 0)]
    skip_instructions: u64,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check(Files::default().writing("--out", Some(&arguments.out)))?;
    can_be_written(&arguments.out)?;
    if arguments.lines {
        return run_lines(arguments);
    }
    let request = Request {
        program: common.ran.request(),
        local: arguments.local,
        peak_bytes: arguments.peak,
        out: arguments.out.clone(),
    };
    match request.run() {
        Ok((profile, status)) => {
            end_after(common.tell(&profile, &table(&profile, TableStyle::Plain)), status)
        }
        Err(Error::Ended(status)) => end(status),
        Err(Error::Profile(ProfileError::Trace { error, status: Some(status) })) => {
            end_after(Err(Failure::input(error)), status)
        }
        Err(error) => Err(error.into()),
    }
}

fn run_lines(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let Caches { l1, l2, llc, records, skip_instructions } = arguments.caches;
    let levels = Levels([l1, l2, llc]);
    let request = lines::Request {
        program: arguments.common.ran.request().words,
        options: LineOptions { levels, records_max: records, skip_instructions },
        out: arguments.out.clone(),
    };
    match request.run() {
        Ok((profile, status)) => {
            let table = lines::table(&profile, TableStyle::Plain);
            end_after(arguments.common.tell(&profile, &table), status)
        }
        Err(Error::LineProfile(LineProfileError::Trace { error, status: Some(status) })) => {
            end_after(Err(Failure::input(error)), status)
        }
        Err(error) => Err(error.into()),
    }
}
