//! `ethermem emulate`.

use std::path::PathBuf;
use std::process::ExitCode;

use bytesize::ByteSize;
use clap::Args;
use ethermem_pager::{Emulated, Emulation, Estimate, emulate, emulate_once, measure_peak, shown};
use ethermem_sim::output::TextTable;
use serde::Serialize;

use super::network::{Networks, Tried};
use super::pictures::interval;
use super::{Common, Share, end, end_after, failed, grid_page};
use crate::failure::Failure;
use crate::folder::Folder;

const EXAMPLES: &str = "Examples:\n  \
    ethermem emulate --local 25% --latency-us 5 --bandwidth-gbps 40 -- python3 analysis.py\n  \
    ethermem emulate --grid --repeats 5 --out out/grid -- ./query\n  \
    ethermem emulate --local 25% --latency-from edm.parquet --fabric edm -- ./query\n  \
    ethermem emulate --once --local 64MiB --latency-us 5 -- redis-server\n\
    \n\
    The program runs once with all its memory local, and then, for each network and share, so\n\
    many times with delays and without. The slowdown is the one over the other.";

/// The paper's shares (OSDI'16, Figure 4).
const GRID_SHARES: [f64; 5] = [0.10, 0.25, 0.50, 0.75, 1.0];
/// The loss that the paper lets a network cost (OSDI'16, Table 3).
pub(super) const LOSS_MAX: f64 = 1.05;

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Private memory of the program that stays local: sizes, or shares of its peak; several are
    /// all tried
    #[arg(long, value_name = "SIZE|PERCENT,...", value_delimiter = ',')]
    local: Vec<Share>,
    #[command(flatten)]
    networks: Networks,
    /// Try the latencies, rates and shares of the OSDI'16 study, where none are given
    #[arg(long)]
    grid: bool,
    /// Runs with delays, and as many without
    #[arg(long, value_name = "COUNT", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,
    /// Write a page of tables and figures into this folder: those of the study, of this program
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Run once, with the delays, and tell no slowdown: for a server, whose clients know it. A
    /// share is then of what the program holds at the time
    #[arg(long, conflicts_with_all = ["grid", "repeats", "out"])]
    once: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Serialize)]
pub(super) struct Report {
    pub(super) program: String,
    pub(super) peak_bytes: u64,
    pub(super) local_seconds: f64,
    /// Share by share, each with the networks in the order in which they were asked for.
    pub(super) emulations: Vec<Emulation>,
    pub(super) cheapest: Vec<Cheapest>,
}

/// The slowest network whose mean slowdown is within 5 %.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Cheapest {
    pub(super) local_share: f64,
    /// None when no network that was tried is fast enough.
    pub(super) network: Option<String>,
    /// What it costs.
    pub(super) slowdown: Option<Estimate>,
    /// Whether the whole interval is within 5 %; none without an interval.
    pub(super) interval_within: Option<bool>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    common.check()?;
    let folder = arguments.out.as_deref().map(Folder::prepare).transpose()?;
    let tried = arguments.networks.list(arguments.grid)?;
    if arguments.once {
        return once(arguments, &tried);
    }
    let (peak_bytes, outcome) = measure_peak(&common.ran.program).map_err(failed)?;
    if !outcome.status.success() {
        return end(outcome.status);
    }
    let local_seconds = outcome.elapsed.as_secs_f64();
    let mut emulations = Vec::new();
    for share in arguments.shares(peak_bytes)? {
        for network in tried.iter().map(|tried| &tried.network) {
            let alone = (peak_bytes, local_seconds);
            let (prefetch, repeats) = (!common.ran.no_prefetch, arguments.repeats);
            let done = emulate(&common.ran.program, network, share, alone, prefetch, repeats);
            match done.map_err(failed)? {
                Emulated::Done(emulation) => emulations.push(*emulation),
                Emulated::Failed(status) => return end(status),
            }
        }
    }
    let cheapest = cheapest(&emulations, &tried);
    let program = shown(&common.ran.program);
    let report = Report { program, peak_bytes, local_seconds, emulations, cheapest };
    if let Some(folder) = folder {
        folder.write(&report, &grid_page::page(&report, &tried, arguments.networks.seed))?;
    }
    common.tell(&report, &table(&report))?;
    Ok(ExitCode::SUCCESS)
}

/// Runs the program once, on the one network and with the one share that are asked for.
fn once(arguments: &Arguments, tried: &[Tried]) -> Result<ExitCode, Failure> {
    let common = &arguments.common;
    let (local, network) = match (&arguments.local[..], tried) {
        ([], [one]) => (Share::Of(0.25), &one.network),
        ([local], [one]) => (*local, &one.network),
        _ => return Err(Failure::input("--once: allowed are one network and one --local")),
    };
    let prefetch = !common.ran.no_prefetch;
    let (status, run) = emulate_once(&common.ran.program, network, local.at_the_time(), prefetch)
        .map_err(failed)?;
    let rows = vec![
        vec!["duration, s".to_owned(), format!("{:.3}", run.seconds)],
        vec!["pages read for a waiting thread".to_owned(), run.counts.read_pages.to_string()],
        vec![
            "mean error of delays, %".to_owned(),
            format!("{:.2}", run.accuracy.error_mean_percent),
        ],
    ];
    let header = ["emulated", run.network.as_str()];
    let table = TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows };
    end_after(common.tell(&run, &table), status)
}

impl Arguments {
    fn shares(&self, peak_bytes: u64) -> Result<Vec<f64>, Failure> {
        if self.local.is_empty() {
            return Ok(if self.grid { GRID_SHARES.to_vec() } else { vec![0.25] });
        }
        let share = |share: &Share| match *share {
            Share::Of(share) => share,
            Share::Bytes(bytes) => (bytes as f64 / peak_bytes.max(1) as f64).min(1.0),
        };
        Ok(self.local.iter().map(share).collect())
    }
}

/// For each share, the network of the lowest rate, and of those the one of the longest latency,
/// that keeps the mean loss within [`LOSS_MAX`].
fn cheapest(emulations: &[Emulation], tried: &[Tried]) -> Vec<Cheapest> {
    emulations
        .chunks(tried.len())
        .map(|chunk| {
            let order = |tried: &Tried| {
                (tried.gbps.unwrap_or(f64::INFINITY), -tried.latency_us.unwrap_or(0.0))
            };
            let mut fit: Vec<_> = chunk
                .iter()
                .zip(tried)
                .filter(|(emulation, _)| emulation.slowdown.mean <= LOSS_MAX)
                .collect();
            fit.sort_by(|(_, one), (_, other)| {
                order(one).partial_cmp(&order(other)).expect("finite")
            });
            let first = fit.first().map(|(emulation, _)| *emulation);
            let slowdown = first.map(|emulation| emulation.slowdown);
            let high = slowdown.and_then(|slowdown| slowdown.high);
            Cheapest {
                local_share: chunk[0].local_share,
                network: first.map(|emulation| emulation.network.clone()),
                slowdown,
                interval_within: high.map(|high| high <= LOSS_MAX),
            }
        })
        .collect()
}

fn table(report: &Report) -> TextTable<'static> {
    let row = |emulation: &Emulation| {
        vec![
            emulation.network.clone(),
            format!("{:.0} %", emulation.local_share * 100.0),
            super::size(ByteSize(emulation.local_bytes).as_u64()),
            seconds(&emulation.undelayed_seconds),
            seconds(&emulation.delayed_seconds),
            interval(&emulation.slowdown),
            format!("{:.3}", emulation.swap_gbps),
        ]
    };
    TextTable {
        header: &[
            "network",
            "local",
            "local memory",
            "without delays, s",
            "with them, s",
            "slowdown (95 %)",
            "swap, Gb/s",
        ],
        text_columns: &[0],
        optional_columns: &[],
        rows: report.emulations.iter().map(row).collect(),
    }
}

fn seconds(estimate: &Estimate) -> String {
    format!("{:.3}", estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::super::grid_page::samples::{emulation, tried};
    use super::{Cheapest, cheapest};

    #[test]
    fn the_cheapest_has_the_lowest_rate_and_of_those_the_longest_latency() {
        let tried = [tried(1.0, 40.0), tried(5.0, 40.0), tried(1.0, 100.0)];
        let quarter = [(1.02, 0.01), (1.04, 0.02), (1.01, 0.01)];
        let tenth = [(1.2, 0.01), (1.3, 0.01), (1.06, 0.01)];
        let of = |share: f64, slowdowns: [(f64, f64); 3]| {
            slowdowns.map(|(mean, half)| emulation("named", share, mean, Some(half), 1.0))
        };
        let mut emulations = [of(0.1, tenth), of(0.25, quarter)].concat();
        emulations[4].network = "5 us, 40 Gb/s".to_owned();
        let found = cheapest(&emulations, &tried);
        let none =
            Cheapest { local_share: 0.1, network: None, slowdown: None, interval_within: None };
        assert_eq!(found[0], none);
        assert_eq!(found[1].network.as_deref(), Some("5 us, 40 Gb/s"));
        assert_eq!(found[1].interval_within, Some(false), "1.06 is over, the mean is not");
    }
}
