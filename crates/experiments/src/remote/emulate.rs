//! The cost of a network for a program whose memory is remote.

use std::path::PathBuf;
use std::process::ExitStatus;

use bytesize::ByteSize;
use ethermem_pager::{
    DelayedRun, Emulated, Emulation, Estimate, Placement, Repeats, Verdict, emulate, emulate_once,
    measure_peak, shown,
};
use ethermem_sim::output::{TableStyle, TextTable};
use serde::Serialize;

use super::network::{Networks, Tried};
use super::pictures::{by_waits, interval, word};
use super::{Program, Share, grid_page};
use crate::error::Error;
use crate::folder::Folder;
use crate::runner::Runner;

/// The paper's fractions of local memory (OSDI'16, Figure 4).
const GRID_SHARES: [f64; 5] = [0.10, 0.25, 0.50, 0.75, 1.0];

/// A program, and networks whose delays it experiences.
#[derive(Clone, Debug)]
pub struct Request {
    /// Program to run.
    pub program: Program,
    /// Amounts of the program's private memory that stay local. All are tried.
    pub local: Vec<Share>,
    /// Networks. All are tried.
    pub networks: Networks,
    /// True to try the latencies, rates and fractions of the OSDI'16 study if none are given.
    pub grid: bool,
    /// Where pager and program run, with delays and without.
    pub placement: Placement,
    /// Number of runs with delays, and of runs without.
    pub repeats: Repeats,
    /// Folder for a page of tables and figures.
    pub out: Option<PathBuf>,
}

/// Cost of networks for the program.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Command of the program, quoted for a shell.
    pub program: String,
    /// Peak memory of the program in bytes.
    pub peak_bytes: u64,
    /// Duration in seconds with all of its memory local.
    pub local_seconds: f64,
    /// Results by fraction, each with the networks in the order of the request.
    pub emulations: Vec<Emulation>,
    /// Results by fraction.
    pub cheapest: Vec<Cheapest>,
}

/// The slowest network whose slowdown is within 5 % ([`Emulation::verdict`]).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cheapest {
    /// Fraction of the peak that is local.
    pub local_share: f64,
    /// Name of the network; `None` if none of those tried is known to be fast enough.
    pub network: Option<String>,
    /// Its slowdown.
    pub slowdown: Option<Estimate>,
    /// Names of cheaper networks of which neither waits nor the clock decide.
    pub undecided: Vec<String>,
}

impl Request {
    /// Runs the program with the delays of every network at every fraction, and writes the page if
    /// one was requested.
    ///
    /// # Errors
    ///
    /// When the program fails or its memory cannot be served, or when a file cannot be used.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Report, Error> {
        let folder = self.out.as_deref().map(Folder::prepare).transpose()?;
        let tried = self.networks.list(self.grid)?;
        let words = &self.program.words;
        let (peak_bytes, outcome) = measure_peak(words)?;
        if !outcome.status.success() {
            return Err(Error::Ended(outcome.status));
        }
        let local_seconds = outcome.elapsed.as_secs_f64();
        let mut emulations = Vec::new();
        for share in self.shares(peak_bytes) {
            for network in tried.iter().map(|tried| &tried.network) {
                let alone = (peak_bytes, local_seconds);
                let prefetch = self.program.prefetch;
                let (placement, repeats) = (self.placement, self.repeats);
                match emulate(words, network, share, alone, prefetch, placement, repeats)? {
                    Emulated::Done(emulation) => emulations.push(*emulation),
                    Emulated::Failed(status) => return Err(Error::Ended(status)),
                }
            }
        }
        let cheapest = cheapest(&emulations, &tried);
        let program = shown(words);
        let report = Report { program, peak_bytes, local_seconds, emulations, cheapest };
        if let Some(folder) = folder {
            let page = grid_page::page(&report, &tried, self.networks.seed, runner);
            folder.write(&report, &page)?;
        }
        Ok(report)
    }

    /// Runs the program once, with the one requested network and fraction.
    ///
    /// # Errors
    ///
    /// When there are several networks or fractions, or when the program's memory cannot be served.
    pub fn once(&self) -> Result<(ExitStatus, DelayedRun), Error> {
        let tried = self.networks.list(self.grid)?;
        let (local, network) = match (&self.local[..], &tried[..]) {
            ([], [one]) => (Share::Of(0.25), &one.network),
            ([local], [one]) => (*local, &one.network),
            _ => {
                let problem = "--once: must be one network and one --local";
                return Err(Error::Request(problem.to_owned()));
            }
        };
        let Program { words, prefetch } = &self.program;
        Ok(emulate_once(words, network, local.at_the_time(0), *prefetch, self.placement)?)
    }

    fn shares(&self, peak_bytes: u64) -> Vec<f64> {
        if self.local.is_empty() {
            return if self.grid { GRID_SHARES.to_vec() } else { vec![0.25] };
        }
        let share = |share: &Share| match *share {
            Share::Of(share) => share,
            Share::Bytes(bytes) => (bytes as f64 / peak_bytes.max(1) as f64).min(1.0),
        };
        self.local.iter().map(share).collect()
    }
}

/// Table of one run with delays, for people.
#[must_use]
pub fn once_table(run: &DelayedRun, style: TableStyle) -> String {
    let mut rows = vec![
        vec!["duration, s".to_owned(), format!("{:.3}", run.seconds)],
        vec!["pages read for a waiting thread".to_owned(), run.counts.read_pages.to_string()],
        vec![
            "mean error of delays, %".to_owned(),
            format!("{:.2}", run.accuracy.error_mean_percent),
        ],
    ];
    if let Some(counted) = &run.counted {
        let row = |name: &str, seconds: f64| vec![name.to_owned(), format!("{seconds:.3}")];
        rows.push(row("a thread waited, s", counted.stopped_seconds));
        rows.push(row("one thread waited at most, s", counted.waited_seconds));
        rows.push(row("without waits for a processor, s", counted.quiet_seconds));
    }
    let header = ["emulated", run.network.as_str()];
    TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows }.render(style)
}

/// For each fraction, the network that is within 5 % and has the lowest rate and, among those, the
/// longest latency.
fn cheapest(emulations: &[Emulation], tried: &[Tried]) -> Vec<Cheapest> {
    emulations
        .chunks(tried.len())
        .map(|chunk| {
            let order = |tried: &Tried| {
                (tried.gbps.unwrap_or(f64::INFINITY), -tried.latency_us.unwrap_or(0.0))
            };
            let mut from_cheapest: Vec<_> = chunk.iter().zip(tried).collect();
            from_cheapest.sort_by(|(_, one), (_, other)| {
                order(one).partial_cmp(&order(other)).expect("finite")
            });
            let mut emulations = from_cheapest.into_iter().map(|(emulation, _)| emulation);
            let mut undecided = Vec::new();
            let first = emulations.find(|emulation| {
                if emulation.verdict() == Verdict::Undecided {
                    undecided.push(emulation.network.clone());
                }
                emulation.verdict() == Verdict::Within
            });
            Cheapest {
                local_share: chunk[0].local_share,
                network: first.map(|emulation| emulation.network.clone()),
                slowdown: first.map(|emulation| emulation.slowdown),
                undecided,
            }
        })
        .collect()
}

impl Report {
    /// The emulations for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        let row = |emulation: &Emulation| {
            let [by_waits, by_waits_within] = by_waits(emulation.counted.as_ref());
            vec![
                emulation.network.clone(),
                format!("{:.0} %", emulation.local_share * 100.0),
                super::size(ByteSize(emulation.local_bytes).as_u64()),
                seconds(&emulation.undelayed_seconds),
                seconds(&emulation.delayed_seconds),
                interval(&emulation.slowdown),
                word(emulation.within_5_percent).to_owned(),
                by_waits,
                by_waits_within,
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
                "within 5 %",
                "by waits (95 %)",
                "by waits within 5 %",
                "swap, Gb/s",
            ],
            text_columns: &[0, 6, 8],
            optional_columns: &[],
            rows: self.emulations.iter().map(row).collect(),
        }
        .render(style)
    }
}

fn seconds(estimate: &Estimate) -> String {
    format!("{:.3}", estimate.mean)
}

#[cfg(test)]
mod tests {
    use super::super::grid_page::samples::{counted, emulation, tried};
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
        for (at, emulation) in emulations.iter_mut().enumerate() {
            emulation.network.clone_from(&tried[at % 3].network.name);
        }
        let found = cheapest(&emulations, &tried);
        let none =
            Cheapest { local_share: 0.1, network: None, slowdown: None, undecided: Vec::new() };
        assert_eq!(found[0].network, None);
        assert_eq!(found[0].undecided, ["1 us, 100 Gb/s"], "1.05 to 1.07");
        assert_eq!(Cheapest { undecided: Vec::new(), ..found[0].clone() }, none);
        assert_eq!(found[1].network.as_deref(), Some("1 us, 40 Gb/s"));
        assert_eq!(found[1].undecided, ["5 us, 40 Gb/s"], "1.06 is over, the mean is not");
        emulations[4].counted = counted(1.03);
        let by_waits = &cheapest(&emulations, &tried)[1];
        assert_eq!(by_waits.network.as_deref(), Some("5 us, 40 Gb/s"));
        assert_eq!(by_waits.undecided.len(), 0);
    }
}
