//! Helpers of the simulator's tests: fabrics driven message by message, and whole scenarios.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use ethermem_sim::engine::{Engine, Fabric, Handle, Loss, Observer, RunEnd, Sim, Violation};
use ethermem_sim::metrics::{FabricStats, RunResult};
use ethermem_sim::output::MessageWriter;
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::LinkBlocks;
use ethermem_sim::{FabricConfig, Kind, Message, MessageSource, NodeIndex, SourceError, registry};
use ethermem_units::{Bytes, Ps};

/// Every valid link rate of a scenario, in Gb/s.
pub(crate) const LINK_GBPS: [u64; 6] = [10, 25, 40, 100, 200, 400];

/// The configuration of a scenario with only `keys` in `[fabric]`.
pub(crate) fn fabric_config(keys: &str) -> FabricConfig {
    scenario(&format!("[fabric]\n{keys}\n")).fabric
}

/// A scenario from its text.
pub(crate) fn scenario(text: &str) -> Scenario {
    match Scenario::parse(text, Path::new("test.toml"), registry::FABRIC_NAMES) {
        Ok(scenario) => scenario,
        Err(error) => panic!("{error}\n{text}"),
    }
}

/// A message of a hand-made case; [`run_messages`] numbers the messages.
pub(crate) fn message(
    arrival: Ps,
    kind: Kind,
    compute: NodeIndex,
    memory: NodeIndex,
    bytes: u64,
) -> Message {
    Message { index: 0, arrival, kind, compute, memory, bytes: Bytes(bytes) }
}

struct List(std::vec::IntoIter<Message>);

impl MessageSource for List {
    fn next_message(&mut self) -> Result<Option<Message>, SourceError> {
        Ok(self.0.next())
    }

    fn messages_total(&self) -> Option<u64> {
        Some(self.0.len() as u64)
    }
}

struct Finished(Vec<Option<Ps>>, u64);

impl Observer for Finished {
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>) {
        let Ok(at) = outcome else {
            self.1 += 1;
            return;
        };
        let before = self.0[message.index as usize].replace(at);
        assert_eq!(before, None, "{message:?} finished twice");
    }
}

/// Runs messages, in order of arrival, on a fabric with seed 1; returns when each finished.
pub(crate) fn run_messages<F: Fabric>(
    config: &FabricConfig,
    messages: &[Message],
) -> (Vec<Ps>, RunEnd) {
    run_messages_from::<F>(1, config, messages)
}

/// Runs as [`run_messages`] does, with another seed.
pub(crate) fn run_messages_from<F: Fabric>(
    seed: u64,
    config: &FabricConfig,
    messages: &[Message],
) -> (Vec<Ps>, RunEnd) {
    let (finished, lost, end) = run_messages_with_loss::<F>(seed, config, messages);
    assert_eq!(lost, 0, "messages were lost");
    (finished.into_iter().map(|at| at.expect("every message finishes")).collect(), end)
}

/// Runs as [`run_messages_from`] does, but allows losses; also returns their number.
pub(crate) fn run_messages_with_loss<F: Fabric>(
    seed: u64,
    config: &FabricConfig,
    messages: &[Message],
) -> (Vec<Option<Ps>>, u64, RunEnd) {
    let numbered = messages.iter().enumerate();
    let numbered: Vec<_> = numbered.map(|(n, m)| Message { index: n as u64, ..*m }).collect();
    let mut finished = Finished(vec![None; messages.len()], 0);
    let end = Engine::new(F::build(config, seed))
        .run(&mut List(numbered.into_iter()), &mut finished, &AtomicBool::new(false), &|_| {})
        .unwrap_or_else(|error| panic!("{error}"));
    (finished.0, finished.1, end)
}

/// A fabric that a test inspects while it runs.
pub(crate) trait Watch: Fabric {
    /// Called after every event.
    fn look(&self, _now: Ps) {}

    /// Called once, when a run has ended.
    fn end(&self) {}
}

/// A fabric that runs unchanged and is inspected after every event.
pub(crate) struct Watched<F>(F);

impl<F: Watch> Fabric for Watched<F> {
    type Event = F::Event;
    type Parameters = F::Parameters;

    fn build(config: &FabricConfig, seed: u64) -> Watched<F> {
        Watched(F::build(config, seed))
    }

    fn submit(&mut self, sim: &mut Sim<F::Event>, handle: Handle, message: &Message) {
        self.0.submit(sim, handle, message);
    }

    fn handle(&mut self, sim: &mut Sim<F::Event>, event: F::Event) {
        self.0.handle(sim, event);
        self.0.look(sim.now());
    }

    fn period(&self) -> Bytes {
        self.0.period()
    }

    fn blocks(config: &FabricConfig, kind: Kind, bytes: Bytes) -> LinkBlocks {
        F::blocks(config, kind, bytes)
    }

    fn close(&self, ended: Ps) -> Result<FabricStats, Violation> {
        self.0.end();
        self.0.close(ended)
    }
}

/// Runs a scenario on one fabric, as the command does.
pub(crate) fn run_scenario(
    scenario: &Scenario,
    fabric: &str,
    messages: Option<&Path>,
) -> RunResult {
    let messages = messages.map(|path| MessageWriter::create(path).expect("a writable file"));
    let fabric = registry::find(fabric).expect("a fabric of the registry");
    let scenario_name = "test.toml".to_owned();
    let options = RunOptions { scenario_name, messages, ..RunOptions::of(fabric) };
    run(scenario, options).unwrap_or_else(|error| panic!("{}, {scenario:?}: {error}", fabric.name))
}

/// Compares a page of `docs` with what was measured; with `UPDATE_GOLDEN` in the environment,
/// writes it before.
pub(crate) fn hold_page(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, page).expect("docs is writable");
    }
    let known = std::fs::read_to_string(&path).expect("the page exists");
    for (number, (known, now)) in known.lines().zip(page.lines()).enumerate() {
        assert_eq!(known, now, "{name}, line {}", number + 1);
    }
    assert_eq!(known.len(), page.len(), "{name}");
}
