//! The runs of a report: each once, whatever number of figures shows it.

use ethermem_sim::fabrics::edm::EdmParameters;
use std::path::Path;

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{self, FABRIC_NAMES, FabricEntry};
use ethermem_sim::report::Role;
use ethermem_sim::run::shell_line;
use ethermem_sim::scenario::{Changes, Scenario, Setting};
use ethermem_sim::workload::WorkloadConfig;

use crate::error::Error;

/// A scenario of the repository, compiled in so that a report needs no other file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    /// Name in figures.
    pub(crate) name: &'static str,
    /// Path of its file, relative to the root of the repository.
    path: &'static str,
    text: &'static str,
}

macro_rules! published {
    ($name:literal, $file:literal) => {
        Published {
            name: $name,
            path: concat!("scenarios/", $file, ".toml"),
            text: include_str!(concat!("../../../../scenarios/", $file, ".toml")),
        }
    };
}

/// Messages of 64 B.
pub(crate) const MICROBENCHMARK: Published = published!("64 B", "microbenchmark-64b");

/// The applications of EDM section 4.3.2.
pub(crate) const APPLICATIONS: [Published; 5] = [
    published!("hadoop", "app-hadoop"),
    published!("spark", "app-spark"),
    published!("sparksql", "app-sparksql"),
    published!("graphlab", "app-graphlab"),
    published!("memcached", "app-memcached"),
];

/// A fabric with its settings: one line or bar of a figure.
#[derive(Clone, Copy)]
pub(crate) struct Contender {
    /// Name in figures.
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    fabric: &'static str,
    settings: &'static [&'static str],
}

const fn edm(name: &'static str, settings: &'static [&'static str]) -> Contender {
    Contender { name, role: Role::Measured, fabric: "edm", settings }
}

/// EDM with its defaults.
pub(crate) const EDM: Contender = edm("edm", &[]);
/// Greedy matching, as EDM was published.
pub(crate) const EDM_AS_PUBLISHED: Contender =
    edm("edm as published", &["fabric.edm.policy=srpt-published"]);
/// First come, first served.
pub(crate) const EDM_FCFS: Contender = edm("edm fcfs", &["fabric.edm.policy=fcfs"]);
/// FCFS or SRPT by the tail of the sizes.
pub(crate) const EDM_AUTO: Contender = edm("edm auto", &["fabric.edm.policy=auto"]);
/// Independent messages may overtake each other.
pub(crate) const EDM_RELAXED: Contender = edm("edm, order relaxed", &["fabric.edm.order=relaxed"]);

const fn bound(
    name: &'static str,
    fabric: &'static str,
    settings: &'static [&'static str],
) -> Contender {
    Contender { name, role: Role::Reference, fabric, settings }
}

/// MAC frames through a layer 2 switch.
const RAW_ETHERNET: Contender =
    Contender { name: "raw-ethernet", role: Role::Measured, fabric: "raw-ethernet", settings: &[] };
/// The bound of a matching that takes no time: greedy, and recomputed whenever a port becomes free.
const GREEDY: Contender = bound(
    "greedy matching at once",
    "edm",
    &["fabric.edm.policy=srpt-published", "fabric.edm.scheduler_clock_ns=0.001"],
);
/// The bound of contention only at the two ends.
const OUTPUT_QUEUED: Contender = bound("output-queued", "output-queued", &[]);
/// The bound of no contention at all.
const IDEAL: Contender = bound("ideal", "ideal", &[]);

/// Contenders for the applications: without the bounds that hold only for equal messages.
pub(crate) fn application_contenders() -> Vec<Contender> {
    vec![EDM, EDM_AS_PUBLISHED, RAW_ETHERNET, IDEAL]
}

/// Forms of EDM, then its references. A fabric of the registry is in a report only if it is named
/// here: `ethermem compare` covers all of them.
pub(crate) fn contenders() -> Vec<Contender> {
    vec![EDM, EDM_AS_PUBLISHED, GREEDY, RAW_ETHERNET, OUTPUT_QUEUED, IDEAL]
}

/// Number of messages to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    /// Number of messages of a run of [`MICROBENCHMARK`].
    microbenchmark_messages: u64,
    /// Number of messages of a run of one of [`APPLICATIONS`].
    application_messages: u64,
    /// The same where a figure compares many forms of EDM, on the same messages.
    form_messages: u64,
}

impl Size {
    /// Means of applications are known to 5 % then; forms of EDM are compared in seconds each.
    pub(crate) const FULL: Size = Size {
        microbenchmark_messages: 600_000,
        application_messages: 100_000,
        form_messages: 20_000,
    };
    /// Enough to see that everything works, too little for tails.
    pub(crate) const QUICK: Size =
        Size { microbenchmark_messages: 4_000, application_messages: 100, form_messages: 100 };
}

/// One run, as a person would request it.
#[derive(Clone)]
pub(crate) struct PlannedRun {
    pub(crate) fabric: &'static FabricEntry,
    pub(crate) scenario: Scenario,
    pub(crate) path: &'static str,
    pub(crate) label: String,
    settings: Vec<String>,
}

/// Index of a run in a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RunId(usize);

/// The runs of a report.
pub(crate) struct Plan {
    size: Size,
    seed: Option<u64>,
    pub(crate) runs: Vec<PlannedRun>,
}

/// Results of a plan's runs, in order.
#[derive(Debug)]
pub(crate) struct Results(pub(crate) Vec<RunResult>);

impl Results {
    pub(crate) fn of(&self, run: RunId) -> &RunResult {
        &self.0[run.0]
    }
}

impl Plan {
    /// A plan; without a `seed`, every run has its scenario's.
    pub(crate) fn new(size: Size, seed: Option<u64>) -> Plan {
        Plan { size, seed, runs: Vec::new() }
    }

    /// Requests a run of `published` on `contender`, as long as the numbers of tables are.
    pub(crate) fn add(
        &mut self,
        published: Published,
        contender: Contender,
        settings: &[String],
    ) -> Result<RunId, Error> {
        self.add_of(self.size.application_messages, published, contender, settings)
    }

    /// Requests a run for a figure that compares many forms of EDM: an application's run is short.
    pub(crate) fn add_form(
        &mut self,
        published: Published,
        contender: Contender,
        settings: &[String],
    ) -> Result<RunId, Error> {
        self.add_of(self.size.form_messages, published, contender, settings)
    }

    fn add_of(
        &mut self,
        application_messages: u64,
        published: Published,
        contender: Contender,
        settings: &[String],
    ) -> Result<RunId, Error> {
        let messages = if published == MICROBENCHMARK {
            self.size.microbenchmark_messages
        } else {
            application_messages
        };
        let mut set: Vec<String> = contender.settings.iter().map(|set| (*set).to_owned()).collect();
        set.extend_from_slice(settings);
        set.push(format!("workload.messages={messages}"));
        let fabric = registry::find(contender.fabric).expect("a contender is in the registry");
        let scenario = self.scenario(published, &set)?;
        let same = |run: &PlannedRun| run.fabric.name == fabric.name && run.scenario == scenario;
        if let Some(at) = self.runs.iter().position(same) {
            return Ok(RunId(at));
        }
        let label = label(published, &set);
        self.runs.push(PlannedRun { fabric, scenario, path: published.path, label, settings: set });
        Ok(RunId(self.runs.len() - 1))
    }

    /// Indices of all runs, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = RunId> + use<> {
        (0..self.runs.len()).map(RunId)
    }

    fn scenario(&self, published: Published, settings: &[String]) -> Result<Scenario, Error> {
        let settings: Result<Vec<Setting>, _> = settings.iter().map(|set| set.parse()).collect();
        let settings = settings.map_err(Error::from)?;
        let changes = Changes { settings, trace: None };
        let path = Path::new(published.path);
        let mut scenario = Scenario::parse_with(published.text, path, &changes, FABRIC_NAMES)?;
        if let Some(seed) = self.seed {
            scenario.run.seed = seed;
        }
        Ok(scenario)
    }
}

/// Label that distinguishes a run from others of its fabric, except for its load and its number of
/// messages, which are numbers in the results.
fn label(published: Published, settings: &[String]) -> String {
    let told = settings.iter().filter(|set| !set.starts_with("workload."));
    let told = told.filter_map(|set| set.split_once('=')).map(|(key, value)| {
        let name = key.rsplit('.').next().expect("a split has a part");
        format!("{name}={value}")
    });
    [published.name.to_owned()].into_iter().chain(told).collect::<Vec<_>>().join(", ")
}

const CHUNKS_A_MESSAGE: f64 = 6.0;

impl PlannedRun {
    /// Command that repeats the run.
    pub(crate) fn command(&self) -> String {
        let seed = self.scenario.run.seed.to_string();
        let mut words = vec!["sim", self.path, "--fabric", self.fabric.name, "--seed", &seed];
        for set in &self.settings {
            words.extend(["--set", set]);
        }
        shell_line(words.into_iter())
    }

    /// Approximate relative cost: an EDM chunk costs about 1, and a message as much as
    /// [`CHUNKS_A_MESSAGE`] chunks.
    pub(crate) fn cost(&self) -> u64 {
        let WorkloadConfig::Poisson(poisson) = &self.scenario.workload else {
            return 1;
        };
        let chunk = self.scenario.fabric.of::<EdmParameters>().chunk.0 as f64;
        let chunks = CHUNKS_A_MESSAGE + poisson.sizes.mean_bytes() / chunk;
        let per_chunk = match self.fabric.name {
            "edm" => 1.0,
            "ideal" => 0.01,
            _ => 0.3,
        };
        (poisson.messages as f64 * chunks * per_chunk) as u64 + 1
    }
}
