//! `ethermem workload` and `ethermem fabrics`.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{call, root};

fn json(arguments: &[&str]) -> Value {
    let called = call(&root(), &[arguments, &["--format", "json"]].concat());
    assert_eq!((called.code, called.err.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&called.out).unwrap()
}

#[test]
fn a_workload_of_one_size() {
    let shown = json(&["workload", "show", "scenarios/microbenchmark-64b.toml"]);
    assert_eq!(shown["bytes_mean"], 64.0);
    assert_eq!(shown["bytes_p99"], 64);
    assert_eq!(shown["load"], 0.9);
    let edm_read = &shown["blocks"][0];
    assert_eq!((&edm_read["fabric"], &edm_read["kind"]), (&"edm".into(), &"read".into()));
    assert_eq!(edm_read["compute_downlink"], 10.0, "64 B are 8 blocks between /MS/ and /MT/");
    // 12 blocks up for a pair of a read and a write is (2 + 10 + 11) / 2 per message and node. An
    // uplink has 1 / 0.64 ns blocks; there are 144 uplinks.
    let expected = 0.9 * 144.0 / (11.5 * 0.64e-9);
    let rate = shown["messages_per_s"].as_f64().unwrap();
    assert!((rate / expected - 1.0).abs() < 1e-9, "{rate} {expected}");
}

/// An atomic returns 8 bytes, whatever the sizes of reads and writes.
#[test]
fn only_kinds_that_occur_are_shown() {
    let show = |fractions: [&str; 2]| {
        let [rmw, reads] = fractions;
        let (rmw, reads) =
            (format!("workload.rmw_fraction={rmw}"), format!("workload.read_fraction={reads}"));
        let scenario = "scenarios/microbenchmark-64b.toml";
        let shown = json(&["workload", "show", scenario, "--set", &rmw, "--set", &reads]);
        let edm = shown["blocks"].as_array().unwrap().iter().filter(|row| row["fabric"] == "edm");
        let kinds: Vec<String> = edm.map(|row| row["kind"].as_str().unwrap().to_owned()).collect();
        (shown, kinds)
    };
    let (all, kinds) = show(["1", "0"]);
    assert_eq!(kinds, ["rmw"]);
    assert_eq!((&all["bytes_mean"], &all["bytes_max"]), (&8.0.into(), &8.into()));
    assert_eq!(all["blocks"][0]["compute_downlink"], 3.0, "8 B are a block between /MS/ and /MT/");
    let (some, kinds) = show(["0.25", "0.25"]);
    assert_eq!(kinds, ["read", "write", "rmw"]);
    assert_eq!(some["bytes_mean"], 0.25 * 8.0 + 0.75 * 64.0);
    assert_eq!((&some["bytes_p10"], &some["bytes_p50"]), (&8.into(), &64.into()));
    assert_eq!(show(["0", "1"]).1, ["read"]);
    // The data in all is that of the sizes that are shown.
    let rate = some["messages_per_s"].as_f64().unwrap();
    let goodput = some["goodput_gbps_total"].as_f64().unwrap();
    assert!((goodput / (50.0 * 8.0 * rate / 1e9) - 1.0).abs() < 1e-9, "{goodput}");
}

#[test]
fn built_in_workloads_are_listed_and_shown_alike() {
    let list = json(&["workload", "list"]);
    let names: Vec<&str> =
        list.as_array().unwrap().iter().map(|entry| entry["workload"].as_str().unwrap()).collect();
    assert_eq!(names, ["hadoop", "spark", "sparksql", "graphlab", "memcached", "web-search"]);
    for entry in list.as_array().unwrap() {
        let shown = json(&["workload", "show", entry["workload"].as_str().unwrap()]);
        for (key, value) in entry.as_object().unwrap() {
            assert_eq!(&shown[key], value, "{key}");
        }
        assert!(shown["bytes_share_over_p90"].as_f64().unwrap() > 0.5, "a heavy tail");
    }
}

#[test]
fn a_generated_trace_runs_as_its_scenario_does() {
    let folder = tempfile::tempdir().unwrap();
    let set = ["--set", "workload.messages=500", "--set", "workload.rmw_fraction=0"];
    let scenario = "scenarios/microbenchmark-64b.toml";
    let cut = ["--set", "run.warmup_fraction=0", "--set", "run.cooldown_fraction=0"];
    let direct = json(&[&["sim", scenario, "--seed", "5"], &set[..], &cut].concat());
    for (name, format, exact) in
        [("t.csv", "csv", true), ("t.parquet", "parquet", true), ("t.txt", "edm-artifact", false)]
    {
        let path = folder.path().join(name);
        let path = path.to_str().unwrap();
        let out = ["--seed", "5", "--out", path, "--trace-format", format];
        let called = call(&root(), &[&["workload", "generate", scenario], &out[..], &set].concat());
        let said = format!("wrote 500 messages to {path}\n");
        assert_eq!((called.code, called.out), (0, said), "{}", called.err);
        let replayed = json(&["sim", "--trace", path, "--trace-format", format]);
        assert_eq!(replayed["messages_finished"], 500);
        if exact {
            assert_eq!(replayed["kinds"], direct["kinds"], "{format}");
        }
    }
}

#[test]
fn fabrics_are_listed_with_what_they_are() {
    let list = json(&["fabrics"]);
    assert_eq!(list[0]["fabric"], "edm");
    for entry in list.as_array().unwrap() {
        assert!(entry["summary"].as_str().unwrap().len() > 10, "{entry}");
    }
}

#[test]
fn a_trace_replaces_the_workload_of_a_scenario() {
    let folder = tempfile::tempdir().unwrap();
    let trace = "arrival_ns,kind,compute,memory,bytes\n0,read,0,1,64\n10,write,2,3,64\n";
    fs::write(folder.path().join("t.csv"), trace).unwrap();
    fs::write(folder.path().join("s.toml"), "[fabric]\nnodes = 4\nlink_gbps = 25\n").unwrap();
    let arguments = ["sim", "s.toml", "--trace", "t.csv", "--format", "json"];
    let called = call(folder.path(), &arguments);
    let result: Value = serde_json::from_str(&called.out).unwrap();
    assert_eq!((&result["messages_finished"], &result["scenario"]), (&2.into(), &"t.csv".into()));
    let budget = json(&["latency", "--link-gbps", "25", "--bytes", "64"]);
    assert_eq!(result["kinds"]["read"]["latency_ns_p50"], budget["message"]["latency_ns"]);
}

#[test]
fn the_version_says_the_commit() {
    let called = call(Path::new("."), &["--version"]);
    let version = called.out.strip_prefix("ethermem ").unwrap().trim_end();
    let (number, commit) = version.split_once(' ').unwrap_or((version, "(none)"));
    assert_eq!(number, env!("CARGO_PKG_VERSION"));
    assert!(commit.starts_with('(') && commit.ends_with(')'), "{version}");
}
