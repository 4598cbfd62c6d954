//! Unmodified programs in a rack: their sockets behave as the kernel's, and the accounts close.

use std::ffi::OsString;
use std::net::Ipv4Addr;
use std::path::Path;

use ethermem_rack::{Config, Node, Report};

const PYTHON: &str = "python3";

fn rack(name: &str, ring_bytes: u64) -> Config {
    let node = Node { name: "a".into(), address: Ipv4Addr::LOCALHOST, nics: vec!["lo".into()] };
    // Every test has accounts of its own, also where tests run at once.
    let name = format!("test-{name}-{}", std::process::id());
    Config { name, ring_bytes, pool_bytes: 1 << 30, nodes: vec![node] }
}

/// Runs a program of `tests/programs`; it checks itself.
fn run(name: &str, ring_bytes: u64, words: &[&str]) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(words[0]);
    let mut program: Vec<OsString> = vec![PYTHON.into(), path.into()];
    program.extend(words[1..].iter().map(OsString::from));
    let (report, status) = ethermem_rack::run(&rack(name, ring_bytes), &program).expect("it runs");
    assert!(status.success(), "{words:?}: {status}");
    assert!(report.is_closed, "{report:?}");
    assert_eq!((report.faults, report.running), (0, 0), "{report:?}");
    report
}

fn case(name: &str) -> Report {
    run(name, 64 << 10, &["cases.py", name])
}

#[test]
fn random_calls_have_the_results_of_the_kernel_sockets() {
    let seed = std::env::var("TORTURE_SEED").unwrap_or_else(|_| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_nanos().to_string()
    });
    let calls = std::env::var("TORTURE_CALLS").unwrap_or_else(|_| "20000".into());
    for (name, ring_bytes) in [("torture-small", 4 << 10), ("torture-large", 64 << 10)] {
        let report = run(name, ring_bytes, &["torture.py", &seed, &calls]);
        assert!(report.memory_bytes > 0, "{report:?}");
        assert!(ring_bytes > 4 << 10 || report.overflows > 0, "{report:?}");
    }
}

#[test]
fn no_byte_and_no_wake_up_is_lost_between_threads() {
    for ring_bytes in [4 << 10, 256 << 10] {
        let report = run(&format!("streams-{ring_bytes}"), ring_bytes, &["cases.py", "streams"]);
        assert_eq!(report.ends_in_memory, 18);
    }
}

#[test]
fn forked_processes_share_a_connection() {
    let report = case("fork");
    assert!(report.memory_bytes >= 12_000 && report.kernel_bytes < 100, "{report:?}");
    assert!(report.recovered_bytes > 0, "the child left its memory to its end: {report:?}");
}

#[test]
fn a_killed_peer_ends_the_stream_and_its_memory_comes_back() {
    let report = case("killed");
    assert!(report.memory_bytes >= 10_000, "{report:?}");
    assert!(report.recovered_bytes > 0, "{report:?}");
}

#[test]
fn one_end_without_the_library_uses_the_kernel() {
    let report = case("plain");
    assert_eq!((report.memory_bytes, report.ends_in_memory), (0, 0), "{report:?}");
    assert!(report.kernel_bytes > 100_000 && report.without_library > 0, "{report:?}");
}

#[test]
fn an_executed_program_and_a_passed_descriptor_go_on_by_the_kernel() {
    for name in ["executed", "passed"] {
        let report = case(name);
        assert!(report.returned > 0 && report.kernel_bytes > 0, "{name}: {report:?}");
    }
}

#[test]
fn timeouts_and_signals_end_a_wait() {
    assert!(case("waits").memory_bytes > 0);
}

#[test]
fn ten_thousand_connections_leave_nothing() {
    let report = run("many", 4 << 10, &["cases.py", "many"]);
    assert_eq!(report.ends_in_memory, 20_002, "{report:?}");
    assert_eq!(report.recovered_bytes, 0, "{report:?}");
}

#[test]
fn a_full_pool_leaves_connections_to_the_kernel() {
    let mut config = rack("full", 64 << 10);
    // The programs hold three connections at a time; this is the memory of one.
    config.pool_bytes = 135_168;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cases.py");
    let words: Vec<OsString> = vec![PYTHON.into(), path.into(), "streams".into()];
    let (report, status) = ethermem_rack::run(&config, &words).unwrap();
    assert!(status.success() && report.is_closed, "{report:?}");
    assert!(report.without_room > 0 && report.ends_in_memory > 0, "{report:?}");
}

#[test]
fn redis_answers_as_without_a_rack() {
    let is_here = |program: &str| {
        std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
            .any(|folder| folder.join(program).is_file())
    };
    if !["redis-server", "redis-benchmark", "redis-cli"].into_iter().all(is_here) {
        println!("SKIPPED: redis is not installed");
        return;
    }
    let report = run("redis", 64 << 10, &["redis_clients.py"]);
    assert!(report.memory_bytes > 10_000_000, "{report:?}");
    assert!(report.kernel_bytes < report.memory_bytes, "{report:?}");
}
