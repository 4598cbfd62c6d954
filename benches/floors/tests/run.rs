//! The program as its users call it.

use std::io::Write;
use std::process::{Command, Output};

use serde_json::Value;

fn floors(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ethermem-floors"));
    command.args(arguments).output().expect("the program starts")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// Bytes really go each way, in the C programs as well: a round that lost count would fail.
#[test]
fn floors_are_measured_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("floors.json");
    let json = path.to_str().unwrap();
    let chosen =
        ["--only", "F: udp", "--only", "over ring, read 64 B", "--only", "node", "--rounds", "2"];
    let rest = ["--samples", "400", "--json", json];
    let output = floors(&[&["run"], &chosen[..], &rest].concat());
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let report: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let lines = report["lines"].as_array().unwrap();
    assert_eq!(lines.len(), 17);
    for line in lines {
        let name = line["name"].as_str().unwrap();
        if let Some(reason) = line["skipped"].as_str() {
            // Past the capture of the test runner.
            let _ = writeln!(std::io::stderr(), "SKIPPED: {name}: {reason}");
            assert!(errors.contains(&format!("SKIPPED: {name}")), "{errors}");
            continue;
        }
        assert_eq!(line["rounds"].as_array().unwrap().len(), 2, "{name}");
        let of = |key: &str| line[key]["median"].as_f64();
        // A system call takes longer than a hundredth of a microsecond, and a round not a minute.
        assert!(of("operations_per_s").is_some_and(|rate| rate > 0.0 && rate < 1e8), "{line}");
        let windowed = name.contains("window");
        assert_eq!(windowed, line["p50_us"].is_null(), "{line}");
        assert!(windowed || of("p50_us") <= of("p99_us"), "{line}");
        assert_eq!(of("over_floor").is_some(), !name.starts_with("F:"), "{line}");
    }
    assert!(text(&output.stdout).contains("| F: udp, 64 -> 64 B"));
}

#[test]
fn bad_input_is_refused_with_2() {
    for (arguments, says) in [
        (&["run", "--only", "nothing"][..], "--only"),
        (&["run", "--rounds", "0"], "--rounds"),
        (&["run", "--client-cpu", "1", "--server-cpu", "1"], "--server-cpu"),
    ] {
        let output = floors(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(says), "{arguments:?}: {}", text(&output.stderr));
    }
}
