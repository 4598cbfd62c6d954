//! `ethermem run`.

use std::process::ExitCode;

use clap::{Args, ValueEnum};
use ethermem_experiments::remote::Share;
use ethermem_experiments::remote::run::Request;
use ethermem_pager::Placement;
use ethermem_sim::output::TableStyle;

use super::{Common, end_after};
use crate::failure::Failure;
use crate::files::Files;

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
    /// the time, but at least 16 MiB
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "25%")]
    local: Share,
    /// Where this command, which serves the faults, and the threads that make them run
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Where::Measured)]
    placement: Where,
    #[command(flatten)]
    common: Common,
}

/// Places of the pager and the program.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Where {
    /// On one processor while that serves more faults in the same time
    Measured,
    /// Wherever the kernel puts them
    Free,
    /// On one processor while few threads make most faults
    Together,
}

impl From<Where> for Placement {
    fn from(place: Where) -> Placement {
        match place {
            Where::Measured => Placement::Measured,
            Where::Free => Placement::Free,
            Where::Together => Placement::Together,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check(Files::default())?;
    let request = Request {
        program: common.ran.request(),
        pool: arguments.pool.clone(),
        local: arguments.local,
        placement: arguments.placement.into(),
    };
    let (report, status) = request.run()?;
    end_after(common.tell(&report, &report.table(TableStyle::Plain)), status)
}
