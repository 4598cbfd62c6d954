//! `ethermem run`.

use std::process::ExitCode;

use clap::Args;
use ethermem_experiments::remote::Share;
use ethermem_experiments::remote::run::Request;
use ethermem_sim::output::TableStyle;

use super::{Common, end_after};
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:\n  \
    ethermem run --pool 'udp://node:7400?key=analytics.key' --local 25% -- redis-server\n  \
    ethermem run --local 2GiB --report run.json -- python3 analysis.py\n\
    \n\
    The exit code and all output are the program's.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// URL of the pool for memory that is not local. Without it, that is this command's own memory
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Private memory of the program that stays local: a size, or a fraction of what it holds at
    /// the time
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "25%")]
    local: Share,
    #[command(flatten)]
    common: Common,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check()?;
    let request = Request {
        program: common.ran.request(),
        pool: arguments.pool.clone(),
        local: arguments.local,
    };
    let (report, status) = request.run()?;
    end_after(common.tell(&report, &report.table(TableStyle::Plain)), status)
}
