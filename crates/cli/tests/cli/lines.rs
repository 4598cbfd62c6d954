//! Cache lines of unmodified programs: `profile --lines` and `replay-lines`.

use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use ethermem_lines::{LINE_BYTES, TrafficKind};
use ethermem_trace::{Ended, LineTrace};
use serde_json::Value;
use tempfile::TempDir;

use crate::remote::report;
use crate::support::{call, called, command};

/// A folder for the test, if programs can be traced here; else the reason is printed.
fn traced() -> Option<TempDir> {
    let folder = tempfile::tempdir().unwrap();
    let tried = call(folder.path(), &["profile", "--lines", "--", "true"]);
    if tried.err.contains("no valgrind") {
        // The line bypasses the test runner's capture.
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: valgrind is not installed: {}", tried.err.trim());
        return None;
    }
    assert_eq!((tried.code, tried.err.as_str(), tried.out.as_str()), (0, "", ""));
    Some(folder)
}

/// A program that stores to each line of 4 MiB, then loads each twice, and exits with 7.
const ROWS: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#define LINES 65536
static volatile char data[LINES * 64] __attribute__((aligned(64)));
int main(void) {
    int sum = 0;
    for (int line = 0; line < LINES; line++) data[line * 64] = 1;
    for (int turn = 0; turn < 2; turn++)
        for (int line = 0; line < LINES; line++) sum += data[line * 64];
    fprintf(stderr, "told\n");
    printf("%d\n", sum);
    return 7;
}
"#;
const LINES: u64 = 65_536;

fn compiled(folder: &Path) {
    std::fs::write(folder.join("rows.c"), ROWS).unwrap();
    let mut compiler = Command::new("cc");
    let made = compiler.current_dir(folder).args(["-O1", "-o", "rows", "rows.c"]).status();
    assert!(made.expect("a C compiler is there").success());
}

#[test]
fn a_programs_misses_are_those_of_its_arrays() {
    let Some(folder) = traced() else { return };
    let folder = folder.path();
    compiled(folder);
    let words = ["profile", "--lines", "--out", "t.parquet", "--report", "report.json", "--"];
    let ran = call(folder, &[&words[..], &["./rows"]].concat());
    // The end and the output are the program's.
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (7, "131072\n", "told\n"));
    let report = report(folder);
    let count = |key: &str| report[key].as_u64().unwrap();
    // The array is larger than all caches: every pass misses in each line. The loader and the C
    // library miss, too: fewer than 10,000 lines.
    let around = |found: u64, lines: u64| (lines..lines + 10_000).contains(&found);
    assert!(around(count("store_misses"), LINES), "{report}");
    assert!(around(count("load_misses"), 2 * LINES), "{report}");
    // The loads that follow push every dirty line out.
    assert!(around(count("write_backs"), LINES), "{report}");
    assert!(around(count("touched_line_bytes") / LINE_BYTES, LINES), "{report}");
    assert_eq!(report["caches"], serde_json::json!(["32KiB/8", "1024KiB/16", "1408KiB/11"]));
    assert_eq!((count("unrecorded_accesses"), count("other_lines")), (0, 0));
    let hits: u64 =
        report["hits"].as_array().unwrap().iter().map(|hit| hit.as_u64().unwrap()).sum();
    let all = count("loads") + count("stores");
    assert_eq!(hits + count("load_misses") + count("store_misses"), all);

    let trace = LineTrace::open(&folder.join("t.parquet")).unwrap();
    let summary = trace.summary().clone();
    assert_eq!((summary.ended, summary.command.as_str()), (Ended::Exit(7), "./rows"));
    assert_eq!(summary.instructions, count("instructions"));
    let accesses: Vec<_> = trace.map(Result::unwrap).collect();
    let of = |kind| accesses.iter().filter(|access| access.kind == kind).count() as u64;
    assert_eq!(of(TrafficKind::Load), count("load_misses"));
    assert_eq!(of(TrafficKind::Store), count("store_misses"));
    assert_eq!(of(TrafficKind::WriteBack), count("write_backs"));
    assert_eq!(accesses.len() as u64, count("recorded_accesses"));
    // Larger caches hold the array, and it misses once.
    let large = ["profile", "--lines", "--llc", "16MiB/16", "--report", "report.json", "--"];
    assert_eq!(call(folder, &[&large[..], &["./rows"]].concat()).code, 7);
    let report = crate::remote::report(folder);
    assert!(around(report["store_misses"].as_u64().unwrap(), LINES), "{report}");
    assert!(report["load_misses"].as_u64().unwrap() < 10_000, "{report}");
}

#[test]
fn a_part_of_a_run_is_recorded_and_the_rest_counted() {
    let Some(folder) = traced() else { return };
    let folder = folder.path();
    let words = ["profile", "--lines", "--report", "report.json", "--out", "t.parquet"];
    let part = |more: &[&str]| {
        let ran = call(folder, &[&words[..], more, &["--", "ls", "/"]].concat());
        assert_eq!((ran.code, ran.err.as_str()), (0, ""));
        assert!(ran.out.contains("usr"));
        let report = report(folder);
        let count = |key: &str| report[key].as_u64().unwrap();
        (count("recorded_accesses"), count("unrecorded_accesses"), count("instructions"))
    };
    let (all, none, instructions) = part(&[]);
    assert!(all > 100 && none == 0 && instructions > 10_000);
    let (few, rest, _) = part(&["--records", "10"]);
    assert_eq!(few, 10);
    assert!(rest > 90, "{rest}");
    let trace = LineTrace::open(&folder.join("t.parquet")).unwrap();
    assert_eq!((trace.accesses_total(), trace.summary().unrecorded_accesses), (10, rest));
    let skipped = (instructions / 2).to_string();
    let (late, early, _) = part(&["--skip-instructions", &skipped]);
    assert!(late > 0 && early > 0, "{late} {early}");
    let first = LineTrace::open(&folder.join("t.parquet")).unwrap().next().unwrap().unwrap();
    assert!(first.instructions > instructions / 2);
}

#[test]
fn a_program_ends_as_it_does_by_itself() {
    let Some(folder) = traced() else { return };
    let folder = folder.path();
    let killed = ["profile", "--lines", "--", "sh", "-c", "kill -TERM $$"];
    let status = command(folder, &killed).status().unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(15));
    let missing = call(folder, &["profile", "--lines", "--", "./no-such-program"]);
    assert_eq!(missing.code, 2);
    assert!(missing.err.contains("no-such-program"), "{}", missing.err);
    assert_eq!(missing.err.lines().count(), 1, "{}", missing.err);
    // A child that lives on has the trace's pipe, and is not waited for.
    let began = Instant::now();
    let words = ["profile", "--lines", "--", "sh", "-c", "sleep 60 >/dev/null 2>&1 & echo done"];
    let ran = call(folder, &words);
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (0, "done\n", ""));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    // A signal that another process sends reaches the program.
    let script = "trap 'echo caught; exit 9' USR1; kill -USR1 $PPID; while :; do :; done";
    let ran = call(folder, &["profile", "--lines", "--", "sh", "-c", script]);
    assert_eq!((ran.code, ran.out.as_str()), (9, "caught\n"));
}

#[test]
fn without_valgrind_one_line_names_the_package() {
    let folder = tempfile::tempdir().unwrap();
    let mut run = command(folder.path(), &["profile", "--lines", "--", "/bin/true"]);
    let ran = called(&run.env("PATH", folder.path()).output().unwrap());
    let line = "error: no valgrind in PATH: install the package valgrind (Debian: apt install \
                valgrind)\n";
    assert_eq!((ran.code, ran.err.as_str()), (2, line));
    assert!(!folder.path().join("profile.parquet").exists());
}

#[test]
fn wrong_options_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (words, what) in [
        (&["profile", "--lines", "--local", "25%", "--", "true"][..], "--local"),
        (&["profile", "--lines", "--no-prefetch", "--", "true"], "--no-prefetch"),
        (&["profile", "--records", "5", "--", "true"], "--lines"),
        (&["profile", "--lines", "--records", "0", "--", "true"], "must be 1 to 1000000000"),
        (&["profile", "--lines", "--l1", "32KiB", "--", "true"], "must be SIZE/WAYS"),
        (&["profile", "--lines", "--llc", "1000/8", "--", "true"], "must be a multiple of 512"),
        (&["replay-lines", "none.parquet"], "none.parquet: cannot be read"),
        (&["replay-lines", "none.parquet", "--cache", "100KiB"], "must be 0, or a power of two"),
        (&["replay-lines", "none.parquet", "--fabric", "none"], "none"),
        (&["replay-lines", "none.parquet", "--set", "fabric.no=1"], "fabric.no"),
        (
            &["replay-lines", "none.parquet", "--set", "fabric.link_gbps=10"],
            "fabric.link_gbps=10: another argument sets it: must be another key",
        ),
    ] {
        let ran = call(folder.path(), words);
        assert_eq!(ran.code, 2, "{words:?}: {}", ran.err);
        assert!(ran.err.contains(what), "{words:?}: {}", ran.err);
        assert_eq!(ran.err.lines().count(), 1, "{words:?}: {}", ran.err);
    }
}

#[test]
fn a_traced_program_is_replayed_on_every_fabric_with_equal_bytes_each_time() {
    let Some(folder) = traced() else { return };
    let folder = folder.path();
    let caches = ["--l1", "4KiB/4", "--l2", "8KiB/4", "--llc", "16KiB/4"];
    let words = ["profile", "--lines", "--out", "t.parquet"];
    let program = ["--", "ls", "/"];
    assert_eq!(call(folder, &[&words[..], &caches, &program].concat()).code, 0);
    let replay = ["replay-lines", "t.parquet", "--records", "3000", "--format"];
    let json = call(folder, &[&replay[..], &["json"]].concat());
    assert_eq!(json.code, 0, "{}", json.err);
    let again = call(folder, &[&replay[..], &["json", "--threads", "1"]].concat());
    assert_eq!(json.out, again.out);
    let rows: Value = serde_json::from_str(&json.out).unwrap();
    let rows = rows.as_array().unwrap();
    // Three fabrics; no cache, and three caches with four prefetchers each.
    assert_eq!(rows.len(), 3 * (1 + 3 * 4));
    for fabric in ["cxl-ethernet", "cxl", "edm"] {
        let of: Vec<&Value> = rows.iter().filter(|row| row["fabric"] == fabric).collect();
        let rate = |cache: u64| {
            let is_it = |row: &&&Value| row["cache_bytes"] == cache && row["prefetch"] == "none";
            of.iter().find(is_it).unwrap()["load_hit_rate"].as_f64().unwrap()
        };
        assert_eq!(rate(0), 0.0);
        assert!(0.0 < rate(32 << 10) && rate(32 << 10) <= rate(1 << 20), "{fabric}");
        assert!(of.iter().all(|row| row["slowdown"].as_f64().unwrap() > 0.0), "{fabric}");
    }
    let csv = call(folder, &[&replay[..], &["csv"]].concat());
    assert_eq!(csv.out.lines().count(), 1 + rows.len());
    let width = csv.out.lines().next().unwrap().split(',').count();
    assert!(csv.out.lines().all(|line| line.split(',').count() == width));
}
