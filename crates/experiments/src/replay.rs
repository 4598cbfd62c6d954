//! Page traces replayed on fabrics, in many clusters of blades.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::FabricEntry;
use ethermem_sim::run::label_of;
use ethermem_sim::scenario::{Scenario, Setting};
use ethermem_sim::topology::Topology;
use ethermem_sim::workload::InputError;
use ethermem_study::{
    Arrivals, Attribution, Blades, Flows, Machine, Offered, Outcome, Part, Plan, Replay, Scope,
    network, write_completions,
};
use ethermem_trace::CompletionWriter;
use ethermem_units::{BitsPerSecond, Bytes, Ns};

use crate::error::Error;
use crate::face::Expected;
use crate::recorded::Recorded;
use crate::runner::{Job, Runner};

/// Allowed number of nodes of a network.
pub const NODES: RangeInclusive<i64> = 3..=512;
/// Allowed number of nodes of a rack.
pub const RACK_NODES: RangeInclusive<i64> = 1..=512;
/// Allowed number of simulated accesses.
pub const MESSAGES: RangeInclusive<u64> = 1..=10_000_000;
/// Allowed size of the blocks in which memory is spread, in KiB.
pub const BLOCK_KIB: RangeInclusive<u64> = 1..=1 << 30;
/// Allowed speed of machines relative to the traced ones.
pub const SPEED: RangeInclusive<f64> = 1e-6..=1e6;

/// Traces to replay, and fabrics.
#[derive(Clone)]
pub struct Request {
    /// Page traces, one per machine.
    pub traces: Vec<PathBuf>,
    /// Fabrics, in the order of the results.
    pub fabrics: Vec<&'static FabricEntry>,
    /// Options of the replay.
    pub setup: Setup,
    /// Traces of disks and the network.
    pub recorded: Recorded,
    /// Data rate of every node's link in Gb/s.
    pub link_gbps: u64,
    /// Parquet file for the completion time of every access.
    pub out: Option<PathBuf>,
}

/// Options of replaying a trace.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Number of blades of a cluster.
    pub blades: Blades,
    /// Number of nodes of the network in which clusters are embedded.
    pub nodes: u16,
    /// Number of nodes per rack.
    pub rack_nodes: u16,
    /// Nodes that the blades of a cluster may use.
    pub scope: Scope,
    /// How accesses of a trace become arrivals.
    pub arrivals: Arrivals,
    /// Approximate number of simulated accesses, of all clusters together.
    pub messages: u64,
    /// Start of the used part of each trace.
    pub from: Ns,
    /// Length of the used part; `None` extends to the end.
    pub length: Option<Ns>,
    /// Speed of machines relative to the traced ones.
    pub speed: f64,
    /// Memory is spread over memory blades in blocks of this many KiB.
    pub block_kib: u64,
    /// Seed of every random draw.
    pub seed: u64,
    /// Keys that override the network's scenario.
    pub settings: Vec<Setting>,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            blades: Blades::of(15).expect("a multiple of 3"),
            nodes: 144,
            rack_nodes: 16,
            scope: Scope::Datacenter,
            arrivals: Arrivals::Drawn,
            messages: 100_000,
            from: Ns(0),
            length: None,
            speed: 1.0,
            block_kib: 2048,
            seed: 1,
            settings: Vec::new(),
        }
    }
}

impl Setup {
    /// Checks that every number is within its range.
    ///
    /// # Errors
    ///
    /// One line with the first number that is out of range.
    pub fn check(&self) -> Result<(), Error> {
        within("embed", i64::from(self.nodes), &NODES)?;
        within("rack-nodes", i64::from(self.rack_nodes), &RACK_NODES)?;
        within("messages", self.messages, &MESSAGES)?;
        within("block-kib", self.block_kib, &BLOCK_KIB)?;
        within("speed", self.speed, &SPEED)
    }

    pub(crate) fn plan(&self, link_gbps: u64) -> Plan {
        Plan {
            blades: self.blades,
            nodes: self.nodes,
            rack_nodes: self.rack_nodes,
            scope: self.scope,
            link_gbps,
            arrivals: self.arrivals,
            messages: self.messages,
            seed: self.seed,
            settings: self.settings.clone(),
        }
    }

    /// All options as flags.
    pub(crate) fn words(&self) -> String {
        let plan = self.plan(0);
        let length = self.length.map_or_else(|| "to the end".to_owned(), |ns| ns.0.to_string());
        let mut words = format!(
            "--cluster {} --embed {} --rack-nodes {} --scope {} --arrivals {} --messages {} \
             --speed {} --block-kib {} --seed {}, from {} ns, length in ns: {length}",
            plan.blades.count(),
            plan.nodes,
            plan.rack_nodes,
            plan.scope.name(),
            plan.arrivals.name(),
            plan.messages,
            self.speed,
            self.block_kib,
            plan.seed,
            self.from.0,
        );
        for setting in &self.settings {
            words.push_str(&format!(" --set {setting}"));
        }
        words
    }

    /// Loads the traced machine.
    pub(crate) fn load(&self, trace: &Path) -> Result<Machine, InputError> {
        Machine::load(trace, self.part(), self.block())
    }

    fn part(&self) -> Part {
        Part { from: self.from, length: self.length, speed: self.speed }
    }

    fn block(&self) -> Bytes {
        Bytes(self.block_kib << 10)
    }
}

impl Request {
    /// Replays the traces, and writes the completion times if requested.
    ///
    /// # Errors
    ///
    /// When a trace or the setup cannot be used, or when a run fails or is interrupted.
    pub fn run(&self, runner: &Runner<'_>) -> Result<Vec<Outcome>, Error> {
        self.setup.check()?;
        let plan = self.setup.plan(self.link_gbps);
        // Before files are read: so many machines have numbers of their own.
        plan.embedding(self.traces.len()).map_err(Error::Request)?;
        let (machines, attribution) = self.machines()?;
        let replay = Replay::draw(&plan, &machines).map_err(Error::Request)?;
        let completions = self.out.as_deref().map(CompletionWriter::create).transpose()?;
        let folder = messages_folder()?;
        let messages = folder.path().join("messages.parquet");
        let networks = self
            .fabrics
            .iter()
            .map(|fabric| network(&plan, fabric, &messages))
            .collect::<Result<Vec<_>, _>>()?;
        let (offered, flows) = replay.write(&messages, link(plan.link_gbps)?)?;
        let command = runner.command_with_seed(self.setup.seed);
        let runs = self.run_networks(&networks, offered, &command, runner)?;
        let mut outcomes = Vec::new();
        for (run, network) in runs.into_iter().zip(&networks) {
            let mut outcome = outcome(&plan, &replay, (offered, &flows), network, run);
            outcome.attribute(attribution);
            outcomes.push(outcome);
        }
        if let Some(writer) = completions {
            write_completions(writer, &outcomes, replay.embedding(), &command)?;
        }
        Ok(outcomes)
    }

    fn machines(&self) -> Result<(Vec<Machine>, Option<Attribution>), Error> {
        if let Some(recordings) = self.recorded.recordings(&self.traces)? {
            let loaded = recordings.load(self.setup.part(), self.setup.block());
            let (machines, attribution) = loaded?;
            return Ok((machines, Some(attribution)));
        }
        let machines = self.traces.iter().map(|path| self.setup.load(path));
        Ok((machines.collect::<Result<Vec<_>, _>>()?, None))
    }

    fn run_networks(
        &self,
        networks: &[(Scenario, Option<String>)],
        offered: Offered,
        command: &str,
        runner: &Runner<'_>,
    ) -> Result<Vec<RunResult>, Error> {
        let name = self.name();
        let jobs: Vec<Job<'_>> = self
            .fabrics
            .iter()
            .zip(networks)
            .map(|(fabric, (scenario, _))| Job {
                fabric,
                scenario,
                scenario_name: &name,
                label: label_of(&name),
                command: command.to_owned(),
                cost: offered.messages,
                ways: true,
            })
            .collect();
        let cost = offered.messages * jobs.len() as u64;
        runner.run_all(&jobs, Expected::Runs { cost, runs: jobs.len() })
    }

    /// Name of the traces for people.
    fn name(&self) -> String {
        let names = self.traces.iter().map(|path| path.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }
}

/// Checks that a number of a request is within its range.
pub(crate) fn within<T: Copy + PartialOrd + Display>(
    flag: &str,
    found: T,
    range: &RangeInclusive<T>,
) -> Result<(), Error> {
    if range.contains(&found) {
        return Ok(());
    }
    let (least, most) = (range.start(), range.end());
    Err(Error::Request(format!("--{flag} {found}: must be {least} to {most}")))
}

/// A folder for the messages of a replay.
pub(crate) fn messages_folder() -> Result<tempfile::TempDir, Error> {
    tempfile::tempdir().map_err(|error| {
        Error::Machine(format!("no folder for the messages of the replay: {error}"))
    })
}

pub(crate) fn link(gbps: u64) -> Result<BitsPerSecond, Error> {
    BitsPerSecond::from_gbps(gbps).map_err(|error| Error::Request(error.to_string()))
}

/// The outcome of a run, with its caveats.
pub(crate) fn outcome(
    plan: &Plan,
    replay: &Replay<'_>,
    (offered, flows): (Offered, &Flows),
    (scenario, notice): &(Scenario, Option<String>),
    mut run: RunResult,
) -> Outcome {
    run.notices.extend(replay.notices(&offered));
    run.notices.extend(notice.clone());
    let topology = match scenario.fabric.topology {
        Topology::SingleSwitch => "single-switch",
        Topology::LeafSpine(_) => "leaf-spine",
    };
    Outcome::of(plan, replay.embedding(), (offered, flows.clone()), topology, run)
}

/// Parses a number of blades.
///
/// # Errors
///
/// One line with what is allowed.
pub fn blades(text: &str) -> Result<Blades, String> {
    let count = text.parse().map_err(|_| "must be a multiple of 3".to_owned())?;
    Blades::of(count)
}

/// Parses a time in ms, to the nanosecond.
///
/// # Errors
///
/// One line with what is allowed.
pub fn ms(text: &str) -> Result<Ns, String> {
    let ms = text.parse::<f64>().ok().filter(|ms| (0.0..=1e12).contains(ms));
    let ns = ms.map(|ms| Ns((ms * 1e6).round() as u64));
    ns.ok_or_else(|| "must be 0 to 1000000000000".to_owned())
}

/// Parses the speed of machines relative to the traced ones.
///
/// # Errors
///
/// One line with what is allowed.
pub fn speed(text: &str) -> Result<f64, String> {
    let speed = text.parse::<f64>().ok().filter(|speed| SPEED.contains(speed));
    speed.ok_or_else(|| "must be 0.000001 to 1000000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::Setup;

    #[test]
    fn a_number_out_of_its_range_is_named() {
        assert!(Setup::default().check().is_ok());
        let of = |setup: Setup| setup.check().map_err(|error| error.to_string());
        let few = Setup { nodes: 2, ..Setup::default() };
        assert_eq!(of(few), Err("--embed 2: must be 3 to 512".to_owned()));
        let none = Setup { speed: f64::NAN, ..Setup::default() };
        assert_eq!(of(none), Err("--speed NaN: must be 0.000001 to 1000000".to_owned()));
        let no_rack = Setup { rack_nodes: 0, ..Setup::default() };
        assert_eq!(of(no_rack), Err("--rack-nodes 0: must be 1 to 512".to_owned()));
    }
}
