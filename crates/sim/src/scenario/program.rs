//! The table `workload.program`: a program by its name and its parameters.

use std::path::Path;

use ethermem_units::{Bytes, Ps};

use crate::keys::{Table, as_number, as_text, node};
use crate::workload::program::{
    Algorithm, BroadcastShape, ExecutionTraceConfig, ProgramConfig, STEPS_MAX,
};
use crate::workload::{InputError, MESSAGE_BYTES_MAX, WorkloadConfig};

/// Longest computation: 1 s.
const COMPUTE_NS_MAX: f64 = 1e9;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Name {
    RingAllreduce,
    HierarchicalAllreduce,
    AllToAll,
    Gather,
    Broadcast,
    Supersteps,
    Shuffle,
    KeyValue,
    ExecutionTrace,
}

const NAMES: [(&str, Name); 9] = [
    ("ring-allreduce", Name::RingAllreduce),
    ("hierarchical-allreduce", Name::HierarchicalAllreduce),
    ("all-to-all", Name::AllToAll),
    ("gather", Name::Gather),
    ("broadcast", Name::Broadcast),
    ("supersteps", Name::Supersteps),
    ("shuffle", Name::Shuffle),
    ("key-value", Name::KeyValue),
    (ExecutionTraceConfig::NAME, Name::ExecutionTrace),
];

/// Programs that are repeated.
const REPEATED: [Name; 7] = [
    Name::RingAllreduce,
    Name::HierarchicalAllreduce,
    Name::AllToAll,
    Name::Gather,
    Name::Broadcast,
    Name::Supersteps,
    Name::Shuffle,
];
/// Programs that have parameters, and no files.
const PARAMETRIC: [Name; 8] = [
    Name::RingAllreduce,
    Name::HierarchicalAllreduce,
    Name::AllToAll,
    Name::Gather,
    Name::Broadcast,
    Name::Supersteps,
    Name::Shuffle,
    Name::KeyValue,
];

/// Keys that only some programs have, and which ones.
const OWN_KEYS: [(&str, &[Name], &str); 15] = [
    ("bytes", &PARAMETRIC, "with a program other than \"execution-trace\""),
    ("iterations", &REPEATED, "with a program other than \"key-value\" and \"execution-trace\""),
    ("compute_ns", &PARAMETRIC, "with a program other than \"execution-trace\""),
    ("groups", &[Name::HierarchicalAllreduce], "with program \"hierarchical-allreduce\""),
    ("root", &[Name::Gather, Name::Broadcast], "with program \"gather\" or \"broadcast\""),
    ("shape", &[Name::Broadcast], "with program \"broadcast\""),
    ("mappers", &[Name::Shuffle], "with program \"shuffle\""),
    ("reduce_ns", &[Name::Shuffle], "with program \"shuffle\""),
    ("message_bytes", &[Name::Shuffle], "with program \"shuffle\""),
    ("clients", &[Name::KeyValue], "with program \"key-value\""),
    ("requests", &[Name::KeyValue], "with program \"key-value\""),
    ("read_fraction", &[Name::KeyValue], "with program \"key-value\""),
    ("think_ns", &[Name::KeyValue], "with program \"key-value\""),
    ("in_flight", &[Name::Shuffle, Name::KeyValue], "with program \"shuffle\" or \"key-value\""),
    ("trace", &[Name::ExecutionTrace], "with program \"execution-trace\""),
];

/// Reads the program, for a network of `nodes`; files are looked up from `folder`. `is_used` says
/// that the scenario runs it.
pub(super) fn read(
    workload: &Table<'_>,
    nodes: u16,
    folder: &Path,
    is_used: bool,
) -> Result<WorkloadConfig, InputError> {
    workload.only("program", "with workload.kind = \"program\"", is_used)?;
    let table = workload.table("program")?;
    let name = table.choice("name", &NAMES)?;
    let bytes = Bytes(table.integer("bytes", 65_536, 1..=MESSAGE_BYTES_MAX)?);
    let iterations = table.integer("iterations", 1, 1..=1_000_000)? as u32;
    let compute = compute_ns(&table, "compute_ns")?;
    let algorithm = algorithm(&table, name, nodes)?;
    let text = |value: &toml::de::DeValue<'_>| as_text(value).map(str::to_owned);
    let trace = table.read("trace", "none", "a file", text)?;
    for (key, names, when) in OWN_KEYS {
        table.only(key, when, names.contains(&name))?;
    }
    let workload = match (algorithm, trace) {
        (Some(algorithm), _) => {
            let config = ProgramConfig { algorithm, bytes, iterations, compute };
            if is_used {
                check(&table, &config, nodes)?;
            }
            WorkloadConfig::Program(config)
        }
        (None, Some(prefix)) => {
            WorkloadConfig::ExecutionTrace(ExecutionTraceConfig { prefix: folder.join(prefix) })
        }
        (None, None) => {
            let problem = "program \"execution-trace\" needs the start of its files' names";
            return Err(table.error("trace", problem));
        }
    };
    table.finish()?;
    Ok(workload)
}

/// Reads the parameters that only some programs have; `None` for traces.
fn algorithm(table: &Table<'_>, name: Name, nodes: u16) -> Result<Option<Algorithm>, InputError> {
    let groups = table.integer("groups", 2, 2..=256)? as u16;
    let root = node(table, "root", nodes)?;
    let shapes = [("tree", BroadcastShape::Tree), ("flat", BroadcastShape::Flat)];
    let shape = table.choice("shape", &shapes)?;
    let others = u64::from(nodes) - 1;
    let part = |key: &str, default: (u64, &str)| {
        table.bounded(key, default, (1, others, "nodes - 1")).map(|nodes| nodes as u16)
    };
    let mappers = part("mappers", ((u64::from(nodes) * 3 / 4).max(1), "3/4 of nodes"))?;
    let reduce = compute_ns(table, "reduce_ns")?;
    let message_bytes = Bytes(table.integer("message_bytes", 65_536, 1..=MESSAGE_BYTES_MAX)?);
    let clients = part("clients", (u64::from(nodes) / 2, "1/2 of nodes"))?;
    let requests = table.integer("requests", 100, 1..=1_000_000)? as u32;
    let reads = table.number("read_fraction", 0.9, 0.0..=1.0)?;
    let think = compute_ns(table, "think_ns")?;
    let in_flight = table.integer("in_flight", 4, 1..=1_024)? as u32;
    Ok(Some(match name {
        Name::RingAllreduce => Algorithm::RingAllreduce,
        Name::HierarchicalAllreduce => Algorithm::HierarchicalAllreduce { groups },
        Name::AllToAll => Algorithm::AllToAll,
        Name::Gather => Algorithm::Gather { root },
        Name::Broadcast => Algorithm::Broadcast { root, shape },
        Name::Supersteps => Algorithm::Supersteps,
        Name::Shuffle => Algorithm::Shuffle { mappers, reduce, message_bytes, in_flight },
        Name::KeyValue => Algorithm::KeyValue { clients, requests, in_flight, reads, think },
        Name::ExecutionTrace => return Ok(None),
    }))
}

/// Reads a computation, to the nearest picosecond.
fn compute_ns(table: &Table<'_>, key: &str) -> Result<Ps, InputError> {
    let time = table.read(key, 0, "0 to 1000000000", |value| {
        Ps::from_ns_f64(as_number(value).filter(|ns| (0.0..=COMPUTE_NS_MAX).contains(ns))?)
    })?;
    Ok(time.unwrap_or(Ps::ZERO))
}

/// Checks what depends on several keys.
fn check(table: &Table<'_>, config: &ProgramConfig, nodes: u16) -> Result<(), InputError> {
    if let Algorithm::HierarchicalAllreduce { groups } = config.algorithm
        && (!nodes.is_multiple_of(groups) || nodes / groups < 2)
    {
        let problem = format!("{nodes} nodes: must divide them into groups of at least 2");
        return Err(table.error("groups", problem));
    }
    let is_allreduce = matches!(
        config.algorithm,
        Algorithm::RingAllreduce | Algorithm::HierarchicalAllreduce { .. }
    );
    if is_allreduce && config.bytes.0 < u64::from(nodes) {
        let problem = format!("{nodes} nodes: must be at least 1 B for each node's chunk");
        return Err(table.error("bytes", problem));
    }
    let steps = config.size(nodes).steps();
    if steps > STEPS_MAX {
        let problem = format!("the program has {steps} steps: must be at most {STEPS_MAX}");
        let keys = ["iterations", "requests", "message_bytes", "bytes"];
        let key = keys.into_iter().find(|key| table.has(key)).unwrap_or("name");
        return Err(table.error(key, problem));
    }
    Ok(())
}
