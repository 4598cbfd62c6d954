//! `ethermem replay`: a trace of a test on several fabrics, with equal bytes each time.

use std::path::Path;

use ethermem_trace::{Access, AccessKind, CompletionTimes, Ended, Summary, Writer};
use ethermem_units::{Bytes, Ns};
use serde_json::Value;

use crate::support::call;

fn write_trace(path: &Path) {
    let page = Bytes(4096);
    let mut writer = Writer::create(path, page).expect("a file of a test");
    for index in 0..2_000_u64 {
        // Bursts of eight.
        let time = Ns(100_000 * (index / 8) + 700 * (index % 8));
        let (kind, address) = (AccessKind::ALL[usize::from(index % 5 == 0)], 4096 * (index % 999));
        let prefetched = false;
        let access = Access { time, process: 9, thread: 9, address, bytes: page, kind, prefetched };
        writer.push(&access).expect("a good access");
    }
    let summary = Summary {
        local: Bytes(1 << 20),
        peak: Bytes(4 << 20),
        duration: Ns(25_000_000),
        command: "made by a test".to_owned(),
        ended: Ended::Exit(0),
        prefetched_accesses: None,
        unrecorded_accesses: 3,
    };
    writer.finish(&summary).expect("a file of a test");
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    let arguments = [&["replay", "t.parquet", "--format", "json"], arguments].concat();
    let called = call(folder, &arguments);
    assert_eq!(called.code, 0, "{}", called.err);
    let mut value: Value = serde_json::from_str(&called.out).expect("JSON");
    for outcome in value.as_array_mut().expect("a list") {
        outcome["run"]["wall_s"].take();
    }
    value
}

#[test]
fn fabrics_get_the_same_accesses_and_a_seed_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("t.parquet"));
    let arguments =
        ["--fabric", "pfabric,edm", "--messages", "1000", "--seed", "3", "--out", "r.parquet"];
    let outcomes = json(folder.path(), &arguments);
    let again = json(folder.path(), &[&arguments[..], &["--threads", "1"]].concat());
    assert_eq!(outcomes, again);
    assert_ne!(outcomes, json(folder.path(), &[&arguments[..4], &["--seed", "4"]].concat()));
    let offered = &outcomes[0]["offered"];
    assert_eq!(offered, &outcomes[1]["offered"]);
    for (outcome, (fabric, topology)) in outcomes
        .as_array()
        .unwrap()
        .iter()
        .zip([("pfabric", "leaf-spine"), ("edm", "single-switch")])
    {
        assert_eq!(outcome["fabric"], fabric);
        assert_eq!(outcome["topology"], topology);
        assert_eq!(outcome["clusters"], 9);
        assert_eq!(outcome["overload"], false);
        assert!(outcome["slowdown_mean"].as_f64().unwrap() >= 1.0);
        assert_eq!(outcome["run"]["messages_finished"], offered["messages"]);
        let notices = outcome["run"]["notices"].to_string();
        assert!(
            notices.contains("3 accesses of the programs are not in their traces"),
            "{notices}"
        );
        let times = CompletionTimes::open(&folder.path().join("r.parquet"), Some(fabric)).unwrap();
        assert_eq!(times.count() as u64, offered["messages"].as_u64().unwrap());
    }
}

#[test]
fn rows_have_a_header_with_units() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("t.parquet"));
    let arguments = [
        "replay",
        "t.parquet",
        "--fabric",
        "edm",
        "--messages",
        "300",
        "--scope",
        "rack",
        "--link-gbps",
        "40",
        "--arrivals",
        "as-traced",
        "--format",
    ];
    let csv = call(folder.path(), &[&arguments[..], &["csv"]].concat());
    assert_eq!(csv.code, 0, "{}", csv.err);
    let lines: Vec<Vec<&str>> = csv.out.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 1 + 3, "read, write_back, all");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    assert_eq!(lines[0][..4], ["fabric", "topology", "scope", "kind"]);
    assert_eq!(lines[3][..4], ["edm", "single-switch", "rack", "all"]);
    let table = call(folder.path(), &[&arguments[..], &["text"]].concat());
    assert!(table.out.contains("edm runs on one switch with all 144 nodes"), "{}", table.out);
}

#[test]
fn what_cannot_be_replayed_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("t.parquet"));
    std::fs::write(folder.path().join("text"), "no trace").unwrap();
    let cases: [(&[&str], &str); 8] = [
        (&["none"], "none: cannot be read: No such file or directory"),
        (&["text"], "text: not readable as Parquet: "),
        (&["t.parquet", "--cluster", "16"], "must be a multiple of 3"),
        (&["t.parquet", "--cluster", "18", "--scope", "rack"], "within 16 nodes of the rack"),
        (&["t.parquet", "--fabric", "edm,nope"], "must be one of edm, raw-ethernet"),
        (&["t.parquet", "--from-ms", "26"], "no access from 26000000 to 25000000 ns"),
        (&["t.parquet", "--speed", "0"], "must be 0.000001 to 1000000"),
        (&["t.parquet", "--set", "fabric.x=1"], "fabric.x: unknown key"),
    ];
    for (arguments, expected) in cases {
        let called = call(folder.path(), &[&["replay"], arguments].concat());
        assert_eq!(called.code, 2, "{arguments:?}");
        assert!(called.err.contains(expected), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
    }
}
