//! Sentences of the documentation that rank fabrics hold, and name the command that shows it.
//!
//! The fast form runs each statement where it must hold, once, and compares the page
//! `docs/rankings.md`; with `UPDATE_GOLDEN` it writes the page. `ETHERMEM_RANKINGS=whole` runs
//! every statement on every workload with three seeds and two lengths, which takes hours.

mod page;
mod statements;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use ethermem_sim::metrics::{KindStats, SteadyState};
use ethermem_sim::registry::FABRIC_NAMES;
use ethermem_sim::scenario::{Changes, Scenario};

use self::statements::{Behind, Contender, STATEMENTS, Statement};
use crate::support::run_scenario;

/// EDM itself, its artifact, bounds that cannot be built, and racks, which have another network.
const NO_RIVALS: [&str; 6] =
    ["edm", "edm-artifact", "ideal", "output-queued", "dfabric", "tor-rack"];
const SHOWN: [&str; 2] = ["hadoop", "memcached"];
const SEEDS: [u64; 3] = [1, 2, 3];

/// A workload: its name, its key, and its number of messages. Every run is also made with four
/// times as many.
struct Workload {
    name: &'static str,
    key: &'static str,
    messages: u64,
}

const WORKLOADS: [Workload; 8] = [
    Workload { name: "64 B", key: "workload.message_bytes=64", messages: 30_000 },
    Workload { name: "1 KiB", key: "workload.message_bytes=1024", messages: 10_000 },
    Workload { name: "4 KiB", key: "workload.message_bytes=4096", messages: 5_000 },
    Workload { name: "hadoop", key: "workload.size_cdf=hadoop", messages: 1_000 },
    Workload { name: "spark", key: "workload.size_cdf=spark", messages: 1_000 },
    Workload { name: "sparksql", key: "workload.size_cdf=sparksql", messages: 1_000 },
    Workload { name: "graphlab", key: "workload.size_cdf=graphlab", messages: 1_000 },
    Workload { name: "memcached", key: "workload.size_cdf=memcached", messages: 1_000 },
];

/// What identifies a run.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Run {
    contender: Contender,
    workload: usize,
    load: String,
    read_fraction: String,
    seed: u64,
    times: u64,
}

impl Run {
    fn settings(&self) -> Vec<String> {
        let Workload { key, messages, .. } = WORKLOADS[self.workload];
        let mut settings = vec![key.to_owned()];
        settings.extend(self.contender.settings.iter().map(|set| (*set).to_owned()));
        settings.push(format!("workload.load={}", self.load));
        settings.push(format!("workload.read_fraction={}", self.read_fraction));
        settings.push(format!("workload.messages={}", messages * self.times));
        settings.push(format!("run.seed={}", self.seed));
        settings
    }

    /// The numbers; none if the load is not sustained.
    fn measure(&self) -> Option<KindStats> {
        let settings = self.settings().iter().map(|set| set.parse().expect("a setting")).collect();
        let changes = Changes { settings, trace: None };
        let text = "[fabric]\nnodes = 32\n";
        let path = Path::new("rankings.toml");
        let scenario = Scenario::parse_with(text, path, &changes, FABRIC_NAMES);
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let result = run_scenario(&scenario, self.contender.fabric, None);
        let steady = result.steady.as_ref().expect("synthetic messages");
        (steady.state != SteadyState::NotSustained).then_some(result.kinds.all)
    }
}

/// Outcome of a statement on one workload.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    /// Runs in which it holds.
    held: u64,
    /// Runs in which its fabric sustains the load and has another fabric to be compared with.
    compared: u64,
    runs: u64,
}

impl Statement {
    fn behind(&self) -> Vec<Contender> {
        match self.behind {
            Behind::These(these) => these.to_vec(),
            Behind::Rivals => FABRIC_NAMES
                .iter()
                .filter(|fabric| !NO_RIVALS.contains(fabric))
                .map(|fabric| Contender { fabric, settings: &[] })
                .collect(),
        }
    }

    fn run(&self, contender: Contender, workload: usize, seed: u64, times: u64) -> Run {
        let (load, read_fraction) = (self.load.to_string(), self.read_fraction.to_string());
        Run { contender, workload, load, read_fraction, seed, times }
    }

    /// All that it needs on a workload, for these seeds and lengths.
    fn runs(&self, workload: usize, of: &[(u64, u64)]) -> Vec<Run> {
        let mut contenders = self.behind();
        contenders.push(self.ahead);
        let runs = of.iter().flat_map(|&(seed, times)| {
            contenders.iter().map(move |&contender| self.run(contender, workload, seed, times))
        });
        runs.collect()
    }

    fn count(&self, workload: usize, of: &[(u64, u64)], numbers: &Numbers) -> Count {
        let mut count = Count { runs: of.len() as u64, ..Count::default() };
        for &(seed, times) in of {
            let number = |contender| {
                let run = self.run(contender, workload, seed, times);
                numbers[&run].as_ref().and_then(|all| (self.number.of)(all))
            };
            let theirs: Vec<f64> = self.behind().into_iter().filter_map(number).collect();
            let Some(ours) = number(self.ahead).filter(|_| !theirs.is_empty()) else { continue };
            count.compared += 1;
            count.held += u64::from(theirs.iter().all(|&theirs| ours < theirs));
        }
        count
    }
}

type Numbers = HashMap<Run, Option<KindStats>>;

/// Runs all, each once, on every processor.
fn measure(mut runs: Vec<Run>) -> Numbers {
    runs.sort();
    runs.dedup();
    let (left, numbers) = (Mutex::new(runs), Mutex::new(Numbers::new()));
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                while let Some(run) = { left.lock().expect("no panic").pop() } {
                    let found = run.measure();
                    numbers.lock().expect("no panic").insert(run, found);
                }
            });
        }
    });
    numbers.into_inner().expect("no panic")
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn statements_that_rank_fabrics_hold_where_they_are_made() {
    let is_whole = std::env::var_os("ETHERMEM_RANKINGS").is_some();
    let whole: Vec<(u64, u64)> = SEEDS.iter().flat_map(|&seed| [(seed, 1), (seed, 4)]).collect();
    let of: &[(u64, u64)] = if is_whole { &whole } else { &[(1, 1)] };
    let is_asked = |statement: &Statement, at: usize| {
        // What is claimed nowhere is shown on the shortest and the longest application.
        let shown = if statement.holds.is_empty() { &SHOWN[..] } else { statement.holds };
        is_whole || shown.contains(&WORKLOADS[at].name)
    };
    let mut runs = Vec::new();
    for statement in STATEMENTS {
        for at in (0..WORKLOADS.len()).filter(|&at| is_asked(statement, at)) {
            runs.extend(statement.runs(at, of));
        }
    }
    let numbers = measure(runs);
    let mut table = Vec::new();
    for statement in STATEMENTS {
        let counts = (0..WORKLOADS.len())
            .map(|at| is_asked(statement, at).then(|| statement.count(at, of, &numbers)))
            .collect::<Vec<_>>();
        for (at, count) in counts.iter().enumerate() {
            let Some(count) = count.filter(|_| statement.holds.contains(&WORKLOADS[at].name))
            else {
                continue;
            };
            let holds = count.held == count.runs;
            assert!(holds, "{} {}: {count:?}", statement.id, WORKLOADS[at].name);
        }
        table.push((statement, counts));
    }
    if is_whole {
        table.iter().for_each(|(statement, counts)| println!("{}: {counts:?}", statement.id));
    } else {
        page::hold(&table);
    }
}

/// A sentence with one of these words ranks fabrics, and its paragraph links to the page.
const WORDS: [&str; 8] = [
    "ahead of",
    "is behind",
    "the least of all",
    "leads in",
    "is the lowest",
    "has the lower",
    "has a lower mean",
    "is first in",
];

#[test]
fn paragraphs_that_rank_fabrics_link_to_the_statement() {
    let ids: Vec<String> =
        STATEMENTS.iter().map(|statement| format!("rankings.md#{}", statement.id)).collect();
    let mut linked = Vec::new();
    for path in ["README.md", "docs/figure8.md", "docs/study.md", "docs/benchmarks.md"] {
        let text = std::fs::read_to_string(root().join(path)).expect(path);
        for paragraph in text.split("\n\n").flat_map(|block| block.split("\n- ")) {
            for link in paragraph.split("rankings.md#").skip(1) {
                let id = link.split(')').next().expect("a split has a part");
                assert!(ids.contains(&format!("rankings.md#{id}")), "{path}: no statement {id}");
                linked.push(id.to_owned());
            }
            if paragraph.starts_with('#') {
                continue;
            }
            let names_fabric = FABRIC_NAMES.iter().chain(&["EDM", "Homa", "TCP", "CXL"]);
            let ranks = WORDS.iter().any(|word| paragraph.contains(word))
                && names_fabric.clone().any(|name| paragraph.contains(name));
            let is_linked = paragraph.contains("rankings.md#");
            assert!(!ranks || is_linked, "{path}: this ranks fabrics without a link:\n{paragraph}");
        }
    }
    for statement in STATEMENTS {
        assert!(linked.iter().any(|id| id == statement.id), "no document has {}", statement.id);
    }
}
