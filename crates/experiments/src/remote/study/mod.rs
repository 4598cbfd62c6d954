//! The cost of every fabric for a program: profile it, replay it on every fabric, emulate the
//! results.

mod figures;
mod kept;
mod page;
mod replays;

use std::ops::RangeInclusive;
use std::path::PathBuf;

use ethermem_pager::{
    Delay, Emulated, Emulation, Network, Placement, Profile, Repeats, emulate, measure_peak,
    profile, shown,
};
use ethermem_sim::output::TableStyle;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::report::ReportInput;
use serde::{Deserialize, Serialize};

pub use self::kept::Inputs;
use self::kept::Kept;
pub use self::replays::{ReadTimes, Replayed, Simulated};
use super::network::drawn;
use super::pictures::{percent, share_name};
use super::{Program, REPEATS};
use crate::error::Error;
use crate::replay::{Setup, within};
use crate::runner::Runner;

/// Allowed fractions of local memory.
const SHARES: RangeInclusive<f64> = 0.01..=1.0;

/// A program to study, and the fabrics.
#[derive(Clone)]
pub struct Request {
    /// Program to run.
    pub program: Program,
    /// Fractions of the program's peak that stay local, above 0 and at most 1.
    pub shares: Vec<f64>,
    /// Fabrics, in the order of the results.
    pub fabrics: Vec<&'static FabricEntry>,
    /// Data rates of every node's link in Gb/s.
    pub gbps: Vec<u64>,
    /// Number of runs with a network's delays per point, and of runs without.
    pub repeats: Repeats,
    /// Folder of the study. Results kept there are not recomputed.
    pub out: PathBuf,
    /// Options of the replay.
    pub setup: Setup,
}

/// The program with all of its memory local.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Alone {
    /// Peak memory in bytes.
    pub peak_bytes: u64,
    /// Duration in seconds.
    pub local_seconds: f64,
}

/// A fraction of local memory, and the program's remote accesses at it.
#[derive(Debug, Serialize)]
pub struct Profiled {
    /// Fraction of the peak that is local.
    pub local_share: f64,
    /// Name of the trace in the study's folder.
    pub trace: String,
    /// Profile of the run.
    pub profile: Profile,
}

/// A fabric at a rate and a fraction of local memory.
#[derive(Debug, Serialize)]
pub struct Point {
    /// Result of replaying the accesses on the fabric.
    #[serde(flatten)]
    pub replayed: Replayed,
    /// Emulation of the result; `None` if the replay gives a reason.
    pub emulation: Option<Emulation>,
}

/// Results of a study.
#[derive(Debug, Serialize)]
pub struct Study {
    /// Inputs of the study.
    pub inputs: Inputs,
    /// The program with all of its memory local.
    #[serde(flatten)]
    pub alone: Alone,
    /// Profiles by fraction.
    pub profiles: Vec<Profiled>,
    /// Points by fraction, then by rate, then by fabric.
    pub points: Vec<Point>,
    /// The program against itself, with all of its memory local, if 100 % was requested.
    pub all_local: Option<Emulation>,
}

/// A finished study, and its folder.
pub struct Outcome {
    /// Results of the study.
    pub study: Study,
    kept: Kept,
    page: ReportInput,
}

impl Outcome {
    /// The points for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
        page::table(&self.study).render(style)
    }

    /// Writes the results and the page, and returns the page's path.
    ///
    /// # Errors
    ///
    /// When the folder cannot be written.
    pub fn write(self) -> Result<PathBuf, Error> {
        Ok(self.kept.write_page(&self.study, &self.page)?)
    }
}

impl Request {
    /// Does everything that the folder does not contain yet.
    ///
    /// # Errors
    ///
    /// When the program fails or its memory cannot be served, when no fabric can be replayed, or
    /// when the folder holds another study or cannot be written.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Outcome, Error> {
        self.check()?;
        let kept = Kept::open(&self.out, &self.inputs(runner))?;
        let alone = kept.or_make("peak.json", || {
            let alone = self.alone(runner)?;
            kept.begin(&self.inputs(runner))?;
            Ok(alone)
        })?;
        let (shares, all_local) = self.rising_shares();
        let mut profiles = Vec::new();
        let mut replayed = Vec::new();
        for (at, &share) in (1..).zip(&shares) {
            let of = format!("{at} of {}", shares.len());
            let local = percent(share);
            runner.face.note(&format!("profile with {local} local: {of}"));
            let profiled = self.profiled(&kept, alone, share)?;
            let counts = &profiled.profile.counts;
            let remote = counts.read_pages + counts.prefetched_pages + counts.written_pages > 0;
            profiles.push(profiled);
            runner.face.note(&format!("replay with {local} local: {of}"));
            replayed.extend(replays::of_share(self, &kept, share, remote, runner)?);
        }
        let points = self.points(&kept, alone, replayed, runner)?;
        let all_local =
            if all_local { Some(self.against_itself(&kept, alone, runner)?) } else { None };
        let study = Study { inputs: self.inputs(runner), alone, profiles, points, all_local };
        let page = page::page(&study, self.setup.seed, runner);
        Ok(Outcome { study, kept, page })
    }

    /// Checks the request, and that something can be replayed, before the program runs.
    fn check(&self) -> Result<(), Error> {
        if self.program.words.is_empty() {
            return Err(Error::Request("no program is named: it must be one".to_owned()));
        }
        within("repeats", i64::from(self.repeats.least), &REPEATS)?;
        let most = i64::from(self.repeats.least)..=*REPEATS.end();
        within("repeats_max", i64::from(self.repeats.most), &most)?;
        for share in &self.shares {
            within("local", *share, &SHARES)?;
        }
        if self.shares.is_empty() || self.gbps.is_empty() || self.fabrics.is_empty() {
            let problem = "--local, --gbps and --fabrics must each name at least one";
            return Err(Error::Request(problem.to_owned()));
        }
        self.setup.check()?;
        replays::check(self)
    }

    /// Runs the program with the delays of each replay that has some.
    fn points(
        &self,
        kept: &Kept,
        alone: Alone,
        replayed: Vec<Replayed>,
        runner: &Runner<'_>,
    ) -> Result<Vec<Point>, Error> {
        let runs = replayed.iter().filter(|replayed| replayed.reason.is_none()).count();
        let mut ran = 0;
        let mut points = Vec::new();
        for replayed in replayed {
            let emulation = match &replayed.completions {
                Some(file) if replayed.reason.is_none() => {
                    ran += 1;
                    let name = replayed.name();
                    runner.face.note(&format!("emulate {name}: {ran} of {runs}"));
                    Some(self.emulated(kept, alone, &replayed, file)?)
                }
                _ => None,
            };
            points.push(Point { replayed, emulation });
        }
        Ok(points)
    }

    fn inputs(&self, runner: &Runner<'_>) -> Inputs {
        let (program, prefetch) = (shown(&self.program.words), self.program.prefetch);
        Inputs::of(program, prefetch, self.repeats, &self.setup, runner)
    }

    /// Distinct pairs of rate and fabric.
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

    /// The fractions below 100 %, ascending, and whether 100 % was requested, too.
    fn rising_shares(&self) -> (Vec<f64>, bool) {
        let mut shares = self.shares.clone();
        shares.sort_by(f64::total_cmp);
        shares.dedup();
        let all_local = shares.last().is_some_and(|share| *share >= 1.0);
        shares.retain(|share| *share < 1.0);
        (shares, all_local)
    }

    fn alone(&self, runner: &Runner<'_>) -> Result<Alone, Error> {
        runner.face.note("the most that the program holds");
        let (peak_bytes, outcome) = measure_peak(&self.program.words)?;
        if !outcome.status.success() {
            return Err(Error::Ended(outcome.status));
        }
        Ok(Alone { peak_bytes, local_seconds: outcome.elapsed.as_secs_f64() })
    }

    fn profiled(&self, kept: &Kept, alone: Alone, share: f64) -> Result<Profiled, Error> {
        let trace = trace_name(share);
        let name = format!("profile-{}.json", share_name(share));
        let profile = kept.or_make(&name, || {
            let bytes = (alone.peak_bytes as f64 * share) as u64;
            let (program, path) = (&self.program.words, kept.path(&trace));
            let done = profile(program, bytes, self.program.prefetch, &path);
            let (profile, status) = done?;
            if status.success() { Ok(profile) } else { Err(Error::Ended(status)) }
        })?;
        Ok(Profiled { local_share: share, trace, profile })
    }

    fn emulated(
        &self,
        kept: &Kept,
        alone: Alone,
        replayed: &Replayed,
        completions: &str,
    ) -> Result<Emulation, Error> {
        let share = replayed.local_share;
        kept.or_make(&format!("emulation-{}.json", replayed.key()), || {
            let seed = self.setup.seed;
            let tried = drawn(&kept.path(completions), Some(&replayed.fabric), seed)?;
            let name = format!("{} at {} Gb/s", replayed.fabric, replayed.link_gbps);
            self.emulate(&Network { name, ..tried.network }, share, alone)
        })
    }

    fn against_itself(
        &self,
        kept: &Kept,
        alone: Alone,
        runner: &Runner<'_>,
    ) -> Result<Emulation, Error> {
        kept.or_make("emulation-100.json", || {
            runner.face.note("all local, against itself");
            let name = "all memory local".to_owned();
            self.emulate(&Network { name, delay: Delay::None }, 1.0, alone)
        })
    }

    fn emulate(&self, network: &Network, share: f64, alone: Alone) -> Result<Emulation, Error> {
        let (program, prefetch) = (&self.program.words, self.program.prefetch);
        let alone = (alone.peak_bytes, alone.local_seconds);
        // A trial of places would be within what is compared.
        let placement = Placement::Free;
        match emulate(program, network, share, alone, prefetch, placement, self.repeats)? {
            Emulated::Done(emulation) => Ok(*emulation),
            Emulated::Failed(status) => Err(Error::Ended(status)),
        }
    }
}

/// Name of the trace for a fraction, in the study's folder.
fn trace_name(share: f64) -> String {
    format!("trace-{}.parquet", share_name(share))
}
