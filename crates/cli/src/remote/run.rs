//! `ethermem run`.

use std::process::ExitCode;

use clap::Args;
use ethermem::Pool;
use ethermem_pager::{Counts, Nothing, Options, run as run_program};
use ethermem_sim::output::TextTable;
use serde::Serialize;

use super::{Common, Share, end_after, failed, left_out, size};
use crate::failure::Failure;

const EXAMPLES: &str = "Examples:\n  \
    ethermem run --pool 'udp://node:7400?key=analytics.key' --local 25% -- redis-server\n  \
    ethermem run --local 2GiB --report run.json -- python3 analysis.py\n\
    \n\
    The exit code and all output are the program's.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Where memory that is not local lives: the URL of a pool. Without it, in this command's own
    /// memory
    #[arg(long, value_name = "URL")]
    pool: Option<String>,
    /// Private memory of the program that stays local: a size, or a share of what it holds at the
    /// time
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "25%")]
    local: Share,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
struct Report {
    duration_ns: u64,
    pages: Counts,
    by_itself: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    choice: Option<String>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check()?;
    ethermem_pager::hold_signals().map_err(failed)?;
    let pool = arguments.pool.as_deref().map(Pool::open).transpose().map_err(Failure::input)?;
    if pool.as_ref().is_some_and(Pool::is_simulated) {
        let allowed = "a program runs in real time; `ethermem emulate` gives it a network's delays";
        return Err(Failure::input(format!("--pool: a simulated pool: {allowed}")));
    }
    let choice = pool.as_ref().and_then(Pool::choice).map(str::to_owned);
    let local = arguments.local.at_the_time();
    let options = Options { prefetch: !common.ran.no_prefetch, pool, ..Options::new(local) };
    let outcome = run_program(&common.ran.program, &options, &mut Nothing).map_err(failed)?;
    let counts = outcome.counts;
    let duration_ns = u64::try_from(outcome.elapsed.as_nanos()).unwrap_or(u64::MAX);
    let report = Report { duration_ns, pages: counts, by_itself: outcome.by_itself, choice };
    let mut rows = vec![
        vec!["held at most".to_owned(), size(counts.held_pages * 4096)],
        vec!["local at most".to_owned(), size(counts.peak_pages * 4096)],
        vec!["pages read for a waiting thread".to_owned(), counts.read_pages.to_string()],
        vec!["pages read along with them".to_owned(), counts.prefetched_pages.to_string()],
        vec!["pages written".to_owned(), counts.written_pages.to_string()],
    ];
    rows.extend(left_out(&report.by_itself));
    rows.extend(report.choice.iter().map(|choice| vec!["the node".to_owned(), choice.clone()]));
    let header = ["remote memory", "of this run"];
    let table = TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows };
    end_after(common.tell(&report, &table), outcome.status)
}
