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
    let cases: [(&[&str], &str); 11] = [
        (&["nothing"], "nothing: cannot be read: No such file or directory"),
        (&["t.parquet", "none"], "TRACE none: must be with --disk-trace or --network-trace"),
        (&["text"], "text: not readable as Parquet: "),
        (&["t.parquet", "--cluster", "16"], "must be a multiple of 3"),
        (&["t.parquet", "--cluster", "18", "--scope", "rack"], "within 16 nodes of the rack"),
        (&["t.parquet", "--fabric", "edm,nope"], "must be one of edm, raw-ethernet"),
        (&["t.parquet", "--from-ms", "26"], "no access from 26000000 to 25000000 ns"),
        (&["t.parquet", "--speed", "0"], "must be 0.000001 to 1000000"),
        (&["t.parquet", "--set", "fabric.x=1"], "fabric.x: unknown key"),
        (
            &["t.parquet", "--set", "fabric.link_gbps=40"],
            "--set: fabric.link_gbps=40: another argument sets it: must be another key",
        ),
        (&["t.parquet", "--set", "fabric.nodes=16"], "fabric.nodes=16: another argument sets it"),
    ];
    for (arguments, expected) in cases {
        let called = call(folder.path(), &[&["replay"], arguments].concat());
        assert_eq!(called.code, 2, "{arguments:?}");
        assert!(called.err.contains(expected), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
    }
}

fn two_machines() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../workloads/traces/two-machines")
}

#[test]
fn disks_and_the_network_have_rows_and_the_same_bytes_on_any_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("t.parquet"));
    let file = |name: &str| two_machines().join(name).display().to_string();
    let [server, client] = ["server", "client"].map(file);
    let [packets, others] = ["server.pcap", "client.pcap"].map(file);
    let with = |pages: &str, more: &[&str]| {
        let machines = ["replay", pages, "none", "--cluster", "12", "--messages", "600"];
        let disks = ["--disk-trace", &server, "--disk-trace", &client];
        let networks = ["--network-trace", &packets, "--network-trace", &others];
        let addresses = ["--address", "10.77.0.1", "--address", "10.77.0.2"];
        let all = [&machines[..], &disks, &networks, &addresses, more].concat();
        let called = call(folder.path(), &all);
        assert_eq!(called.code, 0, "{}", called.err);
        called.out
    };
    let arguments = ["--fabric", "edm,pfabric", "--format", "csv", "--out", "r.parquet"];
    let on = |threads: &str| {
        let csv = with("none", &[&arguments[..], &["--threads", threads]].concat());
        let times = CompletionTimes::open(&folder.path().join("r.parquet"), Some("edm")).unwrap();
        (csv, times.map(Result::unwrap).collect::<Vec<_>>())
    };
    let (csv, times) = on("1");
    assert_eq!((&csv, &times), (&on("2").0, &on("2").1));
    let edm: Vec<Vec<&str>> = csv
        .lines()
        .filter(|line| line.starts_with("edm,"))
        .map(|line| line.split(',').collect())
        .collect();
    let kinds: Vec<&str> = edm.iter().map(|row| row[3]).collect();
    assert_eq!(kinds, ["disk_read", "disk_write", "network", "all"]);
    for row in &edm[..3] {
        let count = times.iter().filter(|time| time.kind.name() == row[3]).count();
        assert_eq!(row[5], count.to_string(), "{}", row[3]);
    }

    let json: Value = serde_json::from_str(&with("t.parquet", &["--format", "json"])).unwrap();
    let attribution = &json[0]["attribution"];
    assert_eq!(attribution["transfers"], 18);
    assert_eq!(attribution["transfers_of_reads"], 9);
    assert!(json[0]["completion"]["read"].as_array().unwrap().len() > 1);
    let notices = json[0]["run"]["notices"].to_string();
    assert!(notices.contains("of 18 transfers, 9 carried data that was just read"), "{notices}");
    assert!(notices.contains("disk accesses and transfers are outside the"), "{notices}");
    // Without these traces, nothing tells of them.
    let plain = json_of_pages(folder.path());
    for absent in ["attribution", "disk_read", "disk_write", "disk reads"] {
        assert!(!plain.contains(absent), "{absent}");
    }
}

fn json_of_pages(folder: &Path) -> String {
    let called = call(folder, &["replay", "t.parquet", "--messages", "300", "--format", "json"]);
    assert_eq!(called.code, 0, "{}", called.err);
    called.out
}

#[test]
fn disks_and_networks_that_cannot_be_replayed_are_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    write_trace(&folder.path().join("t.parquet"));
    std::fs::write(folder.path().join("text"), "no trace").unwrap();
    let packets = two_machines().join("server.pcap").display().to_string();
    let server = two_machines().join("server").display().to_string();
    let second = two_machines().join("server.blktrace.1").display().to_string();
    let own = ["--address", "10.77.0.1"];
    let network = ["--network-trace", &packets];
    let cases: [(Vec<&str>, &str); 9] = [
        (vec!["none", "--disk-trace", "none"], "machine 1: no trace: must have one"),
        (vec!["t.parquet", "--disk-trace", "nope"], "nope: no such file, and no nope.blktrace.0"),
        (vec!["t.parquet", "--disk-trace", "text"], "text: octet 0: a record of 48 octets is cut"),
        (
            [&["t.parquet", "--network-trace", "text"], &own[..]].concat(),
            "text: octet 0: 6e6f2074 begins no capture",
        ),
        ([&["t.parquet"], &network[..]].concat(), "--address for 0 machines: must be 1"),
        ([&["t.parquet"], &own[..]].concat(), "must be with --disk-trace or --network-trace"),
        (
            [&["t.parquet", "none", "--disk-trace", &server], &network[..]].concat(),
            "--disk-trace for 1 machines: must be as many as TRACE, 2",
        ),
        (
            [&["t.parquet", "--disk-trace", &second], &network[..], &own[..]].concat(),
            "no time stamp of the wall clock",
        ),
        (vec!["t.parquet", "--disk-trace", &server, "--match-bytes", "2"], "must be 0 to 1"),
    ];
    for (arguments, expected) in cases {
        let called = call(folder.path(), &[&["replay"], &arguments[..]].concat());
        assert_eq!(called.code, 2, "{arguments:?}");
        assert!(called.err.contains(expected), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
    }
}
