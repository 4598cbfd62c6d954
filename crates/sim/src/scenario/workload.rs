//! The tables `workload` and `run`.

use std::path::Path;

use ethermem_units::Bytes;

use super::{Length, RunConfig, program};
use crate::config::FabricConfig;
use crate::keys::node;
use crate::keys::{Table, as_number, as_text};
use crate::workload::{
    InputError, MESSAGE_BYTES_MAX, Pattern, PoissonConfig, SizeDistribution, TraceConfig,
    TraceFormat, WorkloadConfig, built_in, built_in_names, read_size_cdf,
};

/// Maximum number of messages of a synthetic run.
const MESSAGES_MAX: u64 = 1_000_000_000;
/// Default number of messages for commands that need it beforehand.
const MESSAGES_DEFAULT: u64 = 100_000;
/// Default bound on the events of a run with `messages = "auto"`: some seconds.
const EVENTS_MAX: u64 = 50_000_000;
/// Two loads with some decimals each may sum to a last bit more than 1.
const LOAD_SLACK: f64 = 1e-9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Poisson,
    Trace,
    Program,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PatternName {
    AllToAll,
    Incast,
    Permutation,
    HotSpot,
}

/// Reads the workload, and whether its number of messages is "auto"; files are looked up from
/// `folder`.
pub(super) fn read(
    root: &Table<'_>,
    fabric: &FabricConfig,
    folder: &Path,
) -> Result<(WorkloadConfig, bool), InputError> {
    let table = root.table("workload")?;
    let kinds = [("poisson", Kind::Poisson), ("trace", Kind::Trace), ("program", Kind::Program)];
    let kind = table.choice("kind", &kinds)?;
    let (poisson, is_auto) = poisson(&table, fabric, folder)?;
    let trace = trace(&table, folder)?;
    let program = program::read(&table, fabric.nodes, folder, kind == Kind::Program)?;
    for key in POISSON_KEYS {
        table.only(key, "with workload.kind = \"poisson\"", kind == Kind::Poisson)?;
    }
    for key in ["trace", "trace_format"] {
        table.only(key, "with workload.kind = \"trace\"", kind == Kind::Trace)?;
    }
    let workload = match (kind, trace) {
        (Kind::Poisson, _) => {
            check_load(&table, poisson.load, fabric.background.load)?;
            WorkloadConfig::Poisson(poisson)
        }
        (Kind::Trace, Some(trace)) => WorkloadConfig::Trace(trace),
        (Kind::Trace, None) => {
            let problem = "workload.kind = \"trace\" needs a file";
            return Err(table.error("trace", problem));
        }
        (Kind::Program, _) => program,
    };
    table.finish()?;
    Ok((workload, is_auto))
}

/// Every key that only synthetic messages have.
const POISSON_KEYS: [&str; 12] = [
    "pattern",
    "incast_fan_in",
    "incast_receiver",
    "hot_spot_fraction",
    "hot_spot_node",
    "load",
    "message_bytes",
    "size_cdf",
    "size_application",
    "read_fraction",
    "rmw_fraction",
    "messages",
];

fn poisson(
    table: &Table<'_>,
    fabric: &FabricConfig,
    folder: &Path,
) -> Result<(PoissonConfig, bool), InputError> {
    let pattern = pattern(table, fabric.nodes)?;
    let load = table.read("load", 0.8, OVER_0_TO_1, over_0_to_1)?.unwrap_or(0.8);
    let sizes = sizes(table, folder)?;
    let read_fraction = table.number("read_fraction", 0.5, 0.0..=1.0)?;
    let rmw_fraction = table.number("rmw_fraction", 0.0, 0.0..=1.0)?;
    if read_fraction + rmw_fraction > 1.0 + LOAD_SLACK {
        let problem = format!(
            "with workload.read_fraction = {read_fraction} more than all messages: must be a \
             sum of at most 1"
        );
        return Err(table.error("rmw_fraction", problem));
    }
    let given = table.integer_or_auto("messages", 1..=MESSAGES_MAX)?;
    let messages = given.unwrap_or(MESSAGES_DEFAULT);
    let config = PoissonConfig { pattern, load, sizes, read_fraction, rmw_fraction, messages };
    Ok((config, given.is_none()))
}

fn pattern(table: &Table<'_>, nodes: u16) -> Result<Pattern, InputError> {
    let name = table.choice(
        "pattern",
        &[
            ("all-to-all", PatternName::AllToAll),
            ("incast", PatternName::Incast),
            ("permutation", PatternName::Permutation),
            ("hot-spot", PatternName::HotSpot),
        ],
    )?;
    let others = u64::from(nodes) - 1;
    let fan_in = table.bounded("incast_fan_in", (others, "nodes - 1"), (1, others, "nodes - 1"))?;
    let receiver = node(table, "incast_receiver", nodes)?;
    let fraction = table.read("hot_spot_fraction", 0.2, OVER_0_TO_1, over_0_to_1)?.unwrap_or(0.2);
    let hot_node = node(table, "hot_spot_node", nodes)?;
    for key in ["incast_fan_in", "incast_receiver"] {
        table.only(key, "with workload.pattern = \"incast\"", name == PatternName::Incast)?;
    }
    for key in ["hot_spot_fraction", "hot_spot_node"] {
        table.only(key, "with workload.pattern = \"hot-spot\"", name == PatternName::HotSpot)?;
    }
    Ok(match name {
        PatternName::AllToAll => Pattern::AllToAll,
        PatternName::Incast => Pattern::Incast { fan_in: fan_in as u16, receiver },
        PatternName::Permutation => Pattern::Permutation,
        PatternName::HotSpot => Pattern::HotSpot { fraction, node: hot_node },
    })
}

const OVER_0_TO_1: &str = "over 0 to 1";

fn over_0_to_1(value: &toml::de::DeValue<'_>) -> Option<f64> {
    as_number(value).filter(|&value| value > 0.0 && value <= 1.0)
}

/// Checks that a synthetic load leaves the background its share.
fn check_load(table: &Table<'_>, load: f64, background: f64) -> Result<(), InputError> {
    if load + background <= 1.0 + LOAD_SLACK {
        return Ok(());
    }
    let problem = format!(
        "with background.load = {background} more than a link carries: must be a sum of at \
         most 1"
    );
    Err(table.error("load", problem))
}

fn sizes(table: &Table<'_>, folder: &Path) -> Result<SizeDistribution, InputError> {
    let bytes = table.integer("message_bytes", 64, 1..=MESSAGE_BYTES_MAX)?;
    let text = |value: &toml::de::DeValue<'_>| as_text(value).map(str::to_owned);
    let path = table.read("size_cdf", "none", "a file", text)?;
    let application = table.read("size_application", "none", "a name of the file", text)?;
    table.only("size_application", "with workload.size_cdf", path.is_some())?;
    let Some(path) = path else {
        return Ok(SizeDistribution::fixed(Bytes(bytes)));
    };
    table.only("message_bytes", "without workload.size_cdf", false)?;
    let file = folder.join(&path);
    if file.exists() {
        return read_size_cdf(&file, application.as_deref());
    }
    let built_in = built_in(&path).ok_or_else(|| {
        let names = built_in_names().join(", ");
        table.error("size_cdf", format!("no such file: must be files and {names}"))
    })?;
    table.only("size_application", "with a file of several applications", false)?;
    Ok(built_in)
}

fn trace(table: &Table<'_>, folder: &Path) -> Result<Option<TraceConfig>, InputError> {
    let text = |value: &toml::de::DeValue<'_>| as_text(value).map(str::to_owned);
    let path = table.read("trace", "none", "a file", text)?;
    let formats = TraceFormat::ALL.map(|format| (format.name(), format));
    let format = table.choice_or("trace_format", "by the extension of trace", &formats)?;
    let Some(path) = path else { return Ok(None) };
    let path = folder.join(path);
    let format = format.or_else(|| TraceFormat::of_path(&path)).ok_or_else(|| {
        let problem = "its extension names no format: must be .csv, .parquet, or any with \
                       workload.trace_format";
        table.error("trace", problem)
    })?;
    Ok(Some(TraceConfig { path, format }))
}

/// Reads how the run is made; by default all messages of a trace or a program are measured.
pub(super) fn read_run(
    root: &Table<'_>,
    workload: &WorkloadConfig,
    is_auto: bool,
) -> Result<RunConfig, InputError> {
    let table = root.table("run")?;
    let cut = match workload {
        WorkloadConfig::Poisson(_) => 0.05,
        _ => 0.0,
    };
    let fraction = |key: &str| {
        let below_1 = |value: &toml::de::DeValue<'_>| {
            as_number(value).filter(|value| (0.0..1.0).contains(value))
        };
        let value = table.read(key, "0.05, for traces and programs 0", "0 to under 1", below_1)?;
        Ok::<f64, InputError>(value.unwrap_or(cut))
    };
    let seed = table.integer("seed", 1, 0..=u64::MAX)?;
    let (warmup_fraction, cooldown_fraction) =
        (fraction("warmup_fraction")?, fraction("cooldown_fraction")?);
    if warmup_fraction + cooldown_fraction >= 1.0 {
        let key =
            if table.has("cooldown_fraction") { "cooldown_fraction" } else { "warmup_fraction" };
        let problem = "with the other end nothing is left to measure: must be a sum under 1";
        return Err(table.error(key, problem));
    }
    let events_max = table.integer("events_max", EVENTS_MAX, 1_000..=1_000_000_000_000)?;
    let is_auto = is_auto && matches!(workload, WorkloadConfig::Poisson(_));
    table.only("events_max", "with workload.messages = \"auto\"", is_auto)?;
    let length = if is_auto { Length::UntilKnown { events_max } } else { Length::Given };
    table.finish()?;
    Ok(RunConfig { seed, warmup_fraction, cooldown_fraction, length })
}
