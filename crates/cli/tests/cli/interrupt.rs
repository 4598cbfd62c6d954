//! Ctrl-C: exit code 130 within a second, one line, no file.
#![cfg(unix)]

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Called, called, command};

const LONG: [&str; 2] = ["--set", "workload.messages=1000000000"];

fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = command(folder, arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("the command starts")
}

/// Waits until `ready`, sends the signal of Ctrl-C, and returns the result and its delay.
fn interrupt(mut child: Child, ready: impl Fn() -> bool) -> (Called, Duration) {
    let started = Instant::now();
    while !ready() {
        assert!(started.elapsed() < Duration::from_secs(30), "it does not start");
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(200));
    assert_eq!(child.try_wait().unwrap(), None, "it ran into something else");
    let sent = Instant::now();
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    (called(&output), sent.elapsed())
}

fn entries(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn a_long_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("s.toml"), "[fabric]\nnodes = 16\n").unwrap();
    let arguments = [&["sim", "s.toml", "--messages", "m.parquet"], &LONG[..]].concat();
    let child = start(folder, &arguments);
    let (called, took) = interrupt(child, || entries(folder) == 2);
    assert_eq!(called.code, 130, "{}", called.err);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(called.err.starts_with("interrupted after "), "{}", called.err);
    assert!(called.err.ends_with(" messages; no file was written\n"), "{}", called.err);
    assert_eq!((called.err.lines().count(), called.out.as_str()), (1, ""));
    assert_eq!(entries(folder), 1, "only the scenario is left");
}

#[test]
fn a_comparison() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("s.toml"), "[fabric]\nnodes = 16\n").unwrap();
    let arguments = [&["compare", "s.toml", "--fabrics", "edm,raw-ethernet,ird"], &LONG[..]];
    let child = start(folder, &arguments.concat());
    let (called, took) = interrupt(child, || true);
    let line = "interrupted after 0 of 3 runs; no file was written\n";
    assert_eq!((called.code, called.err.as_str()), (130, line));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_report() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let child = start(folder, &["report", "--out", "out/report", "--threads", "1"]);
    let (called, took) = interrupt(child, || folder.join("out/report").is_dir());
    assert_eq!(called.code, 130, "{}", called.err);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(called.err.ends_with(" runs; no file was written\n"), "{}", called.err);
    assert_eq!(entries(folder), 0, "the folders made for it are gone");
}

#[test]
fn a_trace_being_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("s.toml"), "[fabric]\nnodes = 16\n").unwrap();
    let arguments = [&["workload", "generate", "s.toml", "--out", "t.csv"], &LONG[..]].concat();
    let child = start(folder, &arguments);
    let (called, took) = interrupt(child, || entries(folder) == 2);
    assert_eq!(called.code, 130, "{}", called.err);
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert_eq!(entries(folder), 1, "only the scenario is left");
}

#[test]
fn a_pipe_that_nobody_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    assert!(Command::new("mkfifo").arg(folder.join("s.toml")).status().unwrap().success());
    let child = start(folder, &["sim", "s.toml"]);
    let (called, took) = interrupt(child, || true);
    let line = "interrupted; no file was written\n";
    assert_eq!((called.code, called.err.as_str()), (130, line));
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[test]
fn a_reader_that_went_away_is_no_error() {
    let mut child = start(Path::new("."), &["workload", "list"]);
    drop(child.stdout.take());
    let called = called(&child.wait_with_output().unwrap());
    assert_eq!((called.code, called.err.as_str()), (0, ""));
}
