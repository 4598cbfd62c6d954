//! The table `workload.program`.

use super::*;
use crate::workload::program::{Algorithm, BroadcastShape, ProgramConfig};

fn program(keys: &str) -> Result<ProgramConfig, String> {
    let text = format!(
        "[fabric]\nnodes = 12\n[workload]\nkind = \"program\"\n[workload.program]\n{keys}\n"
    );
    parse(&text).map(|scenario| match scenario.workload {
        WorkloadConfig::Program(program) => program,
        other => panic!("{other:?}"),
    })
}

#[test]
fn a_program_has_defaults_for_every_parameter() {
    let of = |algorithm| ProgramConfig {
        algorithm,
        bytes: Bytes(65_536),
        iterations: 1,
        compute: Ps::ZERO,
    };
    assert_eq!(program(""), Ok(of(Algorithm::RingAllreduce)));
    let shuffle = Algorithm::Shuffle {
        mappers: 9,
        reduce: Ps::ZERO,
        message_bytes: Bytes(65_536),
        in_flight: 4,
    };
    assert_eq!(program("name = \"shuffle\""), Ok(of(shuffle)));
    let store = Algorithm::KeyValue {
        clients: 6,
        requests: 100,
        in_flight: 4,
        reads: 0.9,
        think: Ps::ZERO,
    };
    assert_eq!(program("name = \"key-value\""), Ok(of(store)));
    let tree = Algorithm::Broadcast { root: 0, shape: BroadcastShape::Tree };
    assert_eq!(program("name = \"broadcast\""), Ok(of(tree)));
    let two = "[fabric]\nnodes = 2\n[workload]\nkind = \"program\"\nprogram.name = \"shuffle\"\n";
    assert!(parse(two).is_ok());
}

#[test]
fn every_parameter_of_a_program_is_read() {
    let of = |algorithm| ProgramConfig {
        algorithm,
        bytes: Bytes(1 << 30),
        iterations: 3,
        compute: Ps(1_500),
    };
    let common = "bytes = 1073741824\ncompute_ns = 1.5";
    let read = |name: &str, keys: &str| program(&format!("name = \"{name}\"\n{common}\n{keys}"));
    let hierarchical = Algorithm::HierarchicalAllreduce { groups: 6 };
    let found = read("hierarchical-allreduce", "iterations = 3\ngroups = 6");
    assert_eq!(found, Ok(of(hierarchical)));
    assert_eq!(read("gather", "iterations = 3\nroot = 11"), Ok(of(Algorithm::Gather { root: 11 })));
    let flat = Algorithm::Broadcast { root: 4, shape: BroadcastShape::Flat };
    assert_eq!(read("broadcast", "iterations = 3\nroot = 4\nshape = \"flat\""), Ok(of(flat)));
    let shuffle = Algorithm::Shuffle {
        mappers: 11,
        reduce: Ps(2_000),
        message_bytes: Bytes(5_000),
        in_flight: 7,
    };
    let keys = "iterations = 3\nmappers = 11\nreduce_ns = 2\nmessage_bytes = 5000\nin_flight = 7";
    let found = read("shuffle", keys).map(|found| found.algorithm);
    // So many messages are refused; with fewer the parameters are these.
    assert!(found.is_err_and(|error| error.contains("steps: must be at most 4194304")));
    let keys = format!("name = \"shuffle\"\nbytes = 9000\ncompute_ns = 1.5\n{keys}");
    assert_eq!(program(&keys), Ok(ProgramConfig { bytes: Bytes(9_000), ..of(shuffle) }));
    let store =
        Algorithm::KeyValue { clients: 5, requests: 9, in_flight: 1024, reads: 0.25, think: Ps(4) };
    let keys =
        "clients = 5\nrequests = 9\nin_flight = 1024\nread_fraction = 0.25\nthink_ns = 0.004";
    assert_eq!(read("key-value", keys), Ok(ProgramConfig { iterations: 1, ..of(store) }));
}

#[test]
fn execution_traces_are_looked_up_from_the_scenario() {
    let text = "[workload]\nkind = \"program\"\n[workload.program]\nname = \"execution-trace\"\n\
                trace = \"a/ring\"\n";
    let scenario = Scenario::parse(text, Path::new("dir/s.toml"), &FABRICS).expect("a scenario");
    let WorkloadConfig::ExecutionTrace(traces) = &scenario.workload else { panic!("{scenario:?}") };
    assert_eq!(traces.file(12), Path::new("dir/a/ring.12.et"));
    assert_eq!((scenario.messages(), scenario.work()), (None, f64::INFINITY));
}

#[test]
fn what_is_no_program_is_refused_in_one_line_with_what_it_must_be() {
    let line = |keys: &str| program(keys).expect_err(keys);
    let cases = [
        (
            "name = \"pagerank\"",
            "name = \"pagerank\": must be one of \"ring-allreduce\", \"hierarchical-allreduce\", \
             \"all-to-all\", \"gather\", \"broadcast\", \"supersteps\", \"shuffle\", \
             \"key-value\", \"execution-trace\"",
        ),
        ("bytes = 0", "bytes = 0: must be 1 to 1073741824"),
        ("bytes = 11", "bytes = 11: 12 nodes: must be at least 1 B for each node's chunk"),
        ("iterations = 0", "iterations = 0: must be 1 to 1000000"),
        (
            "iterations = 1000000",
            "iterations = 1000000: the program has 276000000 steps: must be at most 4194304",
        ),
        ("compute_ns = -1", "compute_ns = -1: must be 0 to 1000000000"),
        ("compute_ns = nan", "compute_ns = nan: must be 0 to 1000000000"),
        (
            "name = \"hierarchical-allreduce\"\ngroups = 5",
            "groups = 5: 12 nodes: must divide them into groups of at least 2",
        ),
        (
            "name = \"hierarchical-allreduce\"\ngroups = 12",
            "groups = 12: 12 nodes: must divide them into groups of at least 2",
        ),
        (
            "groups = 3",
            "groups = 3: it changes nothing: allowed only with program \
          \"hierarchical-allreduce\"",
        ),
        ("name = \"gather\"\nroot = 12", "root = 12: must be 0 to 11"),
        ("name = \"shuffle\"\nmappers = 12", "mappers = 12: must be 1 to 11"),
        ("name = \"key-value\"\nclients = 0", "clients = 0: must be 1 to 11"),
        ("name = \"key-value\"\nin_flight = 0", "in_flight = 0: must be 1 to 1024"),
        (
            "name = \"key-value\"\niterations = 2",
            "iterations = 2: it changes nothing: allowed only with a program other than \
             \"key-value\" and \"execution-trace\"",
        ),
        (
            "in_flight = 2",
            "in_flight = 2: it changes nothing: allowed only with program \
          \"shuffle\" or \"key-value\"",
        ),
    ];
    for (keys, expected) in cases {
        let last = 5 + keys.lines().count();
        assert_eq!(line(keys), format!("s.toml:{last}: workload.program.{expected}"));
    }
    let traces = line("name = \"execution-trace\"");
    let expected = "workload.program.trace is not set: program \"execution-trace\" needs the start \
                    of its files' names";
    assert!(traces.ends_with(expected), "{traces}");
    let bytes = line("name = \"execution-trace\"\ntrace = \"t\"\nbytes = 3");
    assert!(
        bytes.contains("bytes = 3: it changes nothing: allowed only with a program"),
        "{bytes}"
    );
    let without = parse("[workload.program]\nname = \"gather\"\n").unwrap_err();
    assert!(without.contains("allowed only with workload.kind = \"program\""), "{without}");
    let beside = parse("[workload]\nkind = \"program\"\nload = 0.5\n").unwrap_err();
    assert!(beside.contains("allowed only with workload.kind = \"poisson\""), "{beside}");
    let unknown = line("byte = 1");
    assert!(unknown.contains("byte: unknown key: must be one of name, bytes,"), "{unknown}");
}
