//! `ethermem report`: the page, its numbers, and the commands it tells people to repeat.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{call, called, command, commands, numbers_of, root};

fn report(folder: &Path, arguments: &[&str]) -> (String, Value) {
    let called = call(folder, &[&["report", "--quick"], arguments].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let at = arguments.iter().position(|argument| *argument == "--out");
    let out = folder.join(at.map_or("out/report", |at| arguments[at + 1]));
    assert!(called.out.ends_with("/index.html\n"), "{}", called.out);
    let mut files: Vec<_> =
        fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["index.html", "results.json"]);
    let page = fs::read_to_string(out.join("index.html")).unwrap();
    let results = fs::read_to_string(out.join("results.json")).unwrap();
    (page, serde_json::from_str(&results).unwrap())
}

#[test]
fn every_figure_has_its_numbers_and_a_command_that_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let (page, _) = report(folder.path(), &[]);
    let figures = page.matches("class=\"figure\"").count();
    assert!(figures >= 9, "{figures}");
    let commands = commands(&page);
    assert_eq!(commands.len(), figures + 1, "one for each figure, and one for all");
    for command in &commands {
        let arguments: Vec<&str> = command[1..].iter().map(String::as_str).collect();
        let called = call(folder.path(), &arguments);
        assert_eq!(called.code, 0, "{command:?}: {}", called.err);
        if let Some(at) = arguments.iter().position(|argument| *argument == "--figure") {
            let id = arguments[at + 1];
            let path = folder.path().join("out").join(id).join("index.html");
            let repeated = fs::read_to_string(path).unwrap();
            assert_eq!(numbers_of(&page, id), numbers_of(&repeated, id), "{id}");
        }
    }
}

#[test]
fn every_result_has_a_command_that_repeats_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_, results) = report(folder.path(), &["--threads", "2"]);
    let results = results.as_array().unwrap();
    assert!(results.len() > 50, "{}", results.len());
    for entry in results.iter().step_by(7) {
        let line = entry["command"].as_str().unwrap();
        let words = shlex::split(line).unwrap();
        let mut arguments: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        arguments.extend(["--format", "json"]);
        let called = called(&command(&root(), &arguments).output().unwrap());
        assert_eq!(called.code, 0, "{line}: {}", called.err);
        let repeated: Value = serde_json::from_str(&called.out).unwrap();
        let (told, repeated) = (told(&entry["result"]), told(&repeated));
        assert_eq!(told, repeated, "{line}");
    }
}

/// A result without its real time, and its name in the report.
fn told(result: &Value) -> Value {
    let mut result = result.clone();
    for key in ["wall_s", "label"] {
        assert!(result.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    result
}

#[test]
fn the_page_is_the_same_bytes_on_one_thread_and_on_two() {
    let folder = tempfile::tempdir().unwrap();
    let figures = ["--figure", "slowdown-by-load", "--figure", "where-the-nanoseconds-go"];
    let (one, _) = report(folder.path(), &[&figures[..], &["--threads", "1"]].concat());
    let (two, _) = report(folder.path(), &[&figures[..], &["--threads", "2"]].concat());
    assert!(one == two);
}

#[test]
fn the_table_has_every_workload_on_every_fabric() {
    let folder = tempfile::tempdir().unwrap();
    let called = call(folder.path(), &["report", "--quick"]);
    for workload in ["hadoop", "spark", "sparksql", "graphlab", "memcached", "64 B"] {
        let rows = called.out.lines().filter(|line| line.trim_start().starts_with(workload));
        assert!(rows.count() > 0, "{workload}: {}", called.out);
    }
    for fabric in ["edm", "edm as published", "raw-ethernet", "ideal"] {
        let rows = called.out.lines().filter(|line| line.contains(&format!("  {fabric}  ")));
        assert_eq!(rows.count(), 7, "{fabric}: {}", called.out);
    }
    assert!(called.out.lines().all(|line| line.chars().count() <= 100), "{}", called.out);
}

#[test]
fn an_unknown_figure_is_told_the_known_ones() {
    let called = call(Path::new("."), &["report", "--figure", "nosuch"]);
    let start =
        "error: invalid value 'nosuch' for '--figure <NAME>': must be one of slowdown-by-load, ";
    assert!(called.err.starts_with(start), "{}", called.err);
    assert_eq!((called.code, called.err.lines().count()), (2, 1));
}
