//! `ethermem latency`: Table 1, in the agreed JSON.

use std::path::Path;

use crate::support::call;
use serde_json::Value;

fn latency(arguments: &[&str]) -> Value {
    let arguments = [&["latency", "--format", "json"], arguments].concat();
    let called = call(Path::new("."), &arguments);
    assert_eq!((called.code, called.err.as_str()), (0, ""));
    serde_json::from_str(&called.out).unwrap()
}

/// The published total of a column, in ns.
fn published(column: &str) -> f64 {
    let table = include_str!("../../../../workloads/edm-table1-published.csv");
    let mut lines = table.lines().filter(|line| !line.starts_with('#'));
    let at = lines.next().unwrap().split(',').position(|name| name == column).unwrap();
    lines.map(|line| line.split(',').nth(at).unwrap().parse::<f64>().unwrap()).sum()
}

#[test]
fn the_totals_are_the_published_ones() {
    for fabric in ["edm", "raw-ethernet", "roce", "tcp"] {
        for op in ["read", "write"] {
            let budget = latency(&["--fabric", fabric, "--op", op, "--link-gbps", "25"]);
            let total = budget["total_ns"].as_f64().unwrap();
            let column = format!("{}_{op}_ns", fabric.replace('-', "_"));
            assert!((total - published(&column)).abs() < 1e-6, "{fabric} {op}: {total}");
            let stages = budget["stages"].as_array().unwrap();
            let sum: f64 = stages.iter().map(|stage| stage["ns"].as_f64().unwrap()).sum();
            assert!((sum - total).abs() < 1e-6, "{fabric} {op}: {sum}");
        }
    }
}

#[test]
fn edm_takes_42_and_41_cycles_at_any_link_rate() {
    for gbps in ["10", "25", "40", "100", "200", "400"] {
        for (op, cycles) in [("read", 42), ("write", 41)] {
            let budget = latency(&["--fabric", "edm", "--op", op, "--link-gbps", gbps]);
            let stages = budget["stages"].as_array().unwrap();
            let sum: u64 = stages.iter().filter_map(|stage| stage["cycles"].as_u64()).sum();
            assert_eq!(sum, cycles, "{op} at {gbps}");
            assert_eq!(budget["link_gbps"].to_string(), gbps);
        }
    }
}

#[test]
fn the_keys_come_in_the_agreed_order() {
    let budget = latency(&["--fabric", "edm", "--op", "read", "--link-gbps", "25"]);
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&budget)[..5], ["fabric", "op", "link_gbps", "stages", "total_ns"]);
    let stages = budget["stages"].as_array().unwrap();
    for stage in stages {
        assert_eq!(keys(stage)[..4], ["place", "name", "cycles", "ns"]);
    }
    let fixed: Vec<&str> = stages
        .iter()
        .filter(|stage| stage["cycles"].is_null())
        .map(|stage| stage["name"].as_str().unwrap())
        .collect();
    assert_eq!(fixed, ["PMA, PMD, transceiver", "propagation"]);
}

#[test]
fn a_simulated_message_is_the_stages_and_its_blocks() {
    // Table 1 counts the first block of each message that crosses a link. A request of 64 bits and
    // an address is two blocks, so its second one follows twice; the data's other nine follow, too.
    let budget = latency(&["--fabric", "edm", "--op", "read", "--bytes", "64"]);
    let message = &budget["message"];
    let block_ns = 2.56;
    assert_eq!(message["bytes"], 64);
    assert!((message["serialization_ns"].as_f64().unwrap() - 11.0 * block_ns).abs() < 1e-9);
    let sum = budget["total_ns"].as_f64().unwrap() + 11.0 * block_ns;
    assert!((message["latency_ns"].as_f64().unwrap() - sum).abs() < 1e-9, "{message}");
}

#[test]
fn every_stack_is_simulated_and_takes_its_stages_and_more() {
    for fabric in ["edm", "raw-ethernet", "roce", "tcp"] {
        let budget = latency(&["--fabric", fabric, "--op", "write", "--bytes", "64"]);
        let ns = |value: &serde_json::Value| value.as_f64().unwrap();
        let message = &budget["message"];
        assert!(ns(&message["serialization_ns"]) >= 9.0 * 2.56 - 1e-9, "{fabric}: {message}");
        let sum = ns(&budget["total_ns"]) + ns(&message["serialization_ns"]);
        assert!((ns(&message["latency_ns"]) - sum).abs() < 1e-9, "{fabric}: {message}");
    }
}

#[test]
fn a_key_of_the_network_changes_its_stage() {
    let budget = latency(&["--set", "fabric.propagation_ns=50"]);
    assert!((budget["total_ns"].as_f64().unwrap() - (299.52 + 4.0 * 40.0)).abs() < 1e-9);
}

#[test]
fn a_table_has_every_stage_and_the_total() {
    let called = call(Path::new("."), &["latency", "--fabric", "edm", "--op", "write"]);
    assert_eq!((called.code, called.err.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> =
        called.out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert!(rows.contains(&vec!["compute", "grant", "queue", "1", "4", "pcs", "10.24"]));
    assert_eq!(rows.last().unwrap(), &vec!["total", "296.96"]);
}

#[test]
fn a_page_in_a_disaggregated_datacenter_costs_what_the_study_says() {
    let budget = latency(&["--ddc"]);
    let columns = budget["columns"].as_array().unwrap();
    let totals: Vec<String> = columns
        .iter()
        .map(|column| format!("{:.2}", column["total_ns"].as_f64().unwrap() / 1e3))
        .collect();
    assert_eq!(totals, ["7.04", "5.28", "5.14", "3.38", "4.14", "2.38"]);
    assert_eq!((&budget["page_bytes"], &budget["link_gbps"]), (&4096.into(), &40.0.into()));
    let flags = "--os-ns 1 --copy-ns 2 --copy-integrated-ns 3 --switch-ns 4 --propagation-ns-per-m \
                 5 --inter-rack-m 6 --intra-rack-m 7 --page-bytes 125 --link-gbps 10";
    let flags: Vec<&str> = flags.split(' ').collect();
    let changed = latency(&[&["--ddc"], &flags[..]].concat());
    let totals: Vec<f64> = changed["columns"]
        .as_array()
        .unwrap()
        .iter()
        .map(|column| column["total_ns"].as_f64().unwrap())
        .collect();
    let (far, near) = (6.0 * 4.0 + 4.0 * 30.0, 2.0 * 4.0);
    let rest = 4.0 * 35.0 + 100.0;
    let ends = [2.0 + 4.0, 4.0, 6.0];
    let expected: Vec<f64> =
        ends.iter().flat_map(|ends| [ends + far + rest, ends + near + rest]).collect();
    assert_eq!(totals, expected);
}

#[test]
fn settings_that_the_stages_do_not_depend_on_are_refused() {
    let one_switch = "the stages are those of one switch: must be another key";
    for (setting, expected) in [
        ("fabric.nodes=513", "fabric edm has at most 512 nodes"),
        ("fabric.topology=leaf-spine", one_switch),
        ("fabric.leaf_spine.spines=1", one_switch),
        ("fabric.link_gbps=100", "--link-gbps says it: must be another key"),
        ("fabric.kind=tcp", "--fabric says it: must be another key"),
        ("workload.load=0.5", "must be a key of [fabric], such as fabric.propagation_ns"),
        ("run.seed=4", "must be a key of [fabric]"),
    ] {
        let called = call(Path::new("."), &["latency", "--bytes", "64", "--set", setting]);
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{setting}");
        assert!(called.err.contains(expected), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
    }
}

/// A time that a setting gives is a stage, and not a part of what the message is longer.
#[test]
fn times_of_switches_hosts_and_memory_are_stages() {
    let serialization = |fabric: &str, settings: &[&str]| {
        let mut arguments = vec!["--fabric", fabric, "--bytes", "64"];
        arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
        let budget = latency(&arguments);
        budget["message"]["serialization_ns"].as_f64().unwrap()
    };
    let times = ["fabric.memory_access_ns=100", "fabric.packet.forwarding_ns=500"];
    for fabric in ["raw-ethernet", "roce", "tcp"] {
        let settings = [&times[..], &["fabric.packet.stack_ns=70"]].concat();
        assert_eq!(serialization(fabric, &settings), serialization(fabric, &[]), "{fabric}");
    }
    assert_eq!(serialization("edm", &times[..1]), serialization("edm", &[]));
    // A read that is given up before it can come back still takes its time.
    let late = ["fabric.edm.read_timeout_us=0.001"];
    assert_eq!(serialization("edm", &late), serialization("edm", &[]));
}

#[test]
fn the_budget_of_a_page_takes_no_other_arguments() {
    for (arguments, expected) in [
        (&["--ddc", "--fabric", "edm"][..], "cannot be used with"),
        (&["--switch-ns", "1"], "--ddc"),
        (&["--format", "csv"], "--format csv without --ddc: must be one of table, json"),
        (&["--ddc", "--inter-rack-m=-1"], "must be 0 to 1000000"),
    ] {
        let called = call(Path::new("."), &[&["latency"], arguments].concat());
        assert_eq!(called.code, 2, "{arguments:?}");
        assert!(called.err.contains(expected), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
    }
    let table = call(Path::new("."), &["latency", "--ddc"]);
    assert!(table.out.lines().all(|line| line.len() <= 80), "{}", table.out);
    let csv = call(Path::new("."), &["latency", "--ddc", "--format", "csv"]);
    assert_eq!(
        csv.out.lines().next(),
        Some("technology,distance,component,passes,each_ns,total_ns")
    );
}
