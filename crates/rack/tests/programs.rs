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
    Config { name, ring_bytes, pool_bytes: 1 << 30, nodes: vec![node], ..Config::default() }
}

/// Runs a program of `tests/programs`; it checks itself.
fn run(name: &str, ring_bytes: u64, words: &[&str]) -> Report {
    let report = run_whole(name, ring_bytes, words);
    assert_eq!(report.faults, 0, "{report:?}");
    report
}

/// As [`run`], where the other end may lie.
fn run_whole(name: &str, ring_bytes: u64, words: &[&str]) -> Report {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(words[0]);
    let mut program: Vec<OsString> = vec![PYTHON.into(), path.into()];
    program.extend(words[1..].iter().map(OsString::from));
    let (report, status) = ethermem_rack::run(&rack(name, ring_bytes), &program).expect("it runs");
    assert!(status.success(), "{words:?}: {status}");
    assert!(report.is_closed, "{report:?}");
    assert_eq!(report.running, 0, "{report:?}");
    report
}

fn case(name: &str) -> Report {
    run(name, 64 << 10, &["cases.py", name])
}

fn waiting(name: &str) -> Report {
    run(name, 64 << 10, &["waiting.py", name])
}

fn seed(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| {
        let now = std::time::UNIX_EPOCH.elapsed().expect("a clock after 1970");
        now.as_micros().to_string()
    })
}

#[test]
fn a_peer_that_lies_harms_no_call() {
    let connections = std::env::var("LIES_CONNECTIONS").unwrap_or_else(|_| "40".into());
    for ring_bytes in [4 << 10, 64 << 10] {
        let words = ["lies.py", &seed("LIES_SEED"), &connections];
        let name = format!("lies-{ring_bytes}");
        let report = run_whole(&name, ring_bytes, &words);
        assert!(report.faults > 0, "{report:?}");
    }
}

#[test]
fn random_calls_have_the_results_of_the_kernel_sockets() {
    let seed = seed("TORTURE_SEED");
    let calls = std::env::var("TORTURE_CALLS").unwrap_or_else(|_| "20000".into());
    for (name, ring_bytes) in [("torture-small", 4 << 10), ("torture-large", 64 << 10)] {
        let report = run(name, ring_bytes, &["torture.py", &seed, &calls]);
        assert!(report.memory_bytes > 0 && report.carried_bytes > 0, "{report:?}");
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
fn a_program_finds_no_io_uring() {
    case("ringless");
}

#[test]
fn an_executed_program_and_a_passed_descriptor_go_on_by_the_kernel() {
    for name in ["executed", "passed"] {
        let report = case(name);
        assert!(report.returned > 0 && report.kernel_bytes > 0, "{name}: {report:?}");
    }
}

#[test]
fn bytes_that_nothing_has_read_go_to_the_next_reader() {
    for ring_bytes in [4 << 10, 64 << 10] {
        let report = run(&format!("unread-{ring_bytes}"), ring_bytes, &["handover.py", "unread"]);
        assert!(report.returned > 0 && report.carried_bytes > 1000, "{report:?}");
        assert_eq!(report.stranded_bytes, 0, "{report:?}");
    }
}

#[test]
fn a_program_without_the_library_gets_no_stream_with_a_gap() {
    let report = run("stranded", 64 << 10, &["handover.py", "stranded"]);
    assert_eq!((report.carried_bytes, report.stranded_bytes), (12, 12), "{report:?}");
}

#[test]
fn a_reset_is_an_error_and_comes_after_what_was_sent() {
    assert!(case("reset").memory_bytes > 0);
}

#[test]
fn a_thread_that_sleeps_is_woken_whatever_others_read() {
    assert!(case("readers").bells > 0);
}

#[test]
fn bytes_that_came_before_a_set_wake_its_thread() {
    assert!(case("watched").memory_bytes > 0);
}

#[test]
fn a_set_does_what_the_program_asked_last() {
    assert!(waiting("changed").memory_bytes > 0);
}

#[test]
fn a_thread_that_only_looks_needs_no_bells() {
    let report = waiting("looks");
    assert!(report.memory_bytes >= 8000 && report.bells < 20, "{report:?}");
}

#[test]
fn a_stream_returns_to_memory_before_the_kernel_is_empty() {
    let report = waiting("overfull");
    // The ring, and the bytes that were sent after some of the kernel's had been read.
    assert!(report.memory_bytes >= (64 << 10) + 60_000 && report.overflows == 1, "{report:?}");
}

#[test]
fn a_call_takes_all_bytes_of_the_ring() {
    assert!(waiting("whole").memory_bytes >= 60_000);
}

#[test]
fn no_thread_polls_memory_while_the_kernel_has_an_event() {
    assert!(waiting("busy").kernel_bytes > 100_000);
}

#[test]
fn an_urgent_byte_keeps_no_reader_busy() {
    case("urgent");
}

#[test]
fn a_call_that_has_sent_a_part_returns_it() {
    assert!(case("stopped").overflows > 0);
}

/// The reader is always behind, so the socket is never empty.
#[test]
fn a_sender_that_is_ahead_from_the_start_gets_to_memory() {
    let report = case("behind");
    assert!(report.memory_bytes > report.kernel_bytes, "{report:?}");
}

#[test]
fn a_child_of_a_process_that_accepts_can_accept() {
    case("forks");
}

#[test]
fn timeouts_and_signals_end_a_wait() {
    assert!(case("waits").memory_bytes > 0);
}

#[test]
fn a_signal_between_two_sleeps_ends_a_wait() {
    assert!(case("alarms").memory_bytes > 0);
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
fn buffers_go_by_reference_and_come_back() {
    for ring_bytes in [4 << 10, 64 << 10] {
        let name = format!("mixed-{ring_bytes}");
        let report = run(&name, ring_bytes, &["buffers.py", "mixed", &seed("BUFFERS_SEED")]);
        assert!(report.reference_bytes > 0 && report.stranded_bytes == 0, "{report:?}");
    }
    for name in ["misused", "pinned"] {
        let report = run(name, 64 << 10, &["buffers.py", name]);
        assert!(report.reference_bytes > 0, "{report:?}");
    }
}

#[test]
fn a_peer_that_dies_with_references_gives_them_back() {
    let report = run("died", 4 << 10, &["buffers.py", "died"]);
    assert!(report.recovered_bytes > 0 && report.reference_bytes > 0, "{report:?}");
}

/// Runs a compiled program of `examples`.
fn example(name: &str, program: &Path) {
    let words = [program.as_os_str().to_owned()];
    let (report, status) = ethermem_rack::run(&rack(name, 64 << 10), &words).expect("it runs");
    assert!(status.success() && report.is_closed, "{status}: {report:?}");
    assert!(report.reference_bytes > 10_000_000, "{report:?}");
}

#[test]
fn the_examples_pass_buffers_in_rust_and_in_c() {
    let own = std::env::current_exe().unwrap();
    let folder = own.parent().and_then(Path::parent).unwrap().join("examples");
    example("rust", &folder.join("rack_buffers"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("rack_buffers");
    let mut compiler = std::process::Command::new("cc");
    compiler.args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-I"]);
    compiler.arg(root.join("crates/capi/include")).arg(root.join("examples/rack_buffers.c"));
    assert!(compiler.arg("-o").arg(&program).status().unwrap().success());
    example("c", &program);
    assert!(!std::process::Command::new(&program).status().unwrap().success(), "not in a rack");
}

fn is_installed(program: &str) -> bool {
    std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
        .any(|folder| folder.join(program).is_file())
}

#[test]
fn redis_answers_as_without_a_rack() {
    if !["redis-server", "redis-benchmark", "redis-cli"].into_iter().all(is_installed) {
        println!("SKIPPED: redis is not installed");
        return;
    }
    let report = run("redis", 64 << 10, &["redis_clients.py"]);
    assert!(report.memory_bytes > 10_000_000, "{report:?}");
    assert!(report.kernel_bytes < report.memory_bytes, "{report:?}");
}

/// Runs a program of `scripts/rack_programs` without a rack and in one: both answers are the same.
fn unmodified(program: &str, needs: &[&str]) {
    if let Some(lack) = needs.iter().find(|name| !is_installed(name)) {
        println!("SKIPPED: {lack} is not installed");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/bench_rack_programs.py");
    let folder = tempfile::tempdir().expect("it works");
    let words = |out: &Path| -> Vec<OsString> {
        let words = ["--quick", "--rounds", "1", "--places", "loopback", "--programs", program];
        let start = [PYTHON.into(), script.clone().into()];
        let end = ["--json".into(), out.into()];
        start.into_iter().chain(words.map(OsString::from)).chain(end).collect()
    };
    let answer = |out: &Path| {
        let text = std::fs::read_to_string(out).expect("it was written");
        let line = text.lines().find(|line| line.contains("\"answer\"")).map(str::to_owned);
        line.filter(|line| line.len() > 20).expect("an answer")
    };
    let (plain, rack_out) = (folder.path().join("plain"), folder.path().join("rack"));
    let own = words(&plain);
    let status = std::process::Command::new(&own[0]).args(&own[1..]).status().expect("it works");
    assert!(status.success(), "{program} on kernel sockets: {status}");
    let (report, status) =
        ethermem_rack::run(&rack(program, 256 << 10), &words(&rack_out)).expect("it runs");
    assert!(status.success() && report.is_closed, "{status}: {report:?}");
    assert_eq!((report.faults, report.stranded_bytes), (0, 0), "{report:?}");
    assert!(report.memory_bytes > 1_000_000, "{report:?}");
    assert_eq!(answer(&plain), answer(&rack_out));
}

#[test]
fn iperf3_answers_as_without_a_rack() {
    unmodified("iperf3", &["iperf3"]);
}

#[test]
fn a_redis_cluster_answers_as_without_a_rack() {
    unmodified("redis", &["redis-server", "redis-benchmark", "redis-cli"]);
}

#[test]
fn open_mpi_answers_as_without_a_rack() {
    unmodified("collectives", &["mpirun", "mpicc"]);
}
