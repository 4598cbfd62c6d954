//! `ethermem sweep`: equal bytes for any number of threads, through a kill and a full disk.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

use crate::support::{call, root};

const BASE: &str = "[fabric]\nnodes = 8\n[workload]\nmessages = 2000\n[run]\nseed = 3\n";
const SWEEP: &str = "scenario = 'base.toml'\nfabrics = ['edm', 'ideal']\nseeds = 3\n\
                     [vary]\nworkload.load = {from = 0.2, to = 0.6, steps = 3}\n\
                     fabric.edm.policy = ['srpt', 'fcfs']\n";
/// Number of points of [`SWEEP`].
const POINTS: usize = 36;

fn folder(sweep: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("base.toml"), BASE).unwrap();
    fs::write(folder.path().join("w.toml"), sweep).unwrap();
    folder
}

/// The results of an uninterrupted sweep, and its output.
fn swept(folder: &Path, out: &str, threads: &str) -> (Vec<u8>, String) {
    let sweep = ["sweep", "w.toml", "--out", out, "--threads", threads, "--format", "json"];
    let called = call(folder, &sweep);
    assert_eq!(called.code, 0, "{}", called.err);
    (fs::read(folder.join(out)).unwrap(), called.out)
}

fn lines(journal: &Path) -> usize {
    let bytes = fs::read(journal).unwrap_or_default();
    bytes.iter().filter(|&&byte| byte == b'\n').count()
}

#[test]
fn the_same_bytes_for_any_number_of_threads() {
    let folder = folder(SWEEP);
    let one = swept(folder.path(), "one.parquet", "1");
    let two = swept(folder.path(), "two.parquet", "2");
    assert!(one == two);
    let summaries: Value = serde_json::from_str(&one.1).unwrap();
    assert_eq!(summaries.as_array().unwrap().len(), POINTS / 3);
    let first = &summaries[0];
    assert_eq!(first["settings"]["workload.load"], "0.2");
    assert_eq!(first["seeds"], serde_json::json!([3, 4, 5]));
    let slowdown = &first["metrics"]["slowdown_mean"];
    let half_width = slowdown["ci95_half_width"].as_f64().unwrap();
    assert!(slowdown["mean"].as_f64().unwrap() >= 1.0 && half_width > 0.0, "{slowdown}");
}

/// With the longest possible file name, there is no room for the journal's usual name.
#[test]
fn points_of_another_sweep_are_named_and_kept() {
    let folder = folder("scenario = 'base.toml'\n[vary]\nworkload.load = [0.2, 0.5]\n");
    for length in [8, 250] {
        let out = "n".repeat(length);
        let swept = |settings: &[&str]| {
            let sweep = ["sweep", "w.toml", "--out", &out];
            let called = call(folder.path(), &[&sweep[..], settings].concat());
            assert_eq!(called.code, 0, "{}", called.err);
            called.err
        };
        assert!(!swept(&[]).contains("note: "));
        let said = swept(&["--set", "workload.read_fraction=1.0"]);
        assert!(said.contains("2 finished points are of another sweep"), "{said}");
        assert!(said.contains("and 2 points run"), "{said}");
        // The points are still there.
        let said = swept(&[]);
        assert!(said.starts_with("2 of 2 points are there already\n"), "{said}");
    }
}

/// Latencies of a load that is not sustained grow with the length of the run.
#[test]
fn latencies_of_a_load_that_is_not_sustained_are_left_out() {
    let folder = folder(
        "scenario = 'base.toml'\nfabrics = ['edm']\nseeds = 2\n\
         [vary]\nworkload.load = [0.3, 0.95]\n",
    );
    let sweep = ["sweep", "w.toml", "--out", "r.parquet", "--set", "fabric.nodes=2"];
    let called = call(folder.path(), &[&sweep[..], &["--set", "workload.messages=20000"]].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let row = |load: &str| {
        let line = called.out.lines().find(|line| line.trim_start().starts_with(load));
        line.unwrap_or_else(|| panic!("{}", called.out)).split_whitespace().collect::<Vec<_>>()
    };
    assert!(row("0.3").contains(&"±"), "{}", called.out);
    assert_eq!(row("0.95")[3..7], ["-"; 4], "{}", called.out);
    assert!(called.out.contains("is not sustained"), "{}", called.out);
}

/// A sample may draw a point twice; it runs once, and was not there before.
#[test]
fn a_point_that_is_drawn_twice_is_not_there_already() {
    let folder = folder(
        "scenario = 'base.toml'\nsamples = 3\nsample_seed = 18446744073709551615\n\
         [vary]\nworkload.message_bytes = {from = 64, to = 66, scale = 'log'}\n",
    );
    let sweep = || call(folder.path(), &["sweep", "w.toml", "--out", "r.parquet"]);
    let first = sweep();
    assert_eq!(first.code, 0, "{}", first.err);
    assert!(!first.err.contains("there already"), "{}", first.err);
    assert_eq!(lines(&folder.path().join("r.parquet.journal")), 2, "a line for each run");
    let again = sweep();
    assert!(again.err.starts_with("3 of 3 points are there already\n"), "{}", again.err);
}

#[test]
fn a_point_is_the_run_that_sim_makes() {
    let folder = folder("scenario = 'base.toml'\n[vary]\nworkload.load = [0.5]\n");
    let (_, json) = swept(folder.path(), "r.parquet", "1");
    let point: Value = serde_json::from_str(&json).unwrap();
    let sim = ["sim", "base.toml", "--set", "workload.load=0.5", "--format", "json"];
    let run: Value = serde_json::from_str(&call(folder.path(), &sim).out).unwrap();
    for metric in ["slowdown_mean", "latency_ns_p99"] {
        let of_point = &point[0]["metrics"][metric];
        assert_eq!(of_point["mean"], run["kinds"]["all"][metric], "{metric}");
        assert_eq!(of_point["ci95_half_width"], Value::Null, "one seed");
    }
}

#[test]
fn more_seeds_run_only_what_is_missing() {
    let folder = folder(SWEEP);
    swept(folder.path(), "r.parquet", "2");
    let more = SWEEP.replace("seeds = 3", "seeds = 4");
    fs::write(folder.path().join("w.toml"), more).unwrap();
    let called = call(folder.path(), &["sweep", "w.toml", "--out", "r.parquet"]);
    assert_eq!(
        (called.code, called.err.lines().next()),
        (0, Some("36 of 48 points are there already"))
    );
    assert_eq!(lines(&folder.path().join("r.parquet.journal")), 48);
}

#[cfg(unix)]
mod ended {
    use std::process::{Command, Stdio};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::support::{called, command};

    /// Kills a sweep when its journal has grown and some time has passed, repeatedly, and compares
    /// the last call's results with those of an uninterrupted sweep.
    #[test]
    fn a_killed_sweep_goes_on_and_ends_in_the_same_bytes() {
        let folder = folder(SWEEP);
        let (whole, json) = swept(folder.path(), "whole.parquet", "2");
        let out = folder.path().join("killed.parquet");
        let journal = folder.path().join("killed.parquet.journal");
        let sweep = ["sweep", "w.toml", "--out", "killed.parquet", "--threads", "2"];
        let mut kept_before = 0;
        for delay_us in [0, 300, 900, 2_000, 5_000] {
            let mut killed = command(folder.path(), &sweep);
            killed.stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = killed.spawn().unwrap();
            let started = Instant::now();
            while lines(&journal) == kept_before && child.try_wait().unwrap().is_none() {
                assert!(started.elapsed() < Duration::from_secs(60), "it does not go on");
                thread::sleep(Duration::from_micros(200));
            }
            thread::sleep(Duration::from_micros(delay_us));
            child.kill().unwrap();
            child.wait().unwrap();
            let kept = lines(&journal);
            assert!(kept >= kept_before, "{kept} of {kept_before} points are kept");
            assert!(!out.exists() || fs::read(&out).unwrap() == whole, "half a file");
            kept_before = kept;
        }
        assert!(kept_before > 0);
        assert!(swept(folder.path(), "killed.parquet", "2") == (whole, json));
        assert_eq!(lines(&journal), POINTS, "each point ran to its end once");
    }

    #[test]
    fn a_full_disk_is_one_line_and_the_sweep_goes_on_after_it() {
        let folder = folder(SWEEP);
        let (whole, json) = swept(folder.path(), "whole.parquet", "1");
        // The limit is in blocks of 512 or 1,024 B: less than the lines of all points.
        let limited = "trap '' XFSZ; ulimit -f 4; exec \"$0\" sweep w.toml --out full.parquet";
        let shell = ["-c", limited, env!("CARGO_BIN_EXE_ethermem")];
        let mut full = Command::new("sh");
        full.current_dir(folder.path()).args(shell);
        let ended = called(&full.output().unwrap());
        let error = "error: cannot write full.parquet.journal: File too large (os error 27)\n";
        assert_eq!(ended.code, 2, "{}", ended.err);
        assert_eq!(ended.err.matches("error: ").count(), 1, "{}", ended.err);
        assert!(ended.err.ends_with(error), "behind the progress: {}", ended.err);
        assert!(!folder.path().join("full.parquet").exists());
        let kept = lines(&folder.path().join("full.parquet.journal"));
        assert!((1..POINTS).contains(&kept), "{kept} points are kept");
        assert!(swept(folder.path(), "full.parquet", "1") == (whole, json));
    }

    /// The journal fits and the results do not: the results of three points are larger than their
    /// lines.
    #[test]
    fn a_disk_that_the_results_fill_is_one_line_and_keeps_the_points() {
        let folder = folder("scenario = 'base.toml'\nseeds = 3\n");
        let (whole, json) = swept(folder.path(), "whole.parquet", "1");
        let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" sweep w.toml --out full.parquet";
        let mut full = Command::new("sh");
        full.current_dir(folder.path()).args(["-c", limited, env!("CARGO_BIN_EXE_ethermem")]);
        let ended = called(&full.output().unwrap());
        let error = "error: cannot write full.parquet: File too large (os error 27)\n";
        assert_eq!((ended.code, ended.out.as_str()), (2, ""), "{}", ended.err);
        assert!(ended.err.ends_with(error), "{}", ended.err);
        let mut left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
        left.retain(|entry| entry.file_name().to_string_lossy().contains("full"));
        assert_eq!(left.len(), 1, "no part of the results: {left:?}");
        assert_eq!(lines(&folder.path().join("full.parquet.journal")), 3);
        let again = ["sweep", "w.toml", "--out", "full.parquet", "--format", "json"];
        let again = call(folder.path(), &again);
        assert_eq!((again.code, again.err.as_str()), (0, "3 of 3 points are there already\n"));
        assert!(
            (fs::read(folder.path().join("full.parquet")).unwrap(), again.out) == (whole, json)
        );
    }

    #[test]
    fn ctrl_c_and_then_the_same_command_end_in_the_same_bytes() {
        let folder = folder(SWEEP);
        let (whole, json) = swept(folder.path(), "whole.parquet", "2");
        let sweep = ["sweep", "w.toml", "--out", "stopped.parquet", "--threads", "2"];
        let mut command = command(folder.path(), &sweep);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let journal = folder.path().join("stopped.parquet.journal");
        let started = Instant::now();
        while lines(&journal) < 3 && child.try_wait().unwrap().is_none() {
            assert!(started.elapsed() < Duration::from_secs(60), "it does not go on");
            thread::sleep(Duration::from_micros(200));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let ended = called(&child.wait_with_output().unwrap());
        let kept = lines(&journal);
        assert!((3..POINTS).contains(&kept), "{kept} points are kept");
        let line = format!("interrupted after {kept} of {POINTS} points; ");
        assert!(ended.code == 130 && ended.err.contains(&line), "{}", ended.err);
        assert!(!folder.path().join("stopped.parquet").exists());
        assert!(swept(folder.path(), "stopped.parquet", "1") == (whole, json));
        assert_eq!(lines(&journal), POINTS, "what was kept did not run again");
    }

    #[test]
    fn ctrl_c_says_what_is_kept_and_how_to_go_on() {
        // The longest run is first, so that no point ends before the signal.
        let axis = "[vary]\nworkload.messages = [2000, 100000000]";
        let folder = folder(&SWEEP.replace("[vary]", axis));
        let sweep = ["sweep", "w.toml", "--out", "r.parquet", "--threads", "2"];
        let mut command = command(folder.path(), &sweep);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let journal = folder.path().join("r.parquet.journal");
        let started = Instant::now();
        while !journal.exists() {
            assert!(started.elapsed() < Duration::from_secs(30), "it does not start");
            thread::sleep(Duration::from_millis(10));
        }
        thread::sleep(Duration::from_millis(200));
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
        let ended = called(&child.wait_with_output().unwrap());
        let line = "interrupted after 0 of 72 points; finished points are kept in \
                    r.parquet.journal: the same command goes on\n";
        assert_eq!((ended.code, ended.err.as_str(), ended.out.as_str()), (130, line, ""));
        assert!(!folder.path().join("r.parquet").exists());
    }
}

#[test]
fn bad_sweeps_are_one_line_and_leave_nothing() {
    for (text, line) in [
        ("scenario = 'base.toml'\nseads = 2\n", "w.toml:2: seads: unknown key: must be "),
        (
            "scenario = 'base.toml'\n[vary]\nfabric.nods = [1]\n",
            "w.toml:3: fabric.nods: unknown key: must be ",
        ),
        (
            "scenario = 'base.toml'\n[vary]\nworkload.load = []\n",
            "w.toml:3: vary.workload.load: an empty axis: must be at least one value\n",
        ),
        ("scenario = 'base.toml'\nfabrics = ['emd']\n", "w.toml:2: fabrics = ['emd']: must be "),
        (
            "scenario = 'base.toml'\nfabrics = ['dctcp', 'edm']\n[vary]\nfabric.topology = \
             ['leaf-spine']\n",
            "w.toml: fabric edm runs on fabric.topology = \"single-switch\" alone",
        ),
        (
            "scenario = 'base.toml'\nseeds = 1000\n[vary]\nworkload.load = {from = 0.1, to = 0.9, \
             steps = 1000}\n",
            "w.toml: 1000000 points: must be 1 to 100000",
        ),
    ] {
        let folder = folder(text);
        let called = call(folder.path(), &["sweep", "w.toml", "--out", "r.parquet"]);
        assert_eq!((called.code, called.out.as_str()), (2, ""), "{text}");
        assert!(called.err.starts_with(&format!("error: {line}")), "{}", called.err);
        assert_eq!(called.err.lines().count(), 1, "{}", called.err);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "{text}");
    }
    let folder = folder(SWEEP);
    for out in ["/dev/null", ".", "gone/r.parquet"] {
        let called = call(folder.path(), &["sweep", "w.toml", "--out", out]);
        assert_eq!((called.code, called.err.lines().count()), (2, 1), "{}", called.err);
    }
}

#[test]
fn the_example_of_the_repository_runs() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("load.parquet");
    let example = ["sweep", "sweeps/load.toml", "--out", out.to_str().unwrap()];
    let called = call(&root(), &[&example[..], &["--set", "workload.messages=2000"]].concat());
    assert_eq!(called.code, 0, "{}", called.err);
    let is_said = |line: &&str| line.contains("not settled");
    let said = called.out.lines().filter(is_said).count();
    assert!(said > 0, "2,000 messages settle nowhere: {}", called.out);
    let table = called.out.lines().filter(|line| !line.trim().is_empty() && !is_said(line));
    assert_eq!(table.count(), 13, "{}", called.out);
}
