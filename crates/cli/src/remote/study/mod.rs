//! `ethermem study`: profile a program, replay it on every fabric, emulate what came out.

mod figures;
mod kept;
mod page;
mod replays;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::{ExitCode, ExitStatus};

use clap::Args;
use ethermem_pager::{
    Delay, Emulated, Emulation, Network, Profile, emulate, measure_peak, profile, shown,
};
use ethermem_sim::registry::FabricEntry;
use serde::{Deserialize, Serialize};

use self::kept::{Inputs, Kept};
use self::replays::Replayed;
use super::network::drawn;
use super::pictures::{percent, share_name};
use super::{Ran, Share, end, failed, show};
use crate::failure::Failure;
use crate::output::say;
use crate::replay::Setup;
use crate::selection::{fabric, link_gbps};

const EXAMPLES: &str = "Examples:\n  \
    ethermem study --out out/query -- ./query\n  \
    ethermem study --local 25%,50% --fabrics edm,tcp --gbps 100 --repeats 5 -- python3 sort.py\n\
    \n\
    The program runs once for its peak, once for each share below 100 %, and twice for each point\n\
    and repeat. The folder gets index.html, results.json, the traces and the completion times.\n\
    What is done is kept: the same command goes on where it was ended, and more shares, fabrics\n\
    and rates can be asked for later. docs/how-to/study-a-program.md explains the numbers.";

#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Arguments {
    /// Shares of the program's peak that stay local
    #[arg(long, value_name = "PERCENT,...", value_delimiter = ',',
          default_value = "10%,25%,50%,75%,100%", value_parser = share)]
    local: Vec<f64>,

    /// Fabrics, in the order of the results; `ethermem fabrics` lists them
    #[arg(long, value_name = "NAME,...", value_delimiter = ',',
          default_value = "edm,cxl,clio,roce,tcp", value_parser = fabric)]
    fabrics: Vec<&'static FabricEntry>,

    /// Data rates of every node's link in Gb/s: 10, 25, 40, 100, 200 or 400
    #[arg(long, value_name = "GBPS,...", value_delimiter = ',', default_value = "40,100,400",
          value_parser = link_gbps)]
    gbps: Vec<u64>,

    /// Runs with a network's delays, and as many without, of each point
    #[arg(long, value_name = "COUNT", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    repeats: u32,

    /// Folder of the study
    #[arg(long, value_name = "FOLDER", default_value = "out/study")]
    out: PathBuf,

    #[command(flatten)]
    setup: Setup,

    /// Replays to run at once; the results are the same bytes, whatever it is. Programs run alone
    /// [default: as many as the machine runs threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,

    #[command(flatten)]
    ran: Ran,
}

fn share(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(Share::Of(share)) => Ok(share),
        _ => Err("allowed is a share of 1% to 100%".to_owned()),
    }
}

/// What the program does with all of its memory local.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Alone {
    /// The most that it holds.
    pub(super) peak_bytes: u64,
    /// How long it takes.
    pub(super) local_seconds: f64,
}

/// A share, and what the program asks of remote memory at it.
#[derive(Debug, Serialize)]
pub(super) struct Profiled {
    pub(super) local_share: f64,
    /// In the study's folder.
    pub(super) trace: String,
    pub(super) profile: Profile,
}

/// A fabric at a rate and a share.
#[derive(Debug, Serialize)]
pub(super) struct Point {
    #[serde(flatten)]
    pub(super) replayed: Replayed,
    /// None where the replay says why not.
    pub(super) emulation: Option<Emulation>,
}

/// All that a study found.
#[derive(Debug, Serialize)]
pub(super) struct Study {
    pub(super) inputs: Inputs,
    #[serde(flatten)]
    pub(super) alone: Alone,
    pub(super) profiles: Vec<Profiled>,
    /// Share by share, of each rate by rate, of each fabric by fabric.
    pub(super) points: Vec<Point>,
    /// The program against itself, with all of its memory local: where 100 % was asked for.
    pub(super) all_local: Option<Emulation>,
}

/// Why a study is not there.
enum Stop {
    Failure(Failure),
    /// The program failed: so ends the study.
    Ended(ExitStatus),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    match arguments.study() {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(Stop::Failure(failure)) => Err(failure),
        Err(Stop::Ended(status)) => end(status),
    }
}

impl Arguments {
    fn study(&self) -> Result<(), Stop> {
        replays::check(self)?;
        let kept = Kept::open(&self.out, &self.inputs())?;
        let alone = kept.or_make("peak.json", || {
            let alone = self.alone()?;
            kept.begin(&self.inputs())?;
            Ok::<_, Stop>(alone)
        })?;
        let (shares, all_local) = self.shares();
        let mut profiles = Vec::new();
        let mut replayed = Vec::new();
        for (at, &share) in (1..).zip(&shares) {
            let of = format!("{at} of {}", shares.len());
            tell(&format!("profile with {} local: {of}", percent(share)));
            let profiled = self.profiled(&kept, alone, share)?;
            let counts = &profiled.profile.counts;
            let remote = counts.read_pages + counts.prefetched_pages + counts.written_pages > 0;
            profiles.push(profiled);
            tell(&format!("replay with {} local: {of}", percent(share)));
            replayed.extend(replays::of_share(self, &kept, share, remote)?);
        }
        let runs = replayed.iter().filter(|replayed| replayed.reason.is_none()).count();
        let mut ran = 0;
        let mut points = Vec::new();
        for replayed in replayed {
            let emulation = match &replayed.completions {
                Some(file) if replayed.reason.is_none() => {
                    ran += 1;
                    tell(&format!("emulate {}: {ran} of {runs}", replayed.name()));
                    Some(self.emulated(&kept, alone, &replayed, file)?)
                }
                _ => None,
            };
            points.push(Point { replayed, emulation });
        }
        let all_local = if all_local { Some(self.against_itself(&kept, alone)?) } else { None };
        let study = Study { inputs: self.inputs(), alone, profiles, points, all_local };
        show(&page::table(&study));
        let path = kept.write_page(&study, &page::page(&study, self.setup.seed))?;
        tell(&format!("wrote {}", path.display()));
        Ok(())
    }

    fn inputs(&self) -> Inputs {
        Inputs::of(shown(&self.ran.program), !self.ran.no_prefetch, self.repeats, &self.setup)
    }

    /// Rates and fabrics, each pair once.
    fn asked(&self) -> Vec<(u64, &'static FabricEntry)> {
        let mut asked: Vec<(u64, &FabricEntry)> = Vec::new();
        for &gbps in &self.gbps {
            for &fabric in &self.fabrics {
                if !asked.iter().any(|(rate, there)| (*rate, there.name) == (gbps, fabric.name)) {
                    asked.push((gbps, fabric));
                }
            }
        }
        asked
    }

    /// The shares below 100 %, rising, and whether that was asked for, too.
    fn shares(&self) -> (Vec<f64>, bool) {
        let mut shares = self.local.clone();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let all_local = shares.last().is_some_and(|share| *share >= 1.0);
        shares.retain(|share| *share < 1.0);
        (shares, all_local)
    }

    fn alone(&self) -> Result<Alone, Stop> {
        tell("the most that the program holds");
        let (peak_bytes, outcome) = measure_peak(&self.ran.program).map_err(failed)?;
        if !outcome.status.success() {
            return Err(Stop::Ended(outcome.status));
        }
        Ok(Alone { peak_bytes, local_seconds: outcome.elapsed.as_secs_f64() })
    }

    fn profiled(&self, kept: &Kept, alone: Alone, share: f64) -> Result<Profiled, Stop> {
        let trace = trace_name(share);
        let name = format!("profile-{}.json", share_name(share));
        let profile = kept.or_make(&name, || {
            let bytes = (alone.peak_bytes as f64 * share) as u64;
            let (program, path) = (&self.ran.program, kept.path(&trace));
            let done = profile(program, bytes, !self.ran.no_prefetch, &path);
            let (profile, status) = done.map_err(Failure::input)?;
            if status.success() { Ok(profile) } else { Err(Stop::Ended(status)) }
        })?;
        Ok(Profiled { local_share: share, trace, profile })
    }

    fn emulated(
        &self,
        kept: &Kept,
        alone: Alone,
        replayed: &Replayed,
        completions: &str,
    ) -> Result<Emulation, Stop> {
        let share = replayed.local_share;
        kept.or_make(&format!("emulation-{}.json", replayed.key()), || {
            let seed = self.setup.seed;
            let tried = drawn(&kept.path(completions), Some(&replayed.fabric), seed)?;
            let name = format!("{} at {} Gb/s", replayed.fabric, replayed.link_gbps);
            self.emulate(&Network { name, ..tried.network }, share, alone)
        })
    }

    fn against_itself(&self, kept: &Kept, alone: Alone) -> Result<Emulation, Stop> {
        kept.or_make("emulation-100.json", || {
            tell("all local, against itself");
            let name = "all memory local".to_owned();
            self.emulate(&Network { name, delay: Delay::None }, 1.0, alone)
        })
    }

    fn emulate(&self, network: &Network, share: f64, alone: Alone) -> Result<Emulation, Stop> {
        let (program, prefetch) = (&self.ran.program, !self.ran.no_prefetch);
        let alone = (alone.peak_bytes, alone.local_seconds);
        match emulate(program, network, share, alone, prefetch, self.repeats).map_err(failed)? {
            Emulated::Done(emulation) => Ok(*emulation),
            Emulated::Failed(status) => Err(Stop::Ended(status)),
        }
    }
}

/// The trace of a share, in the study's folder.
fn trace_name(share: f64) -> String {
    format!("trace-{}.parquet", share_name(share))
}

/// How far it is, for people alone: all other output is the program's.
fn tell(what: &str) {
    if std::io::stderr().is_terminal() {
        say(format_args!("study: {what}"));
    }
}
