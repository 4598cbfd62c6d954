//! README's table of capacities is what `ethermem capacity` prints.

use std::fs;

use serde_json::Value;

use crate::support::{call, root};

/// Head of the table, as README has it.
const HEAD: &str = "| fabric | sustained, 64 B | 1 KiB | 4 KiB \
                    | 64 B at 15 Gb/s: p99 ns / slowdown | 4 KiB at 60 Gb/s: p99 ns / slowdown |";
/// Fabrics of the fast form, which takes seconds.
const FAST: &str = "edm,cxl,ideal";

/// A whole number with commas between thousands.
fn grouped(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The cells of a fabric, from the rows that the command prints.
fn cells(rows: &[Value], fabric: &str) -> Vec<String> {
    let row = |workload: &str| {
        let is_it = |row: &&Value| row["fabric"] == fabric && row["workload"] == workload;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("no row of {fabric}, {workload}"))
    };
    let sustained = |workload| {
        let goodput = row(workload)["capacity"]["goodput_gbps_per_node"].as_f64();
        goodput.map_or("-".to_owned(), |goodput| format!("{goodput:.1}"))
    };
    let latency = |workload, share: f64| {
        let points = row(workload)["points"].as_array().unwrap();
        let is_it = |point: &&Value| point["at"] == "goodput" && point["share"] == share;
        let point = points.iter().find(is_it).expect("a load of the table");
        match (point["latency_ns_p99"].as_f64(), point["slowdown_mean"].as_f64()) {
            (Some(ns), Some(slowdown)) => format!("{} / {slowdown:.2}", grouped(ns)),
            _ => "-".to_owned(),
        }
    };
    let mut cells: Vec<String> = ["64 B", "1 KiB", "4 KiB"].map(sustained).into();
    cells.extend([latency("64 B", 0.15), latency("4 KiB", 0.60)]);
    cells
}

/// `ETHERMEM_README=whole` compares every fabric; `UPDATE_GOLDEN` writes the table.
#[test]
fn the_first_table_of_the_readme_is_the_command_s() {
    let path = root().join("README.md");
    let readme = fs::read_to_string(&path).unwrap();
    let (before, rest) = readme.split_once(HEAD).expect("README has the table");
    let (table, after) = rest.split_once("\n\n").expect("the table ends");
    let is_written = std::env::var_os("UPDATE_GOLDEN").is_some();
    let is_whole = is_written || std::env::var_os("ETHERMEM_README").is_some();
    let mut line = vec!["capacity", "--workloads", "64,1024,4096", "--format", "json"];
    if !is_whole {
        line.extend(["--fabrics", FAST]);
    }
    let called = call(&root(), &line);
    assert_eq!(called.code, 0, "{}", called.err);
    let rows: Vec<Value> = serde_json::from_str(&called.out).unwrap();
    let mut written = String::from("\n|---|---|---|---|---|---|");
    assert_eq!(rows.len() % 3, 0, "three workloads of each fabric");
    let fabrics = rows.len() / 3;
    assert!(fabrics >= FAST.split(',').count(), "{fabrics} fabrics");
    for row in rows.iter().filter(|row| row["workload"] == "64 B") {
        let fabric = row["fabric"].as_str().unwrap();
        let bound = if row["is_bound"] == true { " (bound)" } else { "" };
        let line = format!("\n| `{fabric}`{bound} | {} |", cells(&rows, fabric).join(" | "));
        assert!(is_written || table.contains(&line), "README's table must have{line}");
        written.push_str(&line);
    }
    assert_eq!(written.lines().count(), fabrics + 2, "a line of each fabric");
    if is_written {
        fs::write(&path, format!("{before}{HEAD}{written}\n\n{after}")).unwrap();
    } else if is_whole {
        assert_eq!(table, written, "README's table");
    }
}
