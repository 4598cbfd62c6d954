use ethermem_units::{Bytes, Ps};
use ethermem_workload::{Kind, Message};
use serde_json::Value;

use super::*;
use crate::metrics::{
    FabricStats, FrameStats, Matching, MemoryKind, MemoryTraffic, MemoryUse, MemoryUser,
    PacketCounts, ProgramStats, Queue, Recorder, RunFacts, RunResult, Steady, Utilisation, Window,
};

const REFERENCE: &str = include_str!("../../../../docs/reference/output.md");
const PYTHON: &str = include_str!("../../../../python/ethermem/result.py");

/// A run that has every field.
fn run() -> RunResult {
    let mut recorder = Recorder::new(Window::cut(4, 1, 0));
    for (index, kind) in (0..).zip([Kind::Read, Kind::Read, Kind::Write, Kind::ReadModifyWrite]) {
        let arrival = Ps(1_000 * index);
        let message = Message { index, arrival, kind, compute: 0, memory: 1, bytes: Bytes(64) };
        recorder.record(&message, arrival + Ps(299_520 * (index + 1)), Ps(299_520));
    }
    let facts = RunFacts {
        fabric: "edm".to_owned(),
        label: "edm srpt".to_owned(),
        scenario: "scenarios/64b.toml".to_owned(),
        seed: 7,
        commit: Some("0123456789ab".to_owned()),
        nodes: 2,
        load_requested: Some(0.9),
        messages_started: 4,
        simulated: Ps::from_ns(2_000),
        events: 12,
        wall_s: 0.25,
        notices: vec!["from the engine".to_owned()],
    };
    let stats = FabricStats {
        load_measured: Some(0.875),
        control_overhead: Some(0.25),
        utilisation: Some(Utilisation {
            uplink_mean: 0.5,
            uplink_max: 0.75,
            downlink_mean: 0.5,
            downlink_max: 0.875,
        }),
        queue: Some(Queue {
            egress_blocks_max: 32,
            egress_blocks_mean: 1.5,
            egress_blocks_bound: Some(34),
        }),
        matching: Some(Matching {
            rounds: 3,
            grants: 4,
            iterations_mean: 1.25,
            iterations_max: 2,
            size_mean: 1.5,
            size_max: 2,
        }),
        frames: Some(FrameStats {
            sent: 5,
            waiting_blocks: 7,
            unloaded_ns: 123.52,
            latency_ns_mean: Some(200.5),
            latency_ns_p50: Some(150.0),
            latency_ns_p99: Some(300.25),
            latency_ns_max: None,
            slowdown_mean: Some(1.5),
            slowdown_p50: Some(1.25),
            slowdown_p99: Some(2.5),
            latency_ns_mean_without_memory: Some(140.0),
            latency_ns_p99_without_memory: Some(250.0),
        }),
        packets: Some(PACKET_COUNTS),
        memories: Some(memories()),
        notices: vec!["from the fabric".to_owned()],
    };
    let result = recorder.finish(facts, stats);
    RunResult { steady: Some(Steady::sample()), program: Some(program()), ..result }
}

fn memories() -> MemoryTraffic {
    let one = MemoryUse {
        rack: 1,
        memory: MemoryKind::Device,
        number: 2,
        user: MemoryUser::Nics,
        node: 3,
        read_bytes: 0,
        written_bytes: 7,
        read_bytes_by_slice: Vec::new(),
        written_bytes_by_slice: vec![3, 4],
    };
    MemoryTraffic { slice_ns: 1_000.0, uses: vec![one] }
}

/// The JSON of [`memories`].
const MEMORIES: &str = r#"{
    "slice_ns": 1000.0,
    "uses": [
      {
        "rack": 1,
        "memory": "device",
        "number": 2,
        "user": "nics",
        "node": 3,
        "read_bytes": 0,
        "written_bytes": 7,
        "read_bytes_by_slice": [],
        "written_bytes_by_slice": [
          3,
          4
        ]
      }
    ]
  }"#;

fn program() -> ProgramStats {
    ProgramStats {
        name: "gather".to_owned(),
        steps: 3,
        finished_ns: 10.0,
        links_ns: 5.0,
        over_links: Some(2.0),
        order: Vec::new(),
    }
}

const PACKET_COUNTS: PacketCounts = PacketCounts {
    sent: 9,
    delivered: 7,
    dropped: 2,
    marked: 3,
    retransmitted: 1,
    timeouts: 1,
    pauses: Some(4),
    trimmed: Some(3),
    returned: Some(1),
};

/// The JSON of [`program`].
const PROGRAM: &str = r#"{
    "name": "gather",
    "steps": 3,
    "finished_ns": 10.0,
    "links_ns": 5.0,
    "over_links": 2.0
  }"#;

/// The JSON of the packets of [`run`].
const PACKETS: &str = r#"{
    "sent": 9,
    "delivered": 7,
    "dropped": 2,
    "marked": 3,
    "retransmitted": 1,
    "timeouts": 1,
    "pauses": 4,
    "trimmed": 3,
    "returned": 1
  }"#;

/// The JSON of one kind of [`run`], a read.
const READ: &str = r#"{
      "messages": 1,
      "slowdown_mean": 2.0,
      "slowdown_p50": 2.0,
      "slowdown_p99": 2.0,
      "slowdown_p999": 2.0,
      "slowdown_min": 2.0,
      "slowdown_max": 2.0,
      "latency_ns_mean": 599.04,
      "latency_ns_p50": 599.04,
      "latency_ns_p99": 599.04,
      "latency_ns_p999": 599.04,
      "latency_ns_max": 599.04,
      "bytes": 64
    }"#;

/// The JSON of all kinds of [`run`].
const ALL: &str = r#"{
      "messages": 3,
      "slowdown_mean": 3.0,
      "slowdown_p50": 3.0,
      "slowdown_p99": 4.0,
      "slowdown_p999": 4.0,
      "slowdown_min": 2.0,
      "slowdown_max": 4.0,
      "latency_ns_mean": 898.56,
      "latency_ns_p50": 898.591,
      "latency_ns_p99": 1198.08,
      "latency_ns_p999": 1198.08,
      "latency_ns_max": 1198.08,
      "bytes": 192
    }"#;

/// The JSON of the frames of [`run`].
const FRAMES: &str = r#"{
    "sent": 5,
    "waiting_blocks": 7,
    "unloaded_ns": 123.52,
    "latency_ns_mean": 200.5,
    "latency_ns_p50": 150.0,
    "latency_ns_p99": 300.25,
    "latency_ns_max": null,
    "slowdown_mean": 1.5,
    "slowdown_p50": 1.25,
    "slowdown_p99": 2.5,
    "latency_ns_mean_without_memory": 140.0,
    "latency_ns_p99_without_memory": 250.0
  }"#;

const STEADY: &str = r#"{
    "state": "not-sustained",
    "why": "it carries 0.700, and latencies grow with the length of the run",
    "load_carried": 0.7,
    "backlog_growth": 0.222,
    "warmup_messages": null,
    "batch_correlation": 0.9,
    "slowdown_mean_ci95_half_width": 1.0,
    "slowdown_p99_ci95_half_width": 2.0,
    "latency_ns_mean_ci95_half_width": 300.0,
    "latency_ns_p99_ci95_half_width": 600.0,
    "imprecision": 10.0
  }"#;

#[test]
fn the_json_of_a_run_is_this() {
    let steady = STEADY;
    let read = READ;
    let write = read.replace("2.0", "3.0").replace("599.04", "898.56");
    let rmw = read.replace("2.0", "4.0").replace("599.04", "1198.08");
    let all = ALL;
    let expected = format!(
        r#"{{
  "fabric": "edm",
  "label": "edm srpt",
  "scenario": "scenarios/64b.toml",
  "seed": 7,
  "commit": "0123456789ab",
  "messages_started": 4,
  "messages_finished": 4,
  "messages_lost": 0,
  "messages_measured": 3,
  "warmup_ns": 1.0,
  "cooldown_ns": 0.0,
  "simulated_ns": 2000.0,
  "load_requested": 0.9,
  "load_measured": 0.875,
  "payload_goodput_gbps": 1.024,
  "payload_goodput_gbps_per_node": 0.512,
  "control_overhead": 0.25,
  "steady": {steady},
  "program": {PROGRAM},
  "kinds": {{
    "read": {read},
    "write": {write},
    "rmw": {rmw},
    "all": {all}
  }},
  "utilisation": {{
    "uplink_mean": 0.5,
    "uplink_max": 0.75,
    "downlink_mean": 0.5,
    "downlink_max": 0.875
  }},
  "queue": {{
    "egress_blocks_max": 32,
    "egress_blocks_mean": 1.5,
    "egress_blocks_bound": 34
  }},
  "matching": {{
    "rounds": 3,
    "grants": 4,
    "iterations_mean": 1.25,
    "iterations_max": 2,
    "size_mean": 1.5,
    "size_max": 2
  }},
  "frames": {FRAMES},
  "packets": {PACKETS},
  "memories": {MEMORIES},
  "notices": [
    "from the engine",
    "from the fabric"
  ],
  "events": 12,
  "wall_s": 0.25
}}
"#
    );
    assert_eq!(to_json(&run()), expected);
}

#[test]
fn a_run_of_a_bare_fabric_keeps_its_keys() {
    let bare = Recorder::new(Window::ALL).finish(RunFacts::default(), FabricStats::default());
    let (bare, full) = (serde_json::to_value(bare).unwrap(), serde_json::to_value(run()).unwrap());
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut every = keys(&full);
    // Only programs have an outcome of their own, and only a scenario requests memories.
    every.retain(|key| key != "program" && key != "memories");
    assert_eq!(keys(&bare), every);
    assert_eq!(keys(&bare["kinds"]), ["read", "write", "all"]);
    assert_eq!(bare["matching"], Value::Null);
    assert_eq!(bare["kinds"]["read"]["slowdown_p99"], Value::Null);
}

/// The names in the first column of those tables of the reference whose heading begins with `head`.
fn documented(head: &str) -> Vec<Vec<&'static str>> {
    let tables = REFERENCE.split("\n\n").filter(|part| part.starts_with(&format!("| {head} |")));
    let name = |row: &'static str| row.strip_prefix("| `")?.split('`').next();
    tables.map(|table| table.lines().filter_map(name).collect()).collect()
}

#[test]
fn the_reference_has_every_key_in_order_and_no_other() {
    let value = serde_json::to_value(run()).unwrap();
    let mut keys = Vec::new();
    for (key, value) in value.as_object().unwrap() {
        match value.as_object().filter(|_| key != "kinds") {
            Some(parts) => keys.extend(parts.keys().map(|part| format!("{key}.{part}"))),
            None => keys.push(key.clone()),
        }
    }
    let kind: Vec<String> = value["kinds"]["all"].as_object().unwrap().keys().cloned().collect();
    let used = value["memories"]["uses"][0].as_object().unwrap().keys().cloned().collect();
    assert_eq!(documented("key"), [keys, kind, used]);
}

/// `python/tests` checks the types; this test fails for a new key even if only Rust's tests are
/// run.
#[test]
fn the_python_package_has_a_field_for_every_key() {
    for key in documented("key").concat() {
        let field = key.rsplit('.').next().unwrap_or(key);
        assert!(PYTHON.contains(&format!("\n    {field}: ")), "{key}: not in result.py");
    }
}

#[test]
fn the_reference_has_every_column_in_order_and_no_other() {
    let schema = messages::schema();
    let columns: Vec<&str> = schema.get_fields().iter().map(|field| field.name()).collect();
    assert_eq!(documented("column"), [columns]);
}

#[test]
fn two_runs_of_a_seed_differ_in_real_time_alone() {
    let (first, mut second) = (run(), run());
    second.wall_s += 1.0;
    let (first, second) = (to_json(&first), to_json(&second));
    let differing: Vec<_> = first.lines().zip(second.lines()).filter(|(a, b)| a != b).collect();
    assert_eq!(differing, [("  \"wall_s\": 0.25", "  \"wall_s\": 1.25")]);
}
