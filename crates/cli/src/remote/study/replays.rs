//! The replays of a study: every fabric at every rate, of the trace of a share.

use std::path::Path;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Scenario;
use ethermem_study::{Machine, Offered, Outcome, Plan, Prefetched, Quantile, Replay, network};
use ethermem_trace::CompletionWriter;
use ethermem_units::BitsPerSecond;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::{Arguments, trace_name};
use crate::failure::Failure;
use crate::progress::Progress;
use crate::remote::pictures::{percent, share_name, typed};
use crate::replay::outcome;
use crate::runner::{Job, run_each, threads_default};

/// What a fabric made of the accesses of a share, as far as the study tells of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::remote) struct Replayed {
    pub(in crate::remote) fabric: String,
    pub(in crate::remote) link_gbps: u64,
    pub(in crate::remote) local_share: f64,
    /// Why no program was run with its times; none where one was.
    pub(in crate::remote) reason: Option<String>,
    /// None where the fabric did not run.
    pub(in crate::remote) network: Option<Simulated>,
    /// Its completion times, in the study's folder.
    pub(in crate::remote) completions: Option<String>,
}

/// What the simulated network came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::remote) struct Simulated {
    pub(in crate::remote) topology: String,
    /// Data over what the busiest direction of a link carries.
    pub(in crate::remote) busiest_load: f64,
    pub(in crate::remote) mean_load: f64,
    pub(in crate::remote) accesses: u64,
    pub(in crate::remote) lost: u64,
    /// Completion times over those alone, all accesses.
    pub(in crate::remote) slowdown_mean: Option<f64>,
    /// Of reads; none without one.
    pub(in crate::remote) read_ns: Option<ReadTimes>,
    pub(in crate::remote) notices: Vec<String>,
}

/// Completion times of reads, of nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::remote) struct ReadTimes {
    pub(in crate::remote) p50: f64,
    pub(in crate::remote) p90: f64,
    pub(in crate::remote) p99: f64,
    pub(in crate::remote) p999: f64,
    pub(in crate::remote) max: f64,
}

impl Replayed {
    /// Names its files.
    pub(super) fn key(&self) -> String {
        key(self.local_share, self.link_gbps, &self.fabric)
    }

    /// For people.
    pub(super) fn name(&self) -> String {
        let Replayed { fabric, link_gbps, local_share, .. } = self;
        format!("{fabric} at {link_gbps} Gb/s, {} local", percent(*local_share))
    }

    fn refused(share: f64, gbps: u64, fabric: &FabricEntry, reason: String) -> Replayed {
        Replayed {
            fabric: fabric.name.to_owned(),
            link_gbps: gbps,
            local_share: share,
            reason: Some(reason),
            network: None,
            completions: None,
        }
    }

    fn of(share: f64, outcome: &Outcome, completions: String) -> Replayed {
        let read_ns = ReadTimes::of(&outcome.completion.read);
        let reason = if outcome.overload {
            Some(format!(
                "a link is asked for {:.2} times what it carries: queues grow as long as the \
                 program runs",
                outcome.offered.busiest_load
            ))
        } else if read_ns.is_none() {
            Some("no read ended".to_owned())
        } else {
            None
        };
        Replayed {
            fabric: outcome.fabric.clone(),
            link_gbps: outcome.link_gbps,
            local_share: share,
            reason,
            network: Some(Simulated {
                topology: outcome.topology.to_owned(),
                busiest_load: outcome.offered.busiest_load,
                mean_load: outcome.offered.mean_load,
                accesses: outcome.run.messages_started,
                lost: outcome.run.messages_lost,
                slowdown_mean: outcome.slowdown_mean,
                read_ns,
                notices: outcome.run.notices.clone(),
            }),
            completions: Some(completions),
        }
    }
}

impl ReadTimes {
    fn of(times: &[Quantile]) -> Option<ReadTimes> {
        let at = |share: f64| {
            times.iter().find(|quantile| quantile.share >= share).map(|quantile| quantile.ns)
        };
        let (p50, p90, p99) = (at(0.5)?, at(0.9)?, at(0.99)?);
        Some(ReadTimes { p50, p90, p99, p999: at(0.999)?, max: at(1.0)? })
    }
}

fn key(share: f64, gbps: u64, fabric: &str) -> String {
    format!("{}-{gbps}g-{fabric}", share_name(share))
}

/// Whether anything can be replayed as asked, before the program runs.
pub(super) fn check(arguments: &Arguments) -> Result<(), Failure> {
    let mut first = None;
    for (gbps, fabric) in arguments.asked() {
        let plan = arguments.setup.plan(gbps);
        plan.embedding().map_err(Failure::Input)?;
        match network(&plan, fabric, Path::new("messages.parquet")) {
            Ok(_) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(error.into()))
}

/// Clusters of the machine behind links of one rate, with their messages written.
struct Rate<'p> {
    plan: &'p Plan,
    replay: Replay<'p>,
    offered: Offered,
    prefetched: Prefetched,
}

/// A run that is to be done.
struct Wanted<'p> {
    rate: &'p Rate<'p>,
    network: (Scenario, Option<String>),
    fabric: &'static FabricEntry,
}

/// What every fabric makes of a share, at every rate, when anything was `remote`. What is kept is
/// not run again.
pub(super) fn of_share(
    arguments: &Arguments,
    kept: &Kept,
    share: f64,
    remote: bool,
) -> Result<Vec<Replayed>, Failure> {
    let name = |key: &str| format!("replay-{key}.json");
    let asked = arguments.asked();
    let find = |(gbps, fabric): &(u64, &FabricEntry)| {
        kept.read::<Replayed>(&name(&key(share, *gbps, fabric.name)))
    };
    let mut missing = Vec::new();
    for point in &asked {
        if find(point)?.is_none() {
            missing.push(*point);
        }
    }
    let made = if missing.is_empty() {
        Vec::new()
    } else if remote {
        run_missing(arguments, kept, share, &missing)?
    } else {
        refuse(share, &missing, "nothing was remote: the program never asked for it again")
    };
    for replayed in made {
        kept.write(&name(&replayed.key()), &replayed)?;
    }
    let mut all = Vec::new();
    for point in &asked {
        all.extend(find(point)?);
    }
    Ok(all)
}

fn refuse(share: f64, points: &[(u64, &'static FabricEntry)], reason: &str) -> Vec<Replayed> {
    let one = |&(gbps, fabric): &(u64, &FabricEntry)| {
        Replayed::refused(share, gbps, fabric, reason.to_owned())
    };
    points.iter().map(one).collect()
}

fn run_missing(
    arguments: &Arguments,
    kept: &Kept,
    share: f64,
    missing: &[(u64, &'static FabricEntry)],
) -> Result<Vec<Replayed>, Failure> {
    let trace = trace_name(share);
    let machine = match arguments.setup.load(&kept.path(&trace)) {
        Ok(machine) => [machine],
        Err(error) => {
            let reason = format!("{trace}: {}", error.parts().0);
            return Ok(refuse(share, missing, &reason));
        }
    };
    let folder = tempfile::tempdir().map_err(|error| {
        Failure::Input(format!("no folder for the messages of the replay: {error}"))
    })?;
    let mut rates: Vec<u64> = missing.iter().map(|(gbps, _)| *gbps).collect();
    rates.dedup();
    let plans: Vec<Plan> = rates.iter().map(|gbps| arguments.setup.plan(*gbps)).collect();
    let messages = |gbps: u64| folder.path().join(format!("{gbps}.parquet"));
    let mut prepared = Vec::new();
    for plan in &plans {
        prepared.push(prepare(plan, &machine, &messages(plan.link_gbps))?);
    }
    let (mut wanted, mut done) = (Vec::new(), Vec::new());
    for &(gbps, fabric) in missing {
        let rate = prepared.iter().find(|rate| rate.plan.link_gbps == gbps);
        let rate = rate.expect("every rate is prepared");
        match network(rate.plan, fabric, &messages(gbps)) {
            Ok(network) => wanted.push(Wanted { rate, network, fabric }),
            Err(error) => {
                done.push(Replayed::refused(share, gbps, fabric, error.parts().0.to_owned()));
            }
        }
    }
    done.extend(run_wanted(arguments, kept, share, &wanted)?);
    Ok(done)
}

fn prepare<'p>(
    plan: &'p Plan,
    machine: &'p [Machine; 1],
    messages: &Path,
) -> Result<Rate<'p>, Failure> {
    let replay = Replay::draw(plan, machine).map_err(Failure::Input)?;
    let link = BitsPerSecond::from_gbps(plan.link_gbps).map_err(Failure::input)?;
    let (offered, prefetched) = replay.write(messages, link)?;
    Ok(Rate { plan, replay, offered, prefetched })
}

fn run_wanted(
    arguments: &Arguments,
    kept: &Kept,
    share: f64,
    wanted: &[Wanted<'_>],
) -> Result<Vec<Replayed>, Failure> {
    let (trace, command) = (trace_name(share), typed());
    let jobs: Vec<Job<'_>> = wanted
        .iter()
        .map(|wanted| Job {
            fabric: wanted.fabric,
            scenario: &wanted.network.0,
            scenario_name: &trace,
            label: format!("{} Gb/s", wanted.rate.plan.link_gbps),
            command: command.clone(),
            cost: wanted.rate.offered.messages,
            ways: true,
        })
        .collect();
    let progress = Progress::of_messages(Some(jobs.iter().map(|job| job.cost).sum()));
    let threads = arguments.threads.map_or_else(threads_default, usize::from);
    let ended = run_each(&jobs, threads, &progress, |at, run| {
        let Wanted { rate, fabric, .. } = &wanted[at];
        match run {
            Ok(run) => write(kept, share, &wanted[at], run, &command),
            Err(Failure::Input(reason)) => {
                Ok(Replayed::refused(share, rate.plan.link_gbps, fabric, reason))
            }
            Err(failure) => Err(failure),
        }
    });
    progress.clear();
    ended
}

/// Writes completion times as soon as they are there, so that not all runs are held at once.
fn write(
    kept: &Kept,
    share: f64,
    Wanted { rate, network, fabric }: &Wanted<'_>,
    run: RunResult,
    command: &str,
) -> Result<Replayed, Failure> {
    let outcome = outcome(rate.plan, &rate.replay, (rate.offered, &rate.prefetched), network, run);
    let file = format!("completions-{}.parquet", key(share, rate.plan.link_gbps, fabric.name));
    let writer = CompletionWriter::create(&kept.path(&file))?;
    let (outcome, embedding) = ([outcome], rate.replay.embedding());
    ethermem_study::write_completions(writer, &outcome, embedding, command)?;
    Ok(Replayed::of(share, &outcome[0], file))
}
