//! `ethermem profile`.

use std::path::PathBuf;
use std::process::ExitCode;

use bytesize::ByteSize;
use clap::Args;
use ethermem_pager::{Profile, ProfileError, measure_peak, profile};
use ethermem_sim::output::TextTable;

use super::{Common, Share, can_be_written, end, end_after, failed, held, left_out, size};
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
    /// Private memory of the program that stays local: a size, or a share of its peak
    #[arg(long, value_name = "SIZE|PERCENT", default_value = "25%")]
    local: Share,
    /// The most memory that the program holds, when it is known
    #[arg(long, value_name = "SIZE", value_parser = held)]
    peak: Option<ByteSize>,
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
    let local_bytes = match (arguments.local, arguments.peak) {
        (Share::Bytes(bytes), _) => bytes,
        (Share::Of(share), Some(ByteSize(peak))) => (peak as f64 * share) as u64,
        (Share::Of(share), None) => {
            let (peak, outcome) = measure_peak(&common.ran.program).map_err(failed)?;
            if !outcome.status.success() {
                return end(outcome.status);
            }
            (peak as f64 * share) as u64
        }
    };
    let prefetch = !common.ran.no_prefetch;
    match profile(&common.ran.program, local_bytes, prefetch, &arguments.out) {
        Ok((profile, status)) => end_after(common.tell(&profile, &table(&profile)), status),
        Err(ProfileError::Trace { error, status: Some(status) }) => {
            end_after(Err(Failure::input(error)), status)
        }
        Err(error) => Err(Failure::input(error)),
    }
}

fn table(profile: &Profile) -> TextTable<'static> {
    let counts = &profile.counts;
    let pages = [
        ("pages read for a waiting thread", counts.read_pages),
        ("pages read along with them", counts.prefetched_pages),
        ("pages written", counts.written_pages),
        ("pages that came back before they left", counts.rescued_pages),
    ];
    let mut rows = vec![
        vec!["duration".to_owned(), format!("{:.3} s", profile.duration_ns as f64 / 1e9)],
        vec!["held at most".to_owned(), size(profile.peak_bytes)],
        vec!["local at most".to_owned(), size(profile.local_peak_bytes)],
        vec!["remote reads".to_owned(), format!("{:.0} /s", profile.reads_per_second)],
        vec!["to and from remote memory".to_owned(), format!("{:.3} Gb/s", profile.swap_gbps)],
    ];
    rows.extend(pages.map(|(name, count)| vec![name.to_owned(), count.to_string()]));
    rows.extend(left_out(&profile.by_itself));
    TextTable {
        header: &["remote memory", "of this run"],
        text_columns: &[0],
        optional_columns: &[],
        rows,
    }
}
