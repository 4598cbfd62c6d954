use ethermem_edm::{Arbitration, EdmConfig, Order, Policy};
use ethermem_units::{BitsPerSecond, Bytes, Ps};

use super::*;
use crate::config::Background;
use crate::workload::{
    Pattern, PoissonConfig, SizeDistribution, TraceConfig, TraceFormat, built_in,
};

const FABRICS: [&str; 2] = ["edm", "raw-ethernet"];

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::parse(text, Path::new("s.toml"), &FABRICS).map_err(|error| error.to_string())
}

fn poisson(scenario: &Scenario) -> &PoissonConfig {
    match &scenario.workload {
        WorkloadConfig::Poisson(poisson) => poisson,
        WorkloadConfig::Trace(_) => panic!("a synthetic workload"),
    }
}

#[test]
fn everything_has_a_default() {
    let expected = Scenario {
        fabric_kind: "edm".into(),
        fabric: FabricConfig {
            nodes: 144,
            link: BitsPerSecond::from_gbps(100).expect("an Ethernet rate"),
            propagation: Ps(10_000),
            transceiver: Ps(19_000),
            memory_access: Ps(0),
            pcs_clock: Ps(640),
            edm: EdmConfig::default(),
            background: Background { load: 0.0, frame_bytes: 1518 },
        },
        workload: WorkloadConfig::Poisson(PoissonConfig {
            pattern: Pattern::AllToAll,
            load: 0.8,
            sizes: SizeDistribution::fixed(Bytes(64)),
            read_fraction: 0.5,
            rmw_fraction: 0.0,
            messages: 100_000,
        }),
        run: RunConfig { seed: 1, warmup_fraction: 0.05, cooldown_fraction: 0.05 },
    };
    assert_eq!(parse("[fabric]\n"), Ok(expected));
}

#[test]
fn every_key_is_read() {
    let text = r#"
        [fabric]
        kind = "raw-ethernet"
        nodes = 16
        link_gbps = 25
        propagation_ns = 12.5
        transceiver_ns = 20
        memory_access_ns = 82
        pcs_clock_ns = 1.28
        [fabric.edm]
        chunk_bytes = 128
        notifications_max = 8
        policy = "auto"
        order = "relaxed"
        arbitration = "strict"
        batching = false
        read_timeout_us = 2.5
        scheduler_clock_ns = 0.333
        [background]
        load = 0.25
        frame_bytes = 9018
        [workload]
        kind = "poisson"
        pattern = "incast"
        incast_fan_in = 7
        incast_receiver = 15
        load = 0.75
        size_cdf = "workloads/memcached.csv"
        read_fraction = 0.6
        rmw_fraction = 0.4
        messages = 5
        [run]
        seed = 18446744073709551615
        warmup_fraction = 0
        cooldown_fraction = 0.5
    "#;
    let scenario = parse(text).expect("a scenario");
    let edm = EdmConfig {
        chunk: Bytes(128),
        notifications_max: 8,
        policy: Policy::Auto,
        order: Order::Relaxed,
        arbitration: Arbitration::Strict,
        batching: false,
        read_timeout: Ps(2_500_000),
        scheduler_clock: Some(Ps(333)),
    };
    let fabric = FabricConfig {
        nodes: 16,
        link: BitsPerSecond::from_gbps(25).expect("an Ethernet rate"),
        propagation: Ps(12_500),
        transceiver: Ps(20_000),
        memory_access: Ps(82_000),
        pcs_clock: Ps(1_280),
        edm,
        background: Background { load: 0.25, frame_bytes: 9018 },
    };
    let workload = WorkloadConfig::Poisson(PoissonConfig {
        pattern: Pattern::Incast { fan_in: 7, receiver: 15 },
        load: 0.75,
        sizes: built_in("memcached").expect("built in"),
        read_fraction: 0.6,
        rmw_fraction: 0.4,
        messages: 5,
    });
    let run = RunConfig { seed: u64::MAX, warmup_fraction: 0.0, cooldown_fraction: 0.5 };
    let expected = Scenario { fabric_kind: "raw-ethernet".into(), fabric, workload, run };
    assert_eq!(scenario, expected);
}

#[test]
fn patterns_have_defaults_that_fit_the_network() {
    let pattern = |text: &str| poisson(&parse(text).expect(text)).pattern;
    assert_eq!(
        pattern("[fabric]\nnodes = 9\n[workload]\npattern = \"incast\"\n"),
        Pattern::Incast { fan_in: 8, receiver: 0 }
    );
    assert_eq!(
        pattern("[workload]\npattern = \"hot-spot\"\nhot_spot_node = 143\n"),
        Pattern::HotSpot { fraction: 0.2, node: 143 }
    );
    assert_eq!(pattern("[workload]\npattern = \"permutation\"\n"), Pattern::Permutation);
}

#[test]
fn a_trace_is_measured_whole_and_looked_up_from_the_scenario() {
    let text = "[workload]\nkind = \"trace\"\ntrace = \"t.parquet\"\n";
    let scenario = Scenario::parse(text, Path::new("dir/s.toml"), &FABRICS).expect("a scenario");
    let trace = TraceConfig { path: "dir/t.parquet".into(), format: TraceFormat::Parquet };
    assert_eq!(scenario.workload, WorkloadConfig::Trace(trace));
    assert_eq!(scenario.run.warmup_fraction, 0.0);
    assert_eq!(scenario.run.cooldown_fraction, 0.0);
    let text = "[workload]\nkind=\"trace\"\ntrace = \"t.txt\"\ntrace_format = \"edm-artifact\"\n";
    let trace = TraceConfig { path: "t.txt".into(), format: TraceFormat::EdmArtifact };
    assert_eq!(parse(text).expect("a scenario").workload, WorkloadConfig::Trace(trace));
}

#[test]
fn bad_values_are_refused_with_line_key_found_and_allowed() {
    let cases = [
        ("[fabric]\nnodes = 1\n", "s.toml:2: fabric.nodes = 1: allowed are 2 to 512"),
        ("[fabric]\nnodes = 513\n", "s.toml:2: fabric.nodes = 513: allowed are 2 to 512"),
        ("[fabric]\nnodes = -1\n", "s.toml:2: fabric.nodes = -1: allowed are 2 to 512"),
        ("[fabric]\nnodes = 9.0\n", "s.toml:2: fabric.nodes = 9.0: allowed are 2 to 512"),
        ("[fabric]\nnodes = \"9\"\n", "s.toml:2: fabric.nodes = \"9\": allowed are 2 to 512"),
        (
            "[fabric]\nlink_gbps = 30\n",
            "s.toml:2: fabric.link_gbps = 30: allowed are 10, 25, 40, 100, 200, 400",
        ),
        (
            "[fabric]\nkind = \"roce\"\n",
            "s.toml:2: fabric.kind = \"roce\": allowed are \"edm\", \"raw-ethernet\"",
        ),
        (
            "[fabric]\npropagation_ns = -0.1\n",
            "s.toml:2: fabric.propagation_ns = -0.1: allowed are 0 to 1000000",
        ),
        (
            "[fabric]\npcs_clock_ns = 0\n",
            "s.toml:2: fabric.pcs_clock_ns = 0: allowed are 0.001 to 1000",
        ),
        ("fabric = 3\n", "s.toml:1: fabric = 3: allowed are a table [fabric]"),
        (
            "\n# c\n[fabric.edm]\n\n\n\nchunk_bytes = 32\n",
            "s.toml:7: fabric.edm.chunk_bytes = 32: allowed are multiples of 64 from 64 to 1024",
        ),
        (
            "[fabric.edm]\nchunk_bytes = 100\n",
            "s.toml:2: fabric.edm.chunk_bytes = 100: allowed are multiples of 64 from 64 to 1024",
        ),
        (
            "[fabric.edm]\nnotifications_max = 0\n",
            "s.toml:2: fabric.edm.notifications_max = 0: allowed are 1 to 8",
        ),
        (
            "[fabric.edm]\npolicy = \"sjf\"\n",
            "s.toml:2: fabric.edm.policy = \"sjf\": allowed are \"srpt\", \"srpt-published\", \
             \"fcfs\", \"auto\"",
        ),
        (
            "[fabric.edm]\nbatching = 1\n",
            "s.toml:2: fabric.edm.batching = 1: allowed are true, false",
        ),
        (
            "[background]\nframe_bytes = 63\n",
            "s.toml:2: background.frame_bytes = 63: allowed are 64 to 9018",
        ),
        ("[workload]\nload = 1.01\n", "s.toml:2: workload.load = 1.01: allowed are over 0 to 1"),
        ("[workload]\nload = 0\n", "s.toml:2: workload.load = 0: allowed are over 0 to 1"),
        ("[workload]\nload = nan\n", "s.toml:2: workload.load = nan: allowed are over 0 to 1"),
        ("[workload]\nload = inf\n", "s.toml:2: workload.load = inf: allowed are over 0 to 1"),
        (
            "[workload]\nmessage_bytes = 0\n",
            "s.toml:2: workload.message_bytes = 0: allowed are 1 to 4194240",
        ),
        (
            "[workload]\nmessages = 0\n",
            "s.toml:2: workload.messages = 0: allowed are 1 to 1000000000",
        ),
        (
            "[run]\nwarmup_fraction = 1\n",
            "s.toml:2: run.warmup_fraction = 1: allowed are 0 to under 1",
        ),
        ("[run]\nseed = -1\n", "s.toml:2: run.seed = -1: allowed are 0 to 18446744073709551615"),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn keys_that_do_not_fit_together_are_refused() {
    let cases = [
        (
            "[background]\nload = 0.2\n[workload]\nload = 0.9\n",
            "s.toml:4: workload.load = 0.9: with background.load = 0.2 more than a link carries: \
             allowed is a sum of at most 1",
        ),
        (
            "[background]\nload = 0.9\n",
            "s.toml: workload.load is not set: with background.load = 0.9 more than a link \
             carries: allowed is a sum of at most 1",
        ),
        (
            "[workload]\nread_fraction = 0.7\nrmw_fraction = 0.4\n",
            "s.toml:3: workload.rmw_fraction = 0.4: with workload.read_fraction = 0.7 more than \
             all messages: allowed is a sum of at most 1",
        ),
        (
            "[run]\nwarmup_fraction = 0.96\n",
            "s.toml:2: run.warmup_fraction = 0.96: with the other end nothing is left to measure: \
             allowed is a sum under 1",
        ),
        (
            "[workload]\nhot_spot_node = 3\n",
            "s.toml:2: workload.hot_spot_node = 3: it changes nothing: allowed only with \
             workload.pattern = \"hot-spot\"",
        ),
        (
            "[fabric]\nnodes = 8\n[workload]\npattern = \"incast\"\nincast_fan_in = 8\n",
            "s.toml:5: workload.incast_fan_in = 8: allowed are 1 to 7",
        ),
        (
            "[fabric]\nnodes = 8\n[workload]\npattern = \"hot-spot\"\nhot_spot_node = 8\n",
            "s.toml:5: workload.hot_spot_node = 8: allowed are 0 to 7",
        ),
        (
            "[workload]\nmessage_bytes = 64\nsize_cdf = \"hadoop\"\n",
            "s.toml:2: workload.message_bytes = 64: it changes nothing: allowed only without \
             workload.size_cdf",
        ),
        (
            "[workload]\nsize_cdf = \"redis.csv\"\n",
            "s.toml:2: workload.size_cdf = \"redis.csv\": no such file: allowed are files and \
             hadoop, spark, sparksql, graphlab, memcached",
        ),
        (
            "[workload]\nkind = \"trace\"\n",
            "s.toml: workload.trace is not set: workload.kind = \"trace\" needs a file",
        ),
        (
            "[workload]\nkind = \"trace\"\ntrace = \"t.dat\"\n",
            "s.toml:3: workload.trace = \"t.dat\": its extension names no format: allowed are \
             .csv, .parquet, or any with workload.trace_format",
        ),
        (
            "[workload]\nkind = \"trace\"\ntrace = \"t.csv\"\nload = 0.5\n",
            "s.toml:4: workload.load = 0.5: it changes nothing: allowed only with workload.kind = \
             \"poisson\"",
        ),
        (
            "[workload]\ntrace = \"t.csv\"\n",
            "s.toml:2: workload.trace = \"t.csv\": it changes nothing: allowed only with \
             workload.kind = \"trace\"",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn unknown_keys_are_refused_with_those_allowed() {
    let cases = [
        (
            "[run]\nz = 1\na = 1\n",
            "s.toml:2: run.z: unknown key: allowed are seed, warmup_fraction, cooldown_fraction",
        ),
        (
            "[fabric.roce]\n",
            "s.toml:1: fabric.roce: unknown key: allowed are kind, nodes, link_gbps, \
             propagation_ns, transceiver_ns, memory_access_ns, pcs_clock_ns, [fabric.edm]",
        ),
        (
            "nodes = 3\n",
            "s.toml:1: nodes: unknown key: allowed are [fabric], [background], [workload], [run]",
        ),
        (
            "[background]\n\"lo\\nad\" = 3\n",
            "s.toml:2: background.lo\\nad: unknown key: allowed are load, frame_bytes",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(parse(text), Err(expected.to_owned()), "{text}");
    }
}

#[test]
fn what_is_not_toml_is_refused_with_its_line() {
    for (text, line) in [("[fabric]\nnodes = = 3\n", 2), ("[fabric\n", 1), ("a = 1\na = 2\n", 2)] {
        let error = parse(text).expect_err(text);
        assert!(error.starts_with(&format!("s.toml:{line}: not TOML: ")), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    for empty in ["", " \n\n", "# nothing\n"] {
        let expected = "s.toml: empty: a scenario has at least one key, such as fabric.kind";
        assert_eq!(parse(empty), Err(expected.to_owned()));
    }
}
