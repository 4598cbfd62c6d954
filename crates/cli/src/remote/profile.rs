//! `ethermem profile`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use ethermem_experiments::Error;
use ethermem_experiments::remote::profile::{Request, table};
use ethermem_experiments::remote::{Share, can_be_written, held};
use ethermem_pager::ProfileError;
use ethermem_sim::output::TableStyle;

use super::{Common, end, end_after};
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:\n  \
    ethermem profile --local 25% --out sort.parquet -- sort --parallel=2 big.txt\n  \
    ethermem profile --local 64MiB --report profile.json -- python3 analysis.py\n\
    \n\
    A share is one of the most that the program holds, which a first run finds out, unless --peak\n\
    says it. The exit code and all output are the program's.";

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
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check()?;
    can_be_written(&arguments.out)?;
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
