//! `ethermem bench`: measurements of pools, and refused measurements.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{call, root};

fn json(arguments: &[&str]) -> Value {
    let called = call(&root(), arguments);
    assert_eq!(called.code, 0, "{arguments:?}: {}", called.err);
    serde_json::from_str(&called.out).unwrap()
}

fn refused(arguments: &[&str], line: &str) {
    let called = call(&root(), &[&["bench"], arguments].concat());
    assert_eq!(called.err, format!("error: {line}\n"), "{arguments:?}");
    assert_eq!((called.code, called.out.as_str()), (2, ""), "{arguments:?}");
}

#[test]
fn one_point_is_an_object_and_many_are_a_list() {
    let micro = ["bench", "micro", "--pool", "sim:edm?nodes=2&link_gbps=25", "--operations", "100"];
    let point = json(&[&micro[..], &["--op", "read", "--format", "json"]].concat());
    let keys: Vec<&String> = point.as_object().unwrap().keys().collect();
    let first = ["pool", "op", "bytes", "depth", "p50_ns", "p99_ns", "mean_ns", "operations_per_s"];
    assert_eq!(keys[..8], first);
    // Table 1 of EDM's paper, plus 64 B on the links and 82 ns of DRAM.
    assert_eq!(point["mean_ns"], Value::from(409.68));
    let told = |sweep: &[&str]| -> Vec<(String, u64, u64)> {
        let points = json(&[&micro[..], sweep, &["--format", "json"]].concat());
        let told = points.as_array().unwrap().iter().map(|point| {
            let number = |key: &str| point[key].as_u64().unwrap();
            (point["op"].as_str().unwrap().to_owned(), number("bytes"), number("depth"))
        });
        told.collect()
    };
    let [read, cas] = ["read", "cas"].map(str::to_owned);
    let four = [(read.clone(), 64, 1), (read.clone(), 64, 4), (cas.clone(), 8, 1), (cas, 8, 4)];
    assert_eq!(told(&["--op", "read,cas", "--depth", "1,4"]), four);
    // Lengths are those of reads and writes.
    assert_eq!(told(&["--op", "read,cas", "--depth", "1,4", "--bytes", "64"]), four);
    let points = told(&["--op", "cas,read", "--bytes", "64,1024"]);
    assert_eq!(points[1..], [(read.clone(), 64, 1), (read, 1_024, 1)]);
}

#[test]
fn ycsb_on_two_pools() {
    let arguments = [
        "bench",
        "ycsb",
        "--pool",
        "local:",
        "--pool",
        "sim:cxl?nodes=4",
        "--workload",
        "A,f",
        "--records",
        "100",
        "--operations",
        "500",
    ];
    let table = call(&root(), &arguments);
    assert_eq!((table.code, table.err.as_str()), (0, ""));
    let rows: Vec<&str> = table.out.lines().collect();
    assert!(rows[0].contains("workload") && rows[0].ends_with("operations/s"), "{}", rows[0]);
    // A has rows for all, read and update; F also has read-modify-write.
    assert_eq!(rows.len(), 1 + 2 * (3 + 4), "{}", table.out);
    let results = json(&[&arguments[..], &["--format", "json"]].concat());
    let [local, .., cxl] = results.as_array().unwrap().as_slice() else { panic!("four results") };
    assert_eq!((local["time"].as_str(), cxl["time"].as_str()), (Some("machine"), Some("fabric")));
    assert_eq!((&cxl["workload"], &cxl["records"]), (&Value::from("F"), &Value::from(100)));
    for row in
        results.as_array().unwrap().iter().flat_map(|run| run["latencies"].as_array().unwrap())
    {
        let buckets = row["buckets"].as_array().unwrap();
        let counts = buckets.iter().map(|bucket| bucket["operations"].as_u64().unwrap());
        assert_eq!(counts.sum::<u64>(), row["operations"].as_u64().unwrap(), "{row}");
        let last = buckets.last().unwrap();
        let [from, most, below] = [&last["from_ns"], &row["max_ns"], &last["below_ns"]]
            .map(|number| number.as_f64().unwrap());
        assert!(from <= most && most < below, "{row}");
    }
}

#[test]
fn the_table_of_ycsb_comes_out_again() {
    let entries = json(&["bench", "ycsb", "scenarios/ycsb.toml", "--format", "json"]);
    let entries = entries.as_array().unwrap();
    let measured = |fabric: &str, workload: &str| {
        let entry = entries
            .iter()
            .find(|entry| entry["pool"] == fabric && entry["point"] == workload)
            .unwrap_or_else(|| panic!("{fabric}, {workload}: no entry"));
        let all = &entry["runs"][0]["latencies"][0];
        assert_eq!(all["op"], "all");
        ["mean_ns", "p50_ns", "p99_ns"].map(|key| all[key].as_f64().unwrap().round() as u64)
    };
    let page = fs::read_to_string(root().join("docs/benchmarks.md")).unwrap();
    let mut fabrics = 0;
    for line in page.lines() {
        let cells: Vec<&str> = line.trim_matches(['|', ' ']).split(" | ").collect();
        if cells.len() != 13 || !cells[0].starts_with('`') {
            continue;
        }
        fabrics += 1;
        let fabric = cells[0].trim_matches('`');
        let told = cells[1..].iter().map(|cell| cell.replace(',', "").parse().unwrap());
        let told: Vec<u64> = told.collect();
        assert_eq!(told, ["A", "B", "C", "F"].map(|w| measured(fabric, w)).concat(), "{fabric}");
    }
    let pools: HashSet<&str> =
        entries.iter().map(|entry| entry["pool"].as_str().unwrap()).collect();
    assert_eq!(fabrics, pools.len() - 1, "all but this machine's memory");
}

#[test]
fn figure_7_is_near_what_was_published() {
    let few = ["--operations", "2000", "--records", "1000", "--format", "json"];
    let rows = json(&[&["bench", "ycsb", "scenarios/figure7.toml"][..], &few].concat());
    let mut held = 0;
    for row in rows.as_array().unwrap() {
        let Some(within) = row["within_percent"].as_f64() else { continue };
        let off = row["off_percent"].as_f64().unwrap();
        assert!(off.abs() <= within, "{} {}: {off} %", row["point"], row["pool"]);
        held += 1;
    }
    assert_eq!(held, 15);
}

/// The rows that a figure's command prints, by column; points without their names.
fn printed(figure: &str, more: &[&str]) -> Vec<Vec<String>> {
    let scenario = format!("scenarios/{figure}.toml");
    let called = call(&root(), &[&["bench", "ycsb", scenario.as_str()][..], more].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    // The conclusion by pool stands behind the table: `edm: 5 of 5 points`.
    let is_row =
        |line: &&str| line.split_whitespace().next().is_some_and(|one| !one.ends_with(':'));
    let rows = called.out.lines().skip(1).filter(is_row).map(str::split_whitespace);
    rows.map(|row| row.map(|cell| cell.replace("local:remote=", "")).collect()).collect()
}

#[test]
fn the_page_of_figures_6_and_7_has_what_they_print() {
    let page = fs::read_to_string(root().join("docs/figure6-7.md")).unwrap();
    let mut held = 0;
    let mut hold = |line: String| {
        assert!(page.contains(&line), "not in the page: {line}");
        held += 1;
    };
    let percent = |off: &str| if off == "-" { off.to_owned() } else { format!("{off} %") };
    for row in printed("figure7", &[]) {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        let [point, pool, published, mean, off, p50, p99, least, most, remote] = row[..] else {
            panic!("{row:?}");
        };
        let off = percent(off);
        hold(format!(
            "| {point} | `{pool}` | {published} | {mean} | {off} | {p50} | {p99} | \
             {least} to {most} | {remote} |"
        ));
    }
    for row in printed("figure6", &[]) {
        let row: Vec<&str> = row.iter().map(String::as_str).collect();
        let [point, pool, published, writes, off, requests, whole, there, back, _] = row[..] else {
            panic!("{row:?}");
        };
        let [whole, back] = [whole, back].map(|number| number.parse::<f64>().unwrap());
        hold(format!(
            "| {point} | `{pool}` | {published} | {writes} | {off} % | {requests} | \
             **{whole:.2}** | {there} % | {back:.0} % |"
        ));
    }
    for (label, changed) in [
        ("nothing", ""),
        ("`--record-bytes 640 --field-bytes 64`", "--record-bytes 640 --field-bytes 64"),
        ("`--record-bytes 1280 --field-bytes 128`", "--record-bytes 1280 --field-bytes 128"),
        ("`--writes at-node`: a write ends when its last byte is at the node", "--writes at-node"),
        (
            "`--reads record`: 1,000 B, the length that the paper gives for figure 6",
            "--reads record",
        ),
    ] {
        let more: Vec<&str> =
            "--operations 4000".split(' ').chain(changed.split_whitespace()).collect();
        let rows = printed("figure7", &more);
        let worst = |pool: &str| {
            let rows = rows.iter().filter(|row| row[1] == pool);
            rows.map(|row| row[4].parse::<f64>().unwrap().abs()).fold(0.0, f64::max)
        };
        hold(format!("| {label} | {:.1} % | {:.1} % |", worst("edm"), worst("roce")));
    }
    assert_eq!(held, 20 + 6 + 5);
}

#[test]
fn figure_6_fills_the_way_back_and_not_the_way_there() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("figure6");
    let few = ["--operations", "3000", "--records", "1000", "--out", out.to_str().unwrap()];
    let called = call(&root(), &[&["bench", "ycsb", "scenarios/figure6.toml"][..], &few].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let rows: Value = serde_json::from_slice(&fs::read(out.join("results.json")).unwrap()).unwrap();
    for row in rows.as_array().unwrap() {
        let links = &row["runs"][0]["links"];
        let share = |key: &str| links[key].as_f64().unwrap();
        assert!(share("replying_utilisation") > 0.9, "{row}");
        assert!(share("requesting_utilisation") < 0.5, "{row}");
        if row["pool"] == "edm" {
            assert!(row["off_percent"].as_f64().unwrap().abs() < 10.0, "{row}");
        }
    }
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    assert!(page.contains("whole system") && page.contains("23.0"), "numbers on the page");
}

#[test]
fn every_wrong_value_is_one_line() {
    let pool = ["--pool", "local:"];
    let with = |command: &[&'static str], rest: &[&'static str]| -> Vec<&'static str> {
        [command, &pool, rest].concat()
    };
    let ycsb = |rest: &[&'static str]| with(&["ycsb"], rest);
    let micro = |rest: &[&'static str]| with(&["micro"], rest);
    for (arguments, line) in [
        (ycsb(&["--records", "1"]), "records 1: must be 2 to 4294967296"),
        (ycsb(&["--operations", "0"]), "operations 0: must be 1 to 1099511627776"),
        (ycsb(&["--clients", "5000"]), "clients 5000: must be 1 to 4096"),
        (ycsb(&["--record-bytes", "0"]), "record-bytes 0: must be 1 to 1048576"),
        (ycsb(&["--field-bytes", "7"]), "field-bytes 7: must be a divisor of record-bytes 1000"),
        (
            ycsb(&["--workload", "G"]),
            "invalid value 'G' for '--workload <A,B>': must be one of A, B, C, D, E, F",
        ),
        (
            ycsb(&["--local-to-remote", "1"]),
            "invalid value '1' for '--local-to-remote <L:R>': `1`: must be two counts such as \
             50:50 or 100:10",
        ),
        (
            ycsb(&["--reads", "all"]),
            "invalid value 'all' for '--reads <EXTENT>': must be field or record",
        ),
        (
            ycsb(&["--local-to-remote", "1:1"]),
            "local-to-remote: allowed on sim: pools, whose time is modelled; pool local: has the \
             machine's",
        ),
        (micro(&["--op", "add"]), {
            "invalid value 'add' for '--op <OP,OP>': must be one of read, write, cas, fetch-add, \
             lock"
        }),
        (micro(&["--op", "cas", "--bytes", "64"]), "bytes 64: cas is of 8 B"),
        (micro(&["--depth", "0"]), "depth 0: must be 1 to 4096"),
        (
            vec!["ycsb", "--pool", "local:?memory_bytes=4096"],
            "pool local:?memory_bytes=4096: 10000 records of 1000 B need 10000000 B on each of 1 \
             memory nodes (memory_bytes=10000000): no room for 10000000 B: 4096 B are free",
        ),
    ] {
        refused(&arguments, line);
    }
    let fabrics = ethermem_sim::registry::FABRIC_NAMES.join(", ");
    let line = format!("pool sim:edn: fabric `edn`: must be one of {fabrics}");
    refused(&["micro", "--pool", "sim:edn"], &line);
}

#[test]
fn a_plan_that_cannot_be_is_told_by_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let head = "[figure]\nname = 'f'\ntitle = 'F'\nshows = 'latency'\n";
    let rest = "[[pool]]\nname = 'p'\nurl = 'local:'\n[[point]]\nname = 'x'\n";
    for (text, told) in [
        (format!("{head}{rest}set = {{ recods = 5 }}\n"), "s.toml:10: unknown field `recods`"),
        (format!("{head}seeds = 0\n{rest}"), "s.toml: figure.seeds = 0: must be 1 to 1000"),
        (format!("{head}published = 'no.csv'\n{rest}"), "no.csv: cannot be read"),
        (head.to_owned(), "s.toml:1: no `pool`: must be given"),
        (String::new(), "s.toml:1: no `figure`: must be given"),
    ] {
        let file = folder.path().join("s.toml");
        fs::write(&file, text).unwrap();
        let called = call(folder.path(), &["bench", "ycsb", "s.toml"]);
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{told}");
        let line = called.err.strip_prefix("error: ").unwrap().trim_end();
        assert!(line.starts_with(told) && !line.contains('\n'), "{line}, not {told}");
    }
    let missing = call(Path::new("."), &["bench", "ycsb", "no.toml"]);
    assert_eq!(missing.err, "error: no.toml: cannot be read: No such file or directory\n");
}
