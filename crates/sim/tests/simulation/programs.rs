//! Programs on every fabric: each message of the graph once, none before what it waits for, none
//! faster than links allow, and an error where a program has no end.

use ethermem_sim::metrics::RunResult;
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::run::{RunOptions, run};
use ethermem_sim::scenario::Scenario;
use ethermem_sim::workload::WorkloadConfig;
use ethermem_sim::workload::program::{Program, StepId, Work};
use ethermem_units::{Bytes, Ps};
use proptest::prelude::*;

use crate::support::{LINK_GBPS, run_scenario, scenario};

/// Every program with parameters for eight nodes, and small.
const PROGRAMS: [&str; 8] = [
    "name = \"ring-allreduce\"\nbytes = 20000\niterations = 2\ncompute_ns = 300",
    "name = \"hierarchical-allreduce\"\nbytes = 20000\ngroups = 2",
    "name = \"all-to-all\"\nbytes = 3000",
    "name = \"gather\"\nbytes = 9000\nroot = 3",
    "name = \"broadcast\"\nbytes = 9000\nroot = 5",
    "name = \"supersteps\"\nbytes = 500\niterations = 4\ncompute_ns = 250.5",
    "name = \"shuffle\"\nbytes = 9000\nmessage_bytes = 2000\nmappers = 6\nin_flight = 2\n\
     compute_ns = 700\nreduce_ns = 90",
    "name = \"key-value\"\nbytes = 64\nclients = 4\nrequests = 50\nin_flight = 3\n\
     read_fraction = 0.7\ncompute_ns = 120\nthink_ns = 30",
];

fn text(nodes: u16, fabric: &str, program: &str) -> String {
    format!(
        "[fabric]\nnodes = {nodes}\n{fabric}\n[workload]\nkind = \"program\"\n\
         [workload.program]\n{program}\n"
    )
}

pub(crate) fn graph(scenario: &Scenario) -> Program {
    let nodes = scenario.fabric.nodes;
    match &scenario.workload {
        WorkloadConfig::Program(config) => {
            config.program(nodes, scenario.run.seed).expect("a program")
        }
        WorkloadConfig::ExecutionTrace(config) => config.program(nodes).expect("traces"),
        other => panic!("no program: {other:?}"),
    }
}

/// Runs a scenario, and keeps the way of every message.
fn run_watched(scenario: &Scenario, fabric: &str) -> Result<RunResult, String> {
    let entry = registry::find(fabric).expect("a fabric of the registry");
    let options = RunOptions { ways: true, ..RunOptions::of(entry) };
    run(scenario, options).map_err(|error| error.to_string())
}

/// By step: the steps that it depends on.
fn dependencies(program: &Program) -> Vec<Vec<usize>> {
    let mut before = vec![Vec::new(); program.steps().len()];
    for step in 0..program.steps().len() {
        for follower in program.followers(StepId(step as u32)) {
            before[follower.0 as usize].push(step);
        }
    }
    before
}

/// Replays a result against its graph, with the times that the fabric gave its messages and nothing
/// else: an oracle that shares no code with the source of messages.
fn check_order(program: &Program, result: &RunResult, name: &str) {
    let stats = result.program.as_ref().expect("a program");
    let mut message_of = vec![None; program.steps().len()];
    for (message, step) in stats.order.iter().enumerate() {
        let before = message_of[step.0 as usize].replace(message);
        assert_eq!(before, None, "{name}: step {step:?} left twice");
    }
    let mut ways = result.ways.clone();
    ways.sort_by_key(|way| way.message.index);
    let before = dependencies(program);
    let mut ends: Vec<Ps> = Vec::new();
    for (at, step) in program.steps().iter().enumerate() {
        let begin = before[at].iter().map(|&step| ends[step]).max().unwrap_or(Ps::ZERO);
        ends.push(match (step.work, message_of[at]) {
            (Work::Compute { duration, .. }, None) => begin + duration,
            (Work::Message { kind, compute, memory, bytes }, Some(message)) => {
                let way = &ways[message];
                let found = way.message;
                assert_eq!(found.index, message as u64, "{name}");
                assert_eq!((found.kind, found.bytes), (kind, bytes), "{name}: step {at}");
                assert_eq!((found.compute, found.memory), (compute, memory), "{name}: step {at}");
                assert_eq!(found.arrival, begin, "{name}: step {at} leaves when it may");
                assert!(way.leaves >= begin && way.finished > begin, "{name}: {way:?}");
                way.finished
            }
            (work, message) => panic!("{name}: step {at}, {work}, is message {message:?}"),
        });
    }
    let finished = ends.into_iter().max().unwrap_or(Ps::ZERO);
    assert_eq!(stats.finished_ns, finished.as_ns_f64(), "{name}");
}

/// Every message of the graph was delivered once, and no fabric is faster than its links allow.
pub(crate) fn check(scenario: &Scenario, program: &Program, fabric: &str) -> RunResult {
    let result = run_watched(scenario, fabric).unwrap_or_else(|error| panic!("{fabric}: {error}"));
    let messages = program.steps().iter().filter(|step| step.work.moves().is_some());
    let messages = messages.count() as u64;
    let counts = (result.messages_started, result.messages_finished, result.messages_measured);
    assert_eq!(counts, (messages, messages, messages), "{fabric}");
    assert_eq!(result.kinds.all.bytes, program.bytes().0, "{fabric}");
    assert_eq!(result.ways.len() as u64, messages, "{fabric}");
    check_order(program, &result, fabric);
    let stats = result.program.as_ref().expect("a program");
    assert_eq!(stats.steps, program.steps().len() as u64);
    let link = scenario.fabric.link;
    let chain_without = |left_out: u64| {
        let path = program.critical_path(|work| match work {
            Work::Message { bytes, .. } => link.bytes_time(Bytes(bytes.0.saturating_sub(left_out))),
            Work::Compute { duration, .. } => *duration,
        });
        path.as_ns_f64()
    };
    let chain = chain_without(0);
    assert!(chain <= stats.links_ns, "{fabric}");
    let least = match fabric {
        // Each message is alone on its path, so links carry any number at once; its last block
        // takes the time of the stages that it passes.
        "ideal" => chain_without(8),
        // Inside a rack the links are four times as fast, and a node may use every NIC of it.
        "dfabric" => chain / f64::from(scenario.fabric.nodes.max(4)),
        _ => stats.links_ns,
    };
    assert!(stats.finished_ns >= least, "{fabric}: {stats:?}");
    result
}

#[test]
fn every_fabric_delivers_every_message_after_what_it_waits_for() {
    for program in PROGRAMS {
        let scenario = scenario(&text(8, "", program));
        let graph = graph(&scenario);
        for fabric in FABRIC_NAMES {
            let result = check(&scenario, &graph, fabric);
            let json = |result: &RunResult| {
                let mut json = serde_json::to_value(result).expect("a result is JSON");
                json.as_object_mut().expect("an object").remove("wall_s");
                json
            };
            let again = run_watched(&scenario, fabric).expect("it ran before");
            assert_eq!(json(&result), json(&again), "{fabric}: one seed, one result");
        }
    }
}

/// Ring allreduce moves 2 (n - 1) / n of the vector through every link, the least that is possible.
#[test]
fn ring_allreduce_is_limited_by_the_links_alone_where_messages_are_long() {
    let ring = "name = \"ring-allreduce\"\nbytes = 8388608";
    let scenario = scenario(&text(8, "", ring));
    let took = |fabric: &str| {
        let result = run_scenario(&scenario, fabric, None);
        let stats = result.program.expect("a program");
        // 2 x 7/8 of 8 MiB at 80 ps a byte.
        assert_eq!(stats.links_ns, 2.0 * 7.0 / 8.0 * 8_388_608.0 * 0.08);
        stats.finished_ns / stats.links_ns
    };
    // Store-and-forward frames: 1538 B on the line carry 1484 B of data. Each of 14 rounds waits
    // for a frame and two links.
    let best = took("raw-ethernet");
    assert!((1_538.0 / 1_484.0..1.05).contains(&best), "{best}");
    // EDM sends 2 blocks of control with 32 of data, and the grants of 14 rounds.
    let edm = took("edm");
    assert!((34.0 / 32.0..1.10).contains(&edm), "{edm}");
    let [alone, queued] = ["ideal", "output-queued"].map(took);
    assert!(alone < 1.002 && queued < 1.07, "{alone} {queued}");
    for fabric in ["fastpass", "pfc", "roce", "dctcp", "tcp", "ird", "ndp", "pfabric", "homa"] {
        let ratio = took(fabric);
        assert!((best..1.16).contains(&ratio), "{fabric}: {ratio}");
    }
}

/// A scenario whose program loses packets, but not for ever: buffers of some packets, and senders
/// that all begin at once.
#[test]
fn packets_that_are_dropped_delay_a_program_but_do_not_end_it() {
    for (fabric, keys) in [
        ("tcp", "[fabric.tcp]\nbuffer_bytes = 12000"),
        ("dctcp", "[fabric.dctcp]\nbuffer_bytes = 12000\necn_threshold_bytes = 10000"),
        ("pfabric", "[fabric.pfabric]\nbuffer_bytes = 12000"),
        ("roce", "[fabric.roce]\nbuffer_bytes = 12000"),
        ("clio", "[fabric.clio]\nbuffer_bytes = 12000"),
    ] {
        let scenario = scenario(&text(12, keys, "name = \"gather\"\nbytes = 60000"));
        let result = check(&scenario, &graph(&scenario), fabric);
        let packets = result.packets.expect("packets");
        assert!(packets.dropped > 0 && packets.retransmitted > 0, "{fabric}: {packets:?}");
        let program = result.program.expect("a program");
        assert!(program.over_links.expect("links") > 1.0, "{fabric}");
    }
}

#[test]
fn a_program_that_has_no_end_says_what_waits() {
    // Reads of eleven clients wait for one server for longer than their timeout.
    let program = "name = \"key-value\"\nbytes = 20000\nclients = 11\nrequests = 20\n\
                   read_fraction = 1.0";
    let scenario = scenario(&text(12, "[fabric.edm]\nread_timeout_us = 1", program));
    let error = run_watched(&scenario, "edm").expect_err("reads time out");
    let said = error.strip_prefix("program key-value has no end on edm: ").expect(&error);
    assert!(said.contains(" messages were lost, the first is step "), "{error}");
    assert!(said.contains("(read of 20000 B from node "), "{error}");
    assert!(said.contains(" of 660 steps wait for them, the first is step "), "{error}");
    assert!(!error.contains('\n'), "{error}");
    assert_eq!(run_watched(&scenario, "edm").expect_err("again"), error);
    assert!(run_watched(&scenario, "ideal").is_ok());
}

/// A step that is longer than a fabric's messages is several messages, and ends with the last one.
#[test]
fn a_step_longer_than_a_message_is_cut_on_every_fabric() {
    let edm_max = 4_194_240_u64;
    for (name, bytes) in [("gather", edm_max), ("gather", edm_max + 1), ("all-to-all", 8_400_000)] {
        let scenario = scenario(&text(2, "", &format!("name = \"{name}\"\nbytes = {bytes}")));
        let graph = graph(&scenario);
        for fabric in FABRIC_NAMES {
            let result = run_watched(&scenario, fabric);
            let result = result.unwrap_or_else(|error| panic!("{fabric}: {error}"));
            let most = Bytes(registry::find(fabric).expect("of the registry").message_bytes_max);
            let steps = if name == "gather" { 1 } else { 2 };
            let parts = bytes.div_ceil(most.0);
            assert!(*fabric != "edm" || most.0 == edm_max);
            assert_eq!(result.messages_finished, steps * parts, "{fabric}: {name} of {bytes} B");
            assert_eq!(result.messages_finished, graph.messages(most), "{fabric}");
            assert_eq!(result.kinds.all.bytes, steps * bytes, "{fabric}");
            assert!(result.ways.iter().all(|way| way.message.bytes <= most), "{fabric}");
            let last = result.ways.iter().map(|way| way.finished).max().expect("messages");
            let finished_ns = result.program.expect("a program").finished_ns;
            assert_eq!(finished_ns, last.as_ns_f64(), "{fabric}");
        }
    }
}

/// A ring allreduce whose parts of the vector are longer than EDM's messages takes what links need,
/// and little more: the next round waits for all messages of a part, and for nothing else.
#[test]
fn a_cut_ring_allreduce_is_limited_by_the_links() {
    let ring = "name = \"ring-allreduce\"\nbytes = 40000000";
    let scenario = scenario(&text(4, "", ring));
    let result = run_watched(&scenario, "edm").expect("it is cut");
    assert_eq!(result.messages_finished, 4 * 6 * 3, "parts of 10 MB are three messages");
    let program = result.program.expect("a program");
    let over = program.over_links.expect("links take time");
    assert!((1.0..1.25).contains(&over), "{over}");
}

/// A protobuf field of a short text or message.
fn block(number: u8, bytes: &[u8]) -> Vec<u8> {
    let length = u8::try_from(bytes.len()).expect("a short field");
    assert!(length < 128, "a length of one byte");
    [&[number * 8 + 2, length], bytes].concat()
}

/// A record of a trace: a node with its id, its type, the node before it, and attributes.
fn record(id: u8, kind: u8, after: Option<u8>, attributes: &[(&str, u8)]) -> Vec<u8> {
    let mut node = vec![8, id, 24, kind];
    node.extend(after.iter().flat_map(|&id| [40, id]));
    for &(name, value) in attributes {
        match name {
            "duration_micros" => node.extend([56, value]),
            _ => node.extend(block(10, &[block(1, name.as_bytes()), vec![72, value]].concat())),
        }
    }
    block(0, &node)[1..].to_vec()
}

/// Node 0 computes and sends, node 1 answers, and both reduce 100 B: on every fabric.
#[test]
fn execution_traces_run_on_every_fabric() {
    let folder = tempfile::tempdir().expect("a folder");
    let message = |peer: &'static str, of: u8, bytes: u8| [(peer, of), ("comm_size", bytes)];
    let all_reduce = [("comm_type", 0), ("comm_size", 100)];
    let traces = [
        [
            record(0, 4, None, &[("duration_micros", 3)]),
            record(1, 5, Some(0), &message("comm_dst", 1, 90)),
            record(2, 6, Some(1), &message("comm_src", 1, 40)),
            record(3, 7, Some(2), &all_reduce),
        ],
        [
            record(0, 6, None, &message("comm_src", 0, 90)),
            record(1, 4, Some(0), &[("duration_micros", 1)]),
            record(2, 5, Some(1), &message("comm_dst", 0, 40)),
            record(3, 7, Some(2), &all_reduce),
        ],
    ];
    for (node, records) in traces.iter().enumerate() {
        let path = folder.path().join(format!("t.{node}.et"));
        std::fs::write(
            path,
            [block(0, &block(1, b"0.0.4"))[1..].to_vec(), records.concat()].concat(),
        )
        .expect("the folder is writable");
    }
    let trace = format!("name = \"execution-trace\"\ntrace = \"{}/t\"", folder.path().display());
    let scenario =
        scenario(&text(2, "[fabric.dfabric]\nracks = 1\n[fabric.tor_rack]\nracks = 1", &trace));
    let graph = graph(&scenario);
    // 4 us of computations, 130 B, and half of the vector there and back.
    assert_eq!((graph.messages(Bytes(200)), graph.bytes().0), (2 + 4, 90 + 40 + 200));
    for fabric in FABRIC_NAMES {
        let result = check(&scenario, &graph, fabric);
        let stats = result.program.expect("a program");
        assert_eq!(stats.name, "execution-trace");
        assert_eq!(stats.links_ns, 4_000.0 + (90.0 + 40.0 + 50.0 + 50.0) * 0.08, "{fabric}");
    }
}

/// Parameters over their whole range, but for the length of the run.
pub(crate) fn programs() -> impl Strategy<Value = (u16, String)> {
    let sizes = prop_oneof![Just(1_u64), 1..200_u64, 1..40_000_u64];
    let times = prop_oneof![Just(0.0), 0.0..3_000.0_f64];
    let of = (2..=10_u16, 0..8_usize, any::<(u16, u16)>(), sizes, 1..4_u32, times);
    of.prop_map(|(nodes, choice, (draw, other), bytes, small, ns)| {
        let node = draw % nodes;
        let part = 1 + draw % (nodes - 1);
        let vector = bytes.max(nodes.into());
        let groups = (2..=nodes / 2).filter(|groups| nodes.is_multiple_of(*groups));
        let groups: Vec<u16> = groups.collect();
        let keys = match choice {
            0 => format!("name = \"ring-allreduce\"\nbytes = {vector}\niterations = {small}"),
            1 if !groups.is_empty() => format!(
                "name = \"hierarchical-allreduce\"\nbytes = {vector}\ngroups = {}",
                groups[usize::from(other) % groups.len()]
            ),
            2 => format!("name = \"all-to-all\"\nbytes = {bytes}\niterations = {small}"),
            3 => format!("name = \"gather\"\nbytes = {bytes}\nroot = {node}"),
            4 => format!(
                "name = \"broadcast\"\nbytes = {bytes}\nroot = {node}\nshape = \"{}\"",
                ["flat", "tree"][usize::from(other) % 2]
            ),
            5 => {
                format!("name = \"supersteps\"\nbytes = {}\niterations = {small}", bytes.min(2_000))
            }
            6 => format!(
                "name = \"shuffle\"\nbytes = {bytes}\nmessage_bytes = {}\nmappers = {part}\n\
                 in_flight = {small}\nreduce_ns = {ns}",
                1 + bytes / (1 + u64::from(other) % 9)
            ),
            _ => format!(
                "name = \"key-value\"\nbytes = {bytes}\nclients = {part}\nrequests = {}\n\
                 in_flight = {small}\nread_fraction = {}\nthink_ns = {ns}",
                1 + other % 30,
                f64::from(draw % 101) / 100.0
            ),
        };
        (nodes, format!("{keys}\ncompute_ns = {ns}"))
    })
}

proptest! {
    #![proptest_config(crate::property::cases(48))]

    #[test]
    fn any_program_ends_on_any_fabric(
        (nodes, program) in programs(),
        gbps in prop::sample::select(&LINK_GBPS[..]),
        propagation_ns in 0..2_000_u64,
        seed in any::<u32>(),
    ) {
        let fabric = format!(
            "link_gbps = {gbps}\npropagation_ns = {propagation_ns}\n[fabric.edm]\n\
             read_timeout_us = 1000000\n[fabric.dfabric]\nracks = 2\n[fabric.tor_rack]\nracks = 2"
        );
        let text = format!("{}[run]\nseed = {seed}\n", text(nodes, &fabric, &program));
        let scenario = scenario(&text);
        let graph = graph(&scenario);
        for fabric in FABRIC_NAMES {
            check(&scenario, &graph, fabric);
        }
    }
}
