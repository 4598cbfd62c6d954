//! One seed gives equal bytes, for any number of threads.

use std::fs;

use serde_json::Value;

use crate::support::{call, root};

const SCENARIO: &str = "scenarios/microbenchmark-64b.toml";
const MESSAGES: [&str; 2] = ["--set", "workload.messages=20000"];

/// JSON output of a call, without the field for real time.
fn json(arguments: &[&str]) -> String {
    let called = call(&root(), arguments);
    assert_eq!((called.code, called.err.as_str()), (0, ""), "{arguments:?}");
    let lines: Vec<&str> = called.out.lines().collect();
    let told: Vec<&str> =
        lines.iter().filter(|line| !line.contains("\"wall_s\": ")).copied().collect();
    assert!(lines.len() > told.len(), "wall_s is told: {}", called.out);
    told.join("\n")
}

#[test]
fn comparisons() {
    let compare = |threads: &str| {
        let fabrics = ["--fabrics", "raw-ethernet,edm,ideal", "--format", "json"];
        let threads = ["--threads", threads];
        json(&[&["compare", SCENARIO], &MESSAGES[..], &fabrics, &threads].concat())
    };
    let one = compare("1");
    assert_eq!(one, compare("2"));
    let order: Vec<&str> = one.lines().filter(|line| line.contains("\"fabric\":")).collect();
    let named = ["raw-ethernet", "edm", "ideal"];
    for (line, name) in order.iter().zip(named) {
        assert!(line.contains(name), "in the order asked for: {order:?}");
    }
    assert_eq!(order.len(), named.len());
}

#[test]
fn a_run_alone_and_in_a_comparison() {
    let fabric = ["--fabric", "edm", "--format", "json"];
    let alone = json(&[&["sim", SCENARIO], &MESSAGES[..], &fabric].concat());
    let fabrics = ["--fabrics", "edm", "--format", "json"];
    let compared = json(&[&["compare", SCENARIO], &MESSAGES[..], &fabrics].concat());
    let [alone, compared] = [alone, compared].map(|json| {
        let json = json.replace(",\n}", "\n}").replace(",\n  }", "\n  }");
        serde_json::from_str::<Value>(&json).unwrap()
    });
    assert_eq!(alone, compared[0]);
}

#[test]
fn another_seed_makes_other_messages() {
    let sim = |seed: &str| {
        json(&[&["sim", SCENARIO], &MESSAGES[..], &["--format", "json", "--seed", seed]].concat())
    };
    assert_eq!(sim("1"), sim("1"));
    assert_ne!(sim("1"), sim("2"));
}

#[test]
fn files_of_messages() {
    let folder = tempfile::tempdir().unwrap();
    let [first, second] = ["a.parquet", "b.parquet"].map(|name| {
        let path = folder.path().join(name);
        let out = ["--messages", path.to_str().unwrap()];
        let called = call(&root(), &[&["sim", SCENARIO], &MESSAGES[..], &out].concat());
        assert_eq!(called.code, 0, "{}", called.err);
        fs::read(path).unwrap()
    });
    assert!(first.len() > 100_000, "{} B for 20,000 messages", first.len());
    assert_eq!(first, second);
}

#[test]
fn the_messages_of_a_run_are_a_trace() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("messages.parquet");
    let path = path.to_str().unwrap();
    let out = ["--messages", path, "--format", "json"];
    let cut = ["--set", "run.warmup_fraction=0", "--set", "run.cooldown_fraction=0"];
    let first: Value = parsed(&[&["sim", SCENARIO], &MESSAGES[..], &out, &cut].concat());
    let again: Value = parsed(&["sim", "--trace", path, "--format", "json"]);
    for key in ["messages_finished", "messages_measured", "simulated_ns", "kinds"] {
        assert_eq!(first[key], again[key], "{key}");
    }
}

fn parsed(arguments: &[&str]) -> Value {
    let called = call(&root(), arguments);
    assert_eq!((called.code, called.err.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&called.out).unwrap()
}

/// True if a timeline, which contains names as plain text, has this name.
fn names(timeline: &[u8], name: &str) -> bool {
    timeline.windows(name.len()).any(|window| window == name.as_bytes())
}

#[test]
fn timelines_of_every_fabric() {
    let folder = tempfile::tempdir().unwrap();
    let few = ["--set", "workload.messages=300", "--set", "fabric.nodes=8"];
    // The ideal fabric has no links: only messages are drawn.
    for (fabric, rows, others) in [
        ("edm", &["uplinks", "downlinks", "grants", "chunk", "/N/"][..], &["frame"][..]),
        ("raw-ethernet", &["uplinks", "downlinks", "frame"], &["grants"]),
        ("output-queued", &["uplinks", "downlinks", "chunk", "request"], &["grants"]),
        ("ideal", &[], &["uplinks", "grants"]),
    ] {
        let [first, second] = ["a.pftrace", "b.pftrace"].map(|name| {
            let path = folder.path().join(name);
            let path = path.to_str().unwrap();
            let sim = ["sim", SCENARIO, "--fabric", fabric, "--perfetto", path];
            let called = call(&root(), &[&sim[..], &few].concat());
            assert_eq!((called.code, called.err.as_str()), (0, ""), "{fabric}");
            fs::read(path).unwrap()
        });
        assert!(first == second, "{fabric}: two runs of a seed are drawn alike");
        for row in ["messages", "node 7", "read", "write"].iter().chain(rows) {
            assert!(names(&first, row), "{fabric}: no {row}");
        }
        for other in others {
            assert!(!names(&first, other), "{fabric} has {other}");
        }
    }
}
