//! Unmodified programs on remote memory: `run`, `profile`, `emulate`.

use std::io::Write as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ethermem_trace::{AccessKind, Completion, CompletionTimes, CompletionWriter, FlowKind, Trace};
use ethermem_units::{Bytes, Ps};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

use crate::node::Running;
use crate::support::{Called, call, called, command};

/// A program that fills 24 MiB, sorts out the differences, prints a digest, and exits with 5.
const PROGRAM: &str = "
import hashlib, random, sys
random.seed(7)
data = bytearray(random.randbytes(24 << 20))
for at in random.choices(range(len(data)), k=20000):
    data[at] ^= 0x5a
print(hashlib.sha256(data).hexdigest())
print('told', file=sys.stderr)
sys.exit(int(sys.argv[1]))
";

/// Runs `arguments` with the program, which exits with `code`.
fn with_program(folder: &Path, arguments: &[&str], code: &str) -> Called {
    call(folder, &[arguments, &["--", "python3", "-c", PROGRAM, code]].concat())
}

/// True if programs can be paged here; prints the reason if not.
pub(crate) fn can_page(folder: &Path) -> bool {
    let tried = call(folder, &["run", "--local", "100%", "--", "true"]);
    if tried.err.contains("userfaultfd") {
        // The line bypasses the test runner's capture.
        let _ = writeln!(std::io::stderr(), "SKIPPED: {}", tried.err.trim());
        return false;
    }
    true
}

/// A folder for the test, if programs can be paged.
fn paged() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    can_page(folder.path()).then_some(folder)
}

pub(crate) fn report(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("report.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn output_and_end_are_the_programs_wherever_its_memory_is() {
    let Some(folder) = paged() else { return };
    let all = with_program(folder.path(), &["run", "--local", "100%"], "5");
    assert_eq!((all.code, all.err.as_str(), all.out.len()), (5, "told\n", 65));
    let listen = ["--listen", "127.0.0.1:0", "--insecure", "--memory", "64MiB", "--page", "64KiB"];
    let node = Running::start_with(&listen);
    let remote = format!("udp://{}", node.address());
    for pool in [None, Some("local:"), Some(&remote)] {
        let mut arguments = vec!["run", "--local", "6MiB", "--report", "report.json"];
        arguments.extend(pool.iter().flat_map(|url| ["--pool", *url]));
        let less = with_program(folder.path(), &arguments, "5");
        assert_eq!((less.code, &less.err, &less.out), (5, &all.err, &all.out), "{pool:?}");
        let pages = &report(folder.path())["pages"];
        assert!(pages["read_pages"].as_u64() > Some(1000), "{pool:?}: {pages}");
        assert!(pages["written_pages"].as_u64() > Some(1000), "{pool:?}: {pages}");
    }
}

/// The program no longer needs any memory of the node.
#[test]
fn a_program_that_ends_when_its_node_is_dead_ends_as_it_ends() {
    let Some(folder) = paged() else { return };
    let listen = ["--listen", "127.0.0.1:0", "--insecure", "--memory", "64MiB"];
    let mut node = Running::start_with(&listen);
    let script = "head -c 20000000 /dev/zero | tail -c 20000000 | wc -c; : > filled
        until [ -e go ]; do :; done; echo all of it; exit 4";
    let pool = format!("udp://{}", node.address());
    let arguments = ["run", "--pool", &pool, "--local", "1MiB", "--", "sh", "-c", script];
    let mut started = command(folder.path(), &arguments);
    started.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut started = started.spawn().unwrap();
    while !folder.path().join("filled").exists() {
        assert_eq!(started.try_wait().unwrap(), None, "the program waits");
        std::thread::sleep(Duration::from_millis(1));
    }
    node.kill();
    std::fs::write(folder.path().join("go"), "").unwrap();
    let ended = called(&started.wait_with_output().unwrap());
    let said = (ended.code, ended.out.as_str(), ended.err.as_str());
    assert_eq!(said, (4, "20000000\nall of it\n", ""));
}

/// The shell ends by the signal, and leaves a process that would run for a minute.
#[test]
fn a_signal_that_ends_the_program_reaches_what_it_left() {
    let Some(folder) = paged() else { return };
    let script = "sleep 60 & : > started; wait";
    let mut started = command(folder.path(), &["run", "--", "sh", "-c", script]).spawn().unwrap();
    while !folder.path().join("started").exists() {
        assert_eq!(started.try_wait().unwrap(), None, "the program runs");
        std::thread::sleep(Duration::from_millis(1));
    }
    let began = Instant::now();
    kill(Pid::from_raw(started.id().cast_signed()), Signal::SIGTERM).unwrap();
    let ended = started.wait().unwrap();
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
    assert_eq!(ended.code().or(ended.signal().map(|signal| 128 + signal)), Some(128 + 15));
}

/// A shell handles the signal, goes on, and leaves a process on purpose.
#[test]
fn a_signal_that_the_program_handled_does_not_reach_what_it_leaves_later() {
    let Some(folder) = paged() else { return };
    let script = "trap ': > handled' TERM; : > started; \
                  while [ ! -e handled ]; do sleep 0.01; done; (sleep 0.3; : > left) & exit 7";
    let mut started = command(folder.path(), &["run", "--", "sh", "-c", script]).spawn().unwrap();
    while !folder.path().join("started").exists() {
        assert_eq!(started.try_wait().unwrap(), None, "the program runs");
        std::thread::sleep(Duration::from_millis(1));
    }
    kill(Pid::from_raw(started.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(started.wait().unwrap().code(), Some(7));
    assert!(folder.path().join("left").exists(), "what it left came to its end");
}

#[test]
fn a_profile_is_a_trace_of_what_was_remote() {
    let Some(folder) = paged() else { return };
    let arguments = ["profile", "--local", "6MiB", "--out", "t.parquet", "--report", "report.json"];
    assert_eq!(with_program(folder.path(), &arguments, "0").code, 0);
    let report = report(folder.path());
    let trace = Trace::open(&folder.path().join("t.parquet")).unwrap();
    let summary = trace.summary().clone();
    assert!(summary.command.starts_with("python3 -c "), "{}", summary.command);
    assert_eq!(report["peak_bytes"], summary.peak.0);
    let (mut read, mut along, mut along_rows, mut written) = (0, 0, 0, 0);
    for access in trace {
        let access = access.unwrap();
        match access.kind {
            AccessKind::Read if access.prefetched => {
                along += access.bytes.0 / 4096;
                along_rows += 1;
            }
            AccessKind::Read => read += access.bytes.0 / 4096,
            AccessKind::WriteBack => written += access.bytes.0 / 4096,
        }
    }
    let count = |name: &str| report["counts"][name].as_u64().unwrap();
    assert_eq!((read, along), (count("read_pages"), count("prefetched_pages")));
    assert!(along > 0, "a program that goes through its memory is read ahead of");
    assert_eq!(summary.prefetched_accesses, Some(along_rows));
    assert_eq!(written, count("written_pages"));
    let set = report["working_set"].as_array().unwrap();
    assert!(set.iter().any(|interval| interval["pages"].as_u64() > Some(0)));
}

#[test]
fn every_network_that_was_asked_for_is_emulated() {
    let Some(folder) = paged() else { return };
    let arguments = [
        "emulate",
        "--local",
        "50%,100%",
        "--latency-us",
        "1,20",
        "--bandwidth-gbps",
        "32.768",
        "--repeats",
        "2",
        "--no-prefetch",
        "--report",
        "report.json",
    ];
    let called = with_program(folder.path(), &arguments, "0");
    assert_eq!(called.code, 0, "{}", called.err);
    let report = report(folder.path());
    let done = report["emulations"].as_array().unwrap();
    assert_eq!(done.len(), 4);
    for (emulation, wanted) in done.iter().zip([2000.0, 21_000.0]) {
        let accuracy = &emulation["accuracy"];
        assert!(accuracy["accesses"].as_u64() > Some(100), "{accuracy}");
        // A page takes 1 us at that rate, and more behind other pages.
        assert!(accuracy["wanted_mean_ns"].as_f64() >= Some(wanted), "{accuracy}");
        // Its one thread waits for every delayed page, and for one at a time.
        let number = |place: &str| emulation.pointer(place).and_then(Value::as_f64).unwrap();
        let delays = number("/accuracy/accesses") * number("/accuracy/wanted_mean_ns") / 1e9;
        let stopped = number("/counted/stopped_seconds/mean") * number("/repeats");
        assert!((0.99..1.01).contains(&(stopped / delays)), "{stopped} of {delays}");
        assert_eq!(number("/counted/waited_seconds/mean") * number("/repeats"), stopped);
        let quiet = number("/counted/quiet_seconds/mean");
        assert!(quiet > 0.0 && quiet <= number("/undelayed_seconds/mean"), "{emulation}");
        assert!(number("/counted/slowdown/mean") > 1.0, "{emulation}");
    }
    assert_eq!(done[3]["counted"]["slowdown"]["high"], 1.0, "and no thread waits");
    assert_eq!(done[3]["accuracy"]["accesses"], 0, "with all memory local nothing is delayed");
    assert_eq!(report["cheapest"].as_array().unwrap().len(), 2);
    let failed = with_program(folder.path(), &["emulate", "--latency-us", "5"], "9");
    assert_eq!(failed.code, 9);
}

/// A signal ends a run as this failure does. If the program ran once more, the command would not
/// end within a second.
#[test]
fn a_failed_run_is_the_last_one() {
    let Some(folder) = paged() else { return };
    let folder = folder.path();
    // The first run measures the peak; the second one, without delays, fails.
    let counting = "echo run >> runs; test $(wc -l < runs) -ne 2";
    let arguments = ["emulate", "--latency-us", "5", "--local", "100%", "--"];
    let failed = call(folder, &[&arguments[..], &["sh", "-c", counting]].concat());
    assert_eq!(failed.code, 1, "{}", failed.err);
    let runs = std::fs::read_to_string(folder.join("runs")).expect("the program wrote it");
    assert_eq!(runs.lines().count(), 2);
}

#[test]
fn a_program_that_is_measured_from_outside_runs_once() {
    let Some(folder) = paged() else { return };
    let arguments = ["emulate", "--once", "--local", "8MiB", "--latency-us", "20"];
    let arguments = [&arguments[..], &["--report", "report.json"]].concat();
    let called = with_program(folder.path(), &arguments, "5");
    assert_eq!(called.code, 5, "{}", called.err);
    assert_eq!(called.out.lines().count(), 1, "it ran once: {}", called.out);
    assert_eq!(called.err, "told\n");
    let report = report(folder.path());
    assert_eq!(report["accuracy"]["wanted_mean_ns"], 20_000.0);
    let pages = report["counts"]["read_pages"].as_u64().unwrap();
    assert!(pages > 100, "{report}");
    // Its one thread waits 20 us for each of these pages, and for others that are on their way.
    let counted = |name: &str| report["counted"][name].as_f64().unwrap();
    let (stopped, waited) = (counted("stopped_seconds"), counted("waited_seconds"));
    let (quiet, seconds) = (counted("quiet_seconds"), report["seconds"].as_f64().unwrap());
    assert!(stopped > pages as f64 * 19.9e-6 && stopped <= seconds, "{report}");
    assert!((waited - stopped).abs() < 1e-9, "{report}");
    assert!(quiet > 0.0 && quiet <= seconds, "{report}");
    assert!(report["counted"]["parallel"].is_boolean(), "{report}");
}

#[test]
fn a_run_with_delays_shares_a_processor_with_its_pager_only_where_it_is_asked_for() {
    let Some(folder) = paged() else { return };
    let together_ns = |more: &[&str]| {
        let arguments = ["emulate", "--once", "--local", "8MiB", "--latency-us", "1", "--report"];
        let arguments = [&arguments[..], &["report.json"], more].concat();
        let called = with_program(folder.path(), &arguments, "0");
        assert_eq!(called.code, 0, "{}", called.err);
        let report = report(folder.path());
        assert_eq!(report["accuracy"]["wanted_mean_ns"], 1_000.0);
        report["counts"]["together_ns"].as_u64().unwrap()
    };
    assert_eq!(together_ns(&[]), 0);
    assert_eq!(together_ns(&["--placement", "free"]), 0);
    assert!(together_ns(&["--placement", "together"]) > 0);
}

/// Completion times of a fabric: of awaited pages, and of prefetched runs.
fn completion_times(path: &Path, times: &[(u64, bool, u64)]) {
    let mut writer = CompletionWriter::create(path).unwrap();
    writer.fabric("edm").unwrap();
    for (pages, prefetched, us) in times {
        let completion = Ps(us * 1_000_000);
        let (time, alone, bytes) = (Ps(0), completion, Bytes(pages * 4096));
        let (kind, prefetched) = (FlowKind::Read, *prefetched);
        let access = Completion {
            time,
            cluster: 0,
            compute: 0,
            memory: 1,
            kind,
            bytes,
            completion,
            alone,
            prefetched,
        };
        writer.push(access).unwrap();
    }
    writer.finish(&[]).unwrap();
}

#[test]
fn pages_that_are_brought_along_take_a_fabrics_time_too() {
    let Some(folder) = paged() else { return };
    let path = folder.path().join("times.parquet");
    let wanted_mean_ns = |times: &[(u64, bool, u64)]| {
        completion_times(&path, times);
        let arguments = ["emulate", "--once", "--local", "8MiB", "--report", "report.json"];
        let arguments = [&arguments[..], &["--latency-from", "times.parquet"]].concat();
        let called = with_program(folder.path(), &arguments, "0");
        assert_eq!((called.code, called.err.as_str()), (0, "told\n"), "{}", called.out);
        let report = report(folder.path());
        assert!(report["counts"]["prefetched_pages"].as_u64() > Some(1000), "{report}");
        report["accuracy"]["wanted_mean_ns"].as_f64().unwrap()
    };
    // The program passes over all its memory: each step waits for a page and for its run.
    assert_eq!(wanted_mean_ns(&[(1, false, 5), (31, true, 5)]), 5000.0, "all come together");
    let behind = wanted_mean_ns(&[(1, false, 5), (31, true, 2000)]);
    assert!(behind > 20_000.0, "{behind}");
    // Without times for runs, one of a hundred pages is slow, and so is every third run.
    let mut times = vec![(1, false, 5); 99];
    times.push((1, false, 2000));
    let alone = wanted_mean_ns(&times);
    assert!((20_000.0..behind).contains(&alone), "{alone}, {behind}");
}

#[test]
fn a_grid_has_a_page_of_the_studys_figures() {
    let Some(folder) = paged() else { return };
    let arguments = [
        "emulate",
        "--grid",
        "--local",
        "50%",
        "--latency-us",
        "1,20",
        "--bandwidth-gbps",
        "40",
        "--repeats",
        "1",
        "--out",
        "grid",
    ];
    let called = with_program(folder.path(), &arguments, "0");
    assert_eq!(called.code, 0, "{}", called.err);
    let page = std::fs::read_to_string(folder.path().join("grid/index.html")).unwrap();
    for id in ["cheapest", "networks", "by-rate", "by-latency", "by-share", "swap", "all-points"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    let text = std::fs::read_to_string(folder.path().join("grid/results.json")).unwrap();
    let results: Value = serde_json::from_str(&text).unwrap();
    let points = crate::support::numbers_of(&page, "all-points");
    for emulation in results["emulations"].as_array().unwrap() {
        for slowdown in [&emulation["slowdown"], &emulation["counted"]["slowdown"]] {
            let mean = slowdown["mean"].as_f64().unwrap();
            assert!(points.contains(&format!(">{mean:.3}</td>")), "{mean}");
        }
    }
    let cheapest = &results["cheapest"][0];
    assert_eq!(cheapest["network"], Value::Null, "one repeat decides nothing");
    assert_eq!(cheapest["undecided"].as_array().map(Vec::len), Some(2), "{cheapest}");
}

#[test]
fn a_study_closes_the_loop_and_the_same_command_runs_nothing_again() {
    let Some(folder) = paged() else { return };
    let arguments = [
        "study",
        "--local",
        "100%,30%",
        "--fabrics",
        "edm,tcp",
        "--gbps",
        "100",
        "--repeats",
        "1",
        "--messages",
        "2000",
        "--out",
        "loop",
    ];
    let called = with_program(folder.path(), &arguments, "0");
    assert_eq!(called.code, 0, "{}", called.err);
    // The program runs for its peak, for one share, and in pairs for two fabrics and for local
    // memory.
    assert_eq!(called.err, "told\n".repeat(1 + 1 + 2 * 3), "nothing but the program's");
    let results = study(folder.path(), "loop");
    let points = results["points"].as_array().unwrap();
    assert_eq!(points.len(), 2, "none of all memory local");
    for point in points {
        let (network, emulation) = (&point["network"], &point["emulation"]);
        let p50 = network["read_ns"]["p50"].as_f64().unwrap();
        assert!(p50 > 500.0 && network["busiest_load"].as_f64() > Some(0.0), "{network}");
        let path = folder.path().join("loop").join(point["completions"].as_str().unwrap());
        let times: Vec<f64> = CompletionTimes::open(&path, None)
            .unwrap()
            .map(Result::unwrap)
            .filter(|done| done.kind == FlowKind::Read)
            .map(|done| done.completion.as_ns_f64())
            .collect();
        let mean = times.iter().sum::<f64>() / times.len() as f64;
        let accuracy = &emulation["accuracy"];
        let wanted = accuracy["wanted_mean_ns"].as_f64().unwrap();
        assert!(accuracy["accesses"].as_u64() > Some(500), "{accuracy}");
        // The delays are draws from those times. With 500 draws or more the mean is this close
        // except in very rare cases, for heavy-tailed times.
        assert!((0.5..2.0).contains(&(wanted / mean)), "{wanted} of {mean}");
    }
    let trace = Trace::open(&folder.path().join("loop/trace-30.parquet")).unwrap();
    assert!(trace.count() > 100);
    assert_eq!(results["all_local"]["accuracy"]["accesses"], 0);
    let page = std::fs::read_to_string(folder.path().join("loop/index.html")).unwrap();
    for id in ["at-a-glance", "by-share", "read-p99", "load", "asked", "all-points"] {
        assert!(page.contains(&format!("<section id=\"{id}\"")), "{id}");
    }
    let again = with_program(folder.path(), &arguments, "0");
    assert_eq!((again.code, again.out.as_str(), again.err.as_str()), (0, "", ""), "all is kept");
    assert_eq!(study(folder.path(), "loop"), results);
    let other = with_program(folder.path(), &arguments, "1");
    assert_eq!(other.code, 2);
    assert!(other.err.contains("loop holds a study of another program"), "{}", other.err);
}

#[test]
fn a_study_names_what_cannot_run_and_ends_as_the_program_ends() {
    let Some(folder) = paged() else { return };
    let arguments = [
        "study",
        "--local",
        "30%",
        "--fabrics",
        "edm",
        "--gbps",
        "10",
        "--messages",
        "1000",
        "--speed",
        "100000",
        "--out",
        "over",
    ];
    let called = with_program(folder.path(), &arguments, "0");
    assert_eq!(called.code, 0, "{}", called.err);
    let point = &study(folder.path(), "over")["points"][0];
    assert_eq!(point["emulation"], Value::Null);
    let reason = point["reason"].as_str().unwrap();
    assert!(reason.starts_with("a link is asked for "), "{reason}");
    let page = std::fs::read_to_string(folder.path().join("over/index.html")).unwrap();
    assert!(page.contains("Not run: edm at 10 Gb/s, 30 % local: a link is asked for "));
    let failed = with_program(folder.path(), &["study", "--out", "failed"], "9");
    assert_eq!(failed.code, 9);
    assert!(!folder.path().join("failed/results.json").exists());
}

fn study(folder: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(name).join("results.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// A failed report must not hide a program's failure.
#[test]
fn a_program_that_fails_is_seen_to_when_the_report_fails_too() {
    let Some(folder) = paged() else { return };
    let profile = ["profile", "--local", "9MiB", "--out", "/dev/full", "--"];
    for arguments in [
        &["run", "--report", "/dev/full", "--"][..],
        &["emulate", "--once", "--latency-us", "1", "--report", "/dev/full", "--"],
        &profile,
    ] {
        for (script, code) in [("echo out; exit 7", 7), ("echo out", 2)] {
            let ended = call(folder.path(), &[arguments, &["sh", "-c", script]].concat());
            assert_eq!((ended.code, &ended.out[..]), (code, "out\n"), "{arguments:?}: {script}");
            assert!(ended.err.contains("cannot write /dev/full"), "{}", ended.err);
        }
    }
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (&["run", "--local", "0%", "--", "true"][..], "a size such as 64MiB"),
        (&["run", "--local", "4KiB", "--", "true"], "at least 1MiB"),
        (&["run", "--pool", "sim:edm", "--", "true"], "a program runs in real time"),
        (&["run", "--", "no-such-program"], "no such program in PATH"),
        (&["run", "--", "/"], "/: neither a 64-bit program"),
        (&["run", "--", "./none"], "./none: No such file"),
        (&["run", "--pool", "udp://127.0.0.1:9", "--", "true"], "127.0.0.1:9: no answer"),
        (&["run", "--pool", "udp://", "--", "true"], "must be udp://HOST:PORT"),
        (&["run", "--report", "none/r.json", "--", "true"], "there is no folder none"),
        (&["run", "--report", ".", "--", "true"], "cannot write .: is a directory"),
        (&["profile", "--peak", "0", "--", "true"], "at least 1MiB"),
        (&["profile", "--peak", "x", "--", "true"], "for '--peak"),
        (&["profile", "--out", ".", "--local", "9MiB", "--", "true"], "is a directory"),
        (&["emulate", "--latency-us", "1", "--fabric", "edm", "--", "true"], "'--fabric"),
        (&["emulate", "--latency-us", "nan", "--", "true"], "must be 0 to"),
        (&["emulate", "--latency-us", "1", "--bandwidth-gbps", "0", "--", "true"], "0.001 to"),
        (&["study"], "<PROGRAM>"),
        (&["study", "--", "no-such-program"], "no such program in PATH"),
        (&["study", "--fabrics", "edm,none", "--", "true"], "must be one of edm, raw-ethernet"),
        (&["study", "--local", "0%", "--", "true"], "a share of 1% to 100%"),
        (&["study", "--local", "64MiB", "--", "true"], "a share of 1% to 100%"),
        (&["study", "--gbps", "50", "--", "true"], "must be one of 10, 25"),
        (&["study", "--out", "/proc/none", "--", "true"], "cannot write /proc/none"),
        (&["study", "--scope", "rack", "--cluster", "18", "--", "true"], "a cluster of 18 blades"),
        (&["study", "--set", "fabric.none=1", "--", "true"], "fabric.none"),
        (&["emulate", "--latency-us", "1", "--out", "/proc/none", "--", "true"], "/proc/none"),
        (&["emulate", "--once", "--latency-us", "1,2", "--", "true"], "must be one network"),
        (&["emulate", "--", "true"], "no network is named"),
        (&["emulate", "--latency-us=-1", "--", "true"], "must be 0 to"),
        (&["emulate", "--latency-from", "none.parquet", "--", "true"], "none.parquet"),
        (
            &["profile", "--out", "none/t.parquet", "--local", "9MiB", "--", "true"],
            "none/t.parquet",
        ),
        (&["rack", "nics", "--config", "none.toml"], "none.toml: cannot be read: No such file"),
        // The program must not run at all, not even for its peak.
        (&["profile", "--out", "none/t.parquet", "--", "touch", "ran"], "none/t.parquet"),
    ] {
        let refused = call(folder.path(), arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.err);
        assert!(refused.err.contains(expected), "{arguments:?}: {}", refused.err);
        assert!(refused.err.lines().count() == 1 && refused.out.is_empty(), "{}", refused.err);
    }
    assert!(!folder.path().join("ran").exists());
}
