//! `ethermem compare --out`: the content of the page, and folders that cannot be written.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::compare::{METHOD, TINY, folder, out};
use crate::support::{call, commands, numbers_of};

fn page(folder: &Path, arguments: &[&str]) -> String {
    let out = out(folder, &[arguments, &["--out", "page"]].concat());
    assert!(out.ends_with("wrote page/index.html\n"), "{out}");
    let mut files: Vec<_> = fs::read_dir(folder.join("page"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(files, ["index.html", "results.json"]);
    fs::read_to_string(folder.join("page/index.html")).unwrap()
}

fn results(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("page/results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn cell(value: &Value, decimals: usize) -> String {
    format!("<td>{:.decimals$}</td>", value.as_f64().unwrap())
}

/// Every figure has its numbers, and the command below it reproduces them.
fn repeats(folder: &Path, page: &str) {
    let figures = page.matches("class=\"figure\"").count();
    let commands = commands(page);
    assert_eq!(commands.len(), figures + 1, "one for each figure, and one for all");
    for command in &commands {
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let called = call(folder, &arguments);
        assert_eq!(called.code, 0, "{command:?}: {}", called.err);
        let into = arguments.iter().position(|argument| *argument == "--out").unwrap() + 1;
        let path = folder.join(arguments[into]).join("index.html");
        let repeated = fs::read_to_string(path).unwrap();
        let id = arguments[into].strip_prefix("out/").unwrap();
        if page.contains(&format!("<section id=\"{id}\"")) {
            assert_eq!(numbers_of(page, id), numbers_of(&repeated, id), "{id}");
        } else {
            assert!(page == repeated, "{command:?}");
        }
    }
}

#[test]
fn the_page_has_every_point_and_first_where_rivals_are_not_behind() {
    let folder = folder();
    let page = page(folder.path(), &["compare", "tiny.toml"]);
    let rows = results(folder.path());
    let json = out(folder.path(), &["compare", "tiny.toml", "--format", "json"]);
    assert_eq!(rows.len(), serde_json::from_str::<Vec<Value>>(&json).unwrap().len());
    let points = numbers_of(&page, "all-points");
    let published = numbers_of(&page, "writes-published");
    for row in &rows {
        let (point, fabric) = (row["point"].as_str().unwrap(), row["fabric"].as_str().unwrap());
        let all = &row["same_messages"]["kinds"]["all"];
        let start = format!("<td class=\"text\">{point}</td><td class=\"text\">{fabric}</td>");
        let line = &points[points.find(&start).expect("a row for each")..];
        let line = &line[..line.find("</tr>").unwrap()];
        for (value, decimals) in [
            ("slowdown_mean", 3),
            ("slowdown_p99", 3),
            ("latency_ns_mean", 1),
            ("latency_ns_p99", 1),
        ] {
            assert!(line.contains(&cell(&all[value], decimals)), "{line}: {value}");
        }
        let of_slowdown = numbers_of(&page, "writes-slowdown");
        assert!(of_slowdown.contains(&cell(&all["slowdown_mean"], 3)), "{fabric}");
        if row["published"].is_f64() {
            assert!(published.contains(&cell(&row["published"], 2)), "{fabric}");
        }
    }
    let mut sections = page.split("<section id=\"").skip(1);
    assert!(sections.next().unwrap().starts_with("rivals-not-behind\""), "first of all");
    let edm = &rows[0]["same_messages"]["kinds"]["all"]["latency_ns_mean"];
    let cxl = &rows[1]["same_messages"]["kinds"]["all"]["latency_ns_mean"];
    let lead = format!("<td>{:.1} / {:.1}</td>", cxl.as_f64().unwrap(), edm.as_f64().unwrap());
    assert!(numbers_of(&page, "rivals-not-behind").contains(&lead), "{lead}");
    repeats(folder.path(), &page);
}

#[test]
fn a_page_by_a_published_method_says_so() {
    let folder = folder();
    fs::write(folder.path().join("tiny.toml"), format!("{TINY}{METHOD}")).unwrap();
    let compare = ["compare", "tiny.toml", "--method", "published", "--fabrics", "edm,cxl"];
    let page = page(folder.path(), &compare);
    let published = numbers_of(&page, "writes-published");
    for row in results(folder.path()) {
        assert!(published.contains(&cell(&row["slowdown_mean"], 3)), "{row}");
        assert!(published.contains(&cell(&row["published"], 2)), "{row}");
        let latency = numbers_of(&page, "writes-latency").replace(',', "");
        assert!(latency.contains(&cell(&row["latency_ns_mean"], 1)), "{row}");
    }
    assert!(page.contains("300 messages a run, means over 2 seeds"), "at the foot");
    assert!(!page.contains("All messages run to their end"), "they do not");
    repeats(folder.path(), &page);
}

#[test]
fn one_workload_has_a_page_too() {
    let folder = folder();
    fs::write(folder.path().join("one.toml"), "[fabric]\nnodes = 8\n[workload]\nmessages = 400\n")
        .unwrap();
    let compare = ["compare", "one.toml", "--fabrics", "edm,cxl,ideal", "--seed", "3"];
    let page = page(folder.path(), &compare);
    let runs = numbers_of(&page, "runs");
    for run in results(folder.path()) {
        let all = &run["kinds"]["all"];
        assert!(runs.contains(&cell(&all["slowdown_mean"], 3)), "{run}");
        assert!(numbers_of(&page, "slowdown").contains(&cell(&all["slowdown_p99"], 3)), "{run}");
    }
    let leads = numbers_of(&page, "rivals-not-behind");
    assert!(leads.contains("cxl") && !leads.contains("ideal"), "a bound is no rival: {leads}");
    repeats(folder.path(), &page);
}

#[test]
fn the_page_is_the_same_bytes_on_one_thread_and_on_three() {
    let folder = folder();
    let compare = ["compare", "tiny.toml", "--threads"];
    let one = page(folder.path(), &[&compare[..], &["1"]].concat());
    assert!(one == page(folder.path(), &[&compare[..], &["3"]].concat()));
}

#[test]
fn json_stays_json_and_an_older_page_is_replaced() {
    let folder = folder();
    let older = folder.path().join("page");
    fs::create_dir(&older).unwrap();
    fs::write(older.join("index.html"), "older").unwrap();
    fs::write(older.join("notes.txt"), "mine").unwrap();
    let compare = ["compare", "tiny.toml", "--out", "page", "--format", "json"];
    let json = out(folder.path(), &compare);
    let rows: Vec<Value> = serde_json::from_str(&json).unwrap();
    assert_eq!(rows.len(), 6);
    assert!(fs::read_to_string(older.join("index.html")).unwrap().starts_with("<!DOCTYPE html>"));
    assert_eq!(fs::read_to_string(older.join("notes.txt")).unwrap(), "mine");
}

fn refused(folder: &Path, arguments: &[&str], line: &str) {
    let called = call(folder, &[&["compare", "tiny.toml"], arguments].concat());
    assert_eq!(called.err, format!("error: {line}\n"), "{arguments:?}");
    assert_eq!((called.code, called.out.as_str()), (2, ""), "before anything ran");
}

#[test]
fn a_page_that_cannot_be_written_is_one_line() {
    let folder = folder();
    fs::write(folder.path().join("file"), "").unwrap();
    refused(
        folder.path(),
        &["--out", "file"],
        "cannot write file: is not a folder: must be one, or a new name",
    );
    refused(
        folder.path(),
        &["--out", "file/below"],
        "cannot write file/below: Not a directory (os error 20)",
    );
    refused(
        folder.path(),
        &["--experiment", "reads", "--out", "page"],
        "--experiment reads: must be one of writes",
    );
    assert!(!folder.path().join("page").exists(), "nothing is left of it");
    let called =
        call(folder.path(), &["compare", "tiny.toml", "--method", "published", "--out", "page"]);
    assert_eq!((called.code, folder.path().join("page").exists()), (2, false), "{}", called.err);
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_takes_no_files_and_a_full_disk() {
    let folder = folder();
    // Even root cannot make a folder there.
    refused(
        folder.path(),
        &["--out", "/proc/page"],
        "cannot write /proc/page: No such file or directory (os error 2)",
    );
    let page = folder.path().join("page");
    fs::create_dir(&page).unwrap();
    fs::write(page.join("index.html"), "older").unwrap();
    std::os::unix::fs::symlink("/dev/full", page.join("results.json")).unwrap();
    let called = call(folder.path(), &["compare", "tiny.toml", "--out", "page"]);
    let line = "error: cannot write page/results.json: No space left on device (os error 28)\n";
    assert!(called.err.ends_with(line), "{}", called.err);
    assert_eq!(called.code, 2);
    assert!(!called.out.contains("wrote"), "{}", called.out);
    assert_eq!(fs::read_to_string(page.join("index.html")).unwrap(), "older", "whole as it was");
}
