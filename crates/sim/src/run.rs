//! A run: one scenario on one fabric, to its end, with one result.

mod input;
mod length;

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use ethermem_units::{Bytes, Ps};

use crate::engine::{Alone, Denominator, Engine, Fabric, Loss, Observer, RunError, Way};
use crate::metrics::{MessageWay, Recorder, RunFacts, RunResult, Window};
use crate::output::{MessageWriter, OutputError, Timeline};
use crate::registry::FabricEntry;
use crate::scenario::{Length, Scenario};
use crate::workload::{LinkBlocks, Offered, Poisson, WorkloadConfig};
use crate::{Kind, Message, MessageSource, SourceError};
use input::Input;
use length::run_until_known;

/// The options of a run, beside its scenario.
pub struct RunOptions<'a> {
    /// The fabric of the run.
    pub fabric: &'a FabricEntry,
    /// The label that tells it from other runs of the fabric.
    pub label: String,
    /// The name of the scenario or trace, as the user gave it.
    pub scenario_name: String,
    /// Commit of the program, if known.
    pub commit: Option<String>,
    /// A flag that ends the run early.
    pub interrupt: &'a AtomicBool,
    /// Called now and then with the number of messages that have ended.
    pub progress: &'a (dyn Fn(u64) + Sync),
    /// The file for every message, if requested.
    pub messages: Option<MessageWriter>,
    /// The timeline for links and decisions, if requested.
    pub timeline: Option<Timeline>,
    /// True if the result must have the way of every message.
    pub ways: bool,
}

impl<'a> RunOptions<'a> {
    /// A run labelled with the fabric's name, without progress, interruption or timeline.
    #[must_use]
    pub fn of(fabric: &'a FabricEntry) -> RunOptions<'a> {
        static NEVER: AtomicBool = AtomicBool::new(false);
        RunOptions {
            fabric,
            label: fabric.name.to_owned(),
            scenario_name: String::new(),
            commit: None,
            interrupt: &NEVER,
            progress: &|_| {},
            messages: None,
            timeline: None,
            ways: false,
        }
    }
}

/// Why a run has no result.
#[derive(Debug)]
pub enum RunFailure {
    /// The workload failed, or an invariant did not hold.
    Run(RunError),
    /// An assertion did not hold; this is its message.
    Panicked(String),
    /// A file of results could not be written.
    Output(OutputError),
    /// The run was ended from outside after this many messages.
    Interrupted(u64),
}

impl std::fmt::Display for RunFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            RunFailure::Run(error) => error.fmt(f),
            RunFailure::Panicked(what) => write!(f, "assertion failed: {what}"),
            RunFailure::Output(error) => error.fmt(f),
            RunFailure::Interrupted(ended) => write!(f, "interrupted after {ended} messages"),
        }
    }
}

impl std::error::Error for RunFailure {}

/// Runs a scenario on a fabric.
///
/// The load refers to the scenario's own fabric, so that every fabric of a comparison gets the same
/// messages at the same times.
///
/// # Errors
/// [`RunFailure`]; there is no partial result.
pub fn run(scenario: &Scenario, options: RunOptions<'_>) -> Result<RunResult, RunFailure> {
    match scenario.run.length {
        Length::Given => run_given(scenario, options),
        Length::UntilKnown { events_max } => run_until_known(scenario, events_max, options),
    }
}

/// [`run`], with the number of messages that the workload has.
pub(crate) fn run_given(
    scenario: &Scenario,
    options: RunOptions<'_>,
) -> Result<RunResult, RunFailure> {
    let run = options.fabric.run;
    guarded(|| run(scenario, options))
}

/// Runs a closure and turns a panic into a failure, so that the error says how to repeat the run.
/// Nothing of the run is used after a panic.
fn guarded(run: impl FnOnce() -> Result<RunResult, RunFailure>) -> Result<RunResult, RunFailure> {
    catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|panic| Err(RunFailure::Panicked(panic_message(panic.as_ref()))))
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message").to_owned()
}

/// The command line `ethermem` with these arguments, quoted where a shell needs it.
pub fn shell_line<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let quoted = words.map(|word| shlex::try_quote(word).unwrap_or(word.into()).into_owned());
    std::iter::once("ethermem".to_owned()).chain(quoted).collect::<Vec<_>>().join(" ")
}

/// The label that tells runs of the scenario or trace with this name from runs of another one.
#[must_use]
pub fn label_of(scenario_name: &str) -> String {
    let stem = Path::new(scenario_name).file_stem();
    stem.map_or_else(|| scenario_name.to_owned(), |stem| stem.to_string_lossy().into_owned())
}

pub(crate) fn run_on<F: Fabric>(
    scenario: &Scenario,
    mut options: RunOptions<'_>,
) -> Result<RunResult, RunFailure> {
    let config = &scenario.fabric;
    let seed = scenario.run.seed;
    let refused = |error| RunFailure::Run(RunError::Source(error));
    options.fabric.check(scenario).map_err(refused)?;
    let mut input = Input::open(scenario, options.fabric).map_err(refused)?;
    let window = window(scenario, input.messages_total());
    let (recorder, load_requested) = match &scenario.workload {
        WorkloadConfig::Poisson(poisson) => {
            (Recorder::of_steady_arrivals(window), Some(poisson.load))
        }
        _ => (Recorder::new(window), None),
    };
    let mut watch = Watch::<F>::new(recorder, scenario, &mut options);
    let started = Instant::now();
    let mut engine = Engine::new(F::build(config, seed));
    if let Some(timeline) = options.timeline.take() {
        engine.draw_on(timeline, config.nodes);
    }
    if options.ways {
        engine.watch_ways();
    }
    let (end, program) =
        input.drive(engine, &mut watch, &options, scenario).map_err(RunFailure::Run)?;
    let wall_s = started.elapsed().as_secs_f64();
    if end.interrupted {
        return Err(RunFailure::Interrupted(watch.recorder.messages_finished()));
    }
    if let Some(error) = watch.failure {
        return Err(RunFailure::Output(error));
    }
    let mut notices = Vec::new();
    if let Some(timeline) = end.timeline {
        let summary = timeline.close().map_err(RunFailure::Output)?;
        notices.extend(summary.notice());
    }
    if watch.forgotten > 0 {
        notices.push(format!("{} messages were never answered", watch.forgotten));
    }
    let facts = RunFacts {
        fabric: options.fabric.name.to_owned(),
        label: options.label,
        scenario: options.scenario_name,
        seed,
        commit: options.commit,
        nodes: config.nodes,
        load_requested,
        messages_started: end.started,
        simulated: end.ended,
        events: end.events,
        wall_s,
        notices,
    };
    let ways = watch.ways.take().unwrap_or_default();
    let result = RunResult { program, ways, ..watch.recorder.finish(facts, end.stats) };
    if let Some(writer) = watch.writer {
        writer
            .close(result.steady.as_ref(), result.program.as_ref())
            .map_err(RunFailure::Output)?;
    }
    Ok(result)
}

/// The messages of a scenario, equal for every fabric that it runs on: the load refers to the
/// scenario's own fabric.
///
/// # Errors
/// The errors of [`WorkloadConfig::open`].
///
/// # Panics
/// If the scenario names no fabric of the registry.
pub fn messages(scenario: &Scenario) -> Result<Box<dyn MessageSource>, SourceError> {
    let config = &scenario.fabric;
    let blocks = blocks_of(scenario);
    scenario.workload.open(config.nodes, config.link, scenario.run.seed, &blocks)
}

/// The blocks that a message takes on its links on the scenario's own fabric.
fn blocks_of(scenario: &Scenario) -> impl Fn(Kind, Bytes) -> LinkBlocks {
    let fabric = crate::registry::find(&scenario.fabric_kind);
    let blocks = fabric.expect("a parsed scenario names a fabric").blocks;
    move |kind, bytes| blocks(&scenario.fabric, kind, bytes)
}

/// The load that a scenario's synthetic messages offer to its own fabric; `None` for others.
///
/// # Errors
/// The errors of [`Poisson::new`].
///
/// # Panics
/// In the cases of [`messages`].
pub fn offered(scenario: &Scenario) -> Result<Option<Offered>, SourceError> {
    let WorkloadConfig::Poisson(config) = &scenario.workload else { return Ok(None) };
    let (fabric, seed) = (&scenario.fabric, scenario.run.seed);
    let source = Poisson::new(config, fabric.nodes, fabric.link, seed, &blocks_of(scenario))?;
    Ok(Some(source.offered()))
}

/// The scenario with the arrivals that it has if its load counts only data, on the links of `base`,
/// whatever framing its fabric adds. A trace stays unchanged.
///
/// # Errors
/// The errors of [`offered`].
pub fn with_load_of_data(scenario: &Scenario, base: &Scenario) -> Result<Scenario, SourceError> {
    let mut changed = scenario.clone();
    let WorkloadConfig::Poisson(poisson) = &mut changed.workload else { return Ok(changed) };
    let (Some(own), Some(of_base)) = (offered(scenario)?, offered(base)?) else {
        return Ok(changed);
    };
    let data_load = of_base.goodput_gbps_busiest / base.fabric.link.as_gbps_f64();
    let rate = of_base.messages_per_s * of_base.load / data_load;
    poisson.load *= rate / own.messages_per_s;
    Ok(changed)
}

fn window(scenario: &Scenario, messages_total: Option<u64>) -> Window {
    let Some(total) = messages_total else { return Window::ALL };
    let share = |fraction: f64| (total as f64 * fraction) as u64;
    Window::cut(total, share(scenario.run.warmup_fraction), share(scenario.run.cooldown_fraction))
}

/// Passes the outcomes of a run to the statistics, and to the file of messages.
struct Watch<F: Fabric> {
    recorder: Recorder,
    alone: Alone<F>,
    /// For a bound: see [`bounded`].
    bounded: Option<(Box<dyn Denominator>, u64)>,
    writer: Option<MessageWriter>,
    failure: Option<OutputError>,
    forgotten: u64,
    /// The way of the message whose outcome comes next.
    way: Way,
    ways: Option<Vec<MessageWay>>,
}

/// The denominators of the scenario's own fabric, with which a bound is compared, and the largest
/// message of that fabric. `None` if this fabric is not a bound, or the scenario's own is one.
fn bounded(scenario: &Scenario, fabric: &FabricEntry) -> Option<(Box<dyn Denominator>, u64)> {
    let own = crate::registry::find(&scenario.fabric_kind).filter(|own| !own.is_bound)?;
    fabric.is_bound.then(|| ((own.denominator)(&scenario.fabric), own.message_bytes_max))
}

impl<F: Fabric> Watch<F> {
    /// Takes the writer of the options.
    fn new(recorder: Recorder, scenario: &Scenario, options: &mut RunOptions<'_>) -> Watch<F> {
        Watch {
            recorder,
            alone: Alone::new(&scenario.fabric),
            bounded: bounded(scenario, options.fabric),
            writer: options.messages.take(),
            failure: None,
            forgotten: 0,
            way: Way::default(),
            ways: options.ways.then(Vec::new),
        }
    }

    /// The denominator of the message's slowdown.
    #[inline]
    fn denominator(&mut self, message: &Message) -> Ps {
        match &mut self.bounded {
            Some((denominator, most)) if message.bytes.0 <= *most => denominator.time_of(message),
            _ => self.alone.time_of(message),
        }
    }

    fn write(&mut self, message: &Message, ended: Option<(Ps, Ps)>) {
        if let Some(writer) = &mut self.writer {
            let written = match ended {
                Some((finished, alone)) => writer.finished(message, finished, alone),
                None => writer.lost(message),
            };
            if let Err(error) = written {
                self.failure = Some(error);
                self.writer = None;
            }
        }
    }
}

impl<F: Fabric> Observer for Watch<F> {
    fn way(&mut self, way: Way) {
        self.way = way;
    }

    #[inline]
    fn outcome(&mut self, message: &Message, outcome: Result<Ps, Loss>) {
        match outcome {
            Ok(finished) => {
                let alone = self.denominator(message);
                self.recorder.record(message, finished, alone);
                if let Some(ways) = &mut self.ways {
                    let Way { at_memory, leaves } = self.way;
                    // In a fabric without links all data leaves as soon as it can.
                    let leaves = leaves.or(at_memory).unwrap_or(message.arrival);
                    let message = *message;
                    ways.push(MessageWay { message, at_memory, leaves, finished, alone });
                }
                self.write(message, Some((finished, alone)));
            }
            Err(loss) => {
                self.forgotten += u64::from(loss == Loss::Forgotten);
                self.recorder.lost(message);
                self.write(message, None);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_assertion_is_a_failure_with_its_message() {
        for panicking in [
            || -> Result<RunResult, RunFailure> { panic!("port {} granted twice", 3) },
            || -> Result<RunResult, RunFailure> { panic!("port 3 granted twice") },
        ] {
            let failure = guarded(panicking).unwrap_err();
            assert_eq!(failure.to_string(), "assertion failed: port 3 granted twice");
        }
    }

    #[test]
    fn a_command_is_quoted_for_a_shell() {
        let words = ["sim", "my file.toml", "--set", "a=b"];
        assert_eq!(shell_line(words.into_iter()), "ethermem sim 'my file.toml' --set 'a=b'");
        let split = shlex::split(&shell_line(words.into_iter())).unwrap();
        assert_eq!(split[1..], words);
    }

    #[test]
    fn a_label_is_the_name_without_folders_and_extension() {
        assert_eq!(label_of("scenarios/app-spark.toml"), "app-spark");
        assert_eq!(label_of(".."), "..");
    }

    #[test]
    fn messages_that_a_fabric_cannot_move_are_refused_in_a_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = folder.path().join("t.csv");
        let rows = "arrival_ns,kind,compute,memory,bytes\n0,write,0,1,64\n9,write,0,1,4194241\n";
        std::fs::write(&trace, rows).expect("written");
        let traced = "[fabric]\nnodes = 2\n[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\n";
        let drawn = "[workload]\nsize_cdf = \"web-search\"\nmessages = 5\nread_fraction = 0\n";
        for (text, most) in [(traced, 4_194_241), (drawn, 29_200_000)] {
            let path = folder.path().join("s.toml");
            let scenario = Scenario::parse(text, &path, crate::registry::FABRIC_NAMES);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            let on = |name| {
                let fabric = crate::registry::find(name).expect("of the registry");
                run(&scenario, RunOptions::of(fabric)).map_err(|error| error.to_string())
            };
            let expected =
                format!("fabric edm moves at most 4194240 B in a message, and one has {most}");
            assert_eq!(on("edm").expect_err("too long"), expected);
            assert!(on("pfabric").is_ok());
        }
    }
}
