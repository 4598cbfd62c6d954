//! The replays of a study: every fabric at every rate, on the trace of a fraction.

use std::path::Path;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::scenario::Scenario;
use ethermem_study::{Flows, Machine, Offered, Outcome, Plan, Quantile, Replay, network};
use ethermem_trace::CompletionWriter;
use serde::{Deserialize, Serialize};

use super::kept::Kept;
use super::{Request, trace_name};
use crate::error::Error;
use crate::face::Expected;
use crate::remote::pictures::{percent, share_name};
use crate::replay::{link, messages_folder, outcome};
use crate::runner::{Job, Runner};

/// Result of a replay on a fabric, with what the study reports.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Replayed {
    /// Name of the fabric.
    pub fabric: String,
    /// Data rate of every node's link in Gb/s.
    pub link_gbps: u64,
    /// Fraction of the program's peak that is local.
    pub local_share: f64,
    /// Reason why no program was run with its times; `None` if one was.
    pub reason: Option<String>,
    /// Result of the network; `None` if the fabric did not run.
    pub network: Option<Simulated>,
    /// Name of its completion times in the study's folder.
    pub completions: Option<String>,
}

/// Result of the simulated network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulated {
    /// Name of the topology.
    pub topology: String,
    /// Offered data over capacity of the busiest link direction.
    pub busiest_load: f64,
    /// Mean of offered data over capacity, of all link directions that carry any.
    pub mean_load: f64,
    /// Number of simulated accesses.
    pub accesses: u64,
    /// Number of accesses that were lost.
    pub lost: u64,
    /// Mean ratio of completion time to unloaded completion time, of all accesses.
    pub slowdown_mean: Option<f64>,
    /// Completion times of reads; `None` without reads.
    pub read_ns: Option<ReadTimes>,
    /// Caveats for readers of the numbers.
    pub notices: Vec<String>,
}

/// Completion times of reads, of nearest rank.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReadTimes {
    /// Median in ns.
    pub p50: f64,
    /// 90th percentile in ns.
    pub p90: f64,
    /// 99th percentile in ns.
    pub p99: f64,
    /// 99.9th percentile in ns.
    pub p999: f64,
    /// Largest time in ns.
    pub max: f64,
}

impl Replayed {
    /// Name of its files.
    pub(super) fn key(&self) -> String {
        key(self.local_share, self.link_gbps, &self.fabric)
    }

    /// Name for people.
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

/// Checks that something can be replayed as requested, before the program runs.
pub(super) fn check(request: &Request) -> Result<(), Error> {
    let mut first = None;
    for (gbps, fabric) in request.asked() {
        let plan = request.setup.plan(gbps);
        plan.embedding(1).map_err(Error::Request)?;
        match network(&plan, fabric, Path::new("messages.parquet")) {
            Ok(_) => return Ok(()),
            Err(error) => first = first.or(Some(error)),
        }
    }
    first.map_or(Ok(()), |error| Err(error.into()))
}

/// Clusters of the machine on links of one rate, with their messages written.
struct Rate<'p> {
    plan: &'p Plan,
    replay: Replay<'p>,
    offered: Offered,
    flows: Flows,
}

/// A run that is missing.
struct Wanted<'p> {
    rate: &'p Rate<'p>,
    network: (Scenario, Option<String>),
    fabric: &'static FabricEntry,
}

/// The results of every fabric for a fraction, at every rate, if any access was `remote`. Kept
/// results are not recomputed.
pub(super) fn of_share(
    request: &Request,
    kept: &Kept,
    share: f64,
    remote: bool,
    runner: &Runner<'_>,
) -> Result<Vec<Replayed>, Error> {
    let name = |key: &str| format!("replay-{key}.json");
    let asked = request.asked();
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
        run_missing(request, kept, share, &missing, runner)?
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
    request: &Request,
    kept: &Kept,
    share: f64,
    missing: &[(u64, &'static FabricEntry)],
    runner: &Runner<'_>,
) -> Result<Vec<Replayed>, Error> {
    let trace = trace_name(share);
    let machine = match request.setup.load(&kept.path(&trace)) {
        Ok(machine) => [machine],
        Err(error) => {
            let reason = format!("{trace}: {}", error.parts().0);
            return Ok(refuse(share, missing, &reason));
        }
    };
    let folder = messages_folder()?;
    let mut rates: Vec<u64> = missing.iter().map(|(gbps, _)| *gbps).collect();
    rates.dedup();
    let plans: Vec<Plan> = rates.iter().map(|gbps| request.setup.plan(*gbps)).collect();
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
    done.extend(run_wanted(kept, share, &wanted, runner)?);
    Ok(done)
}

fn prepare<'p>(
    plan: &'p Plan,
    machine: &'p [Machine; 1],
    messages: &Path,
) -> Result<Rate<'p>, Error> {
    let replay = Replay::draw(plan, machine).map_err(Error::Request)?;
    let (offered, flows) = replay.write(messages, link(plan.link_gbps)?)?;
    Ok(Rate { plan, replay, offered, flows })
}

fn run_wanted(
    kept: &Kept,
    share: f64,
    wanted: &[Wanted<'_>],
    runner: &Runner<'_>,
) -> Result<Vec<Replayed>, Error> {
    let (trace, command) = (trace_name(share), runner.command());
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
    let expected = Expected::Messages(Some(jobs.iter().map(|job| job.cost).sum()));
    runner.run_each(&jobs, expected, |at, run| {
        let Wanted { rate, fabric, .. } = &wanted[at];
        match run {
            Ok(run) => write(kept, share, &wanted[at], run, &command),
            Err(error @ (Error::Broken { .. } | Error::Interrupted(_))) => Err(error),
            Err(error) => {
                let gbps = rate.plan.link_gbps;
                Ok(Replayed::refused(share, gbps, fabric, error.to_string()))
            }
        }
    })
}

/// Writes completion times at once, so that not all runs are in memory.
fn write(
    kept: &Kept,
    share: f64,
    Wanted { rate, network, fabric }: &Wanted<'_>,
    run: RunResult,
    command: &str,
) -> Result<Replayed, Error> {
    let outcome = outcome(rate.plan, &rate.replay, (rate.offered, &rate.flows), network, run);
    let file = format!("completions-{}.parquet", key(share, rate.plan.link_gbps, fabric.name));
    let writer = CompletionWriter::create(&kept.path(&file))?;
    let (outcome, embedding) = ([outcome], rate.replay.embedding());
    ethermem_study::write_completions(writer, &outcome, embedding, command)?;
    Ok(Replayed::of(share, &outcome[0], file))
}
