//! `ethermem node processes`, with a node and its clients, and by a user who is not an operator.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ethermem::{Error, Permissions, Pool};
use serde_json::Value;

use crate::node::Running;
use crate::support::{Called, call, called, command};

const RW: Permissions = Permissions::READ_WRITE;
/// Longer than anything takes on a busy machine.
const HANGS: Duration = Duration::from_secs(120);

/// A node with a control socket in a folder.
struct Bench {
    folder: tempfile::TempDir,
    node: Running,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("control");
        let path = path.to_str().unwrap();
        let node = Running::start(&["--memory", "64MiB", "--page", "4KiB", "--control", path]);
        Bench { folder, node }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("control")
    }

    fn pool(&self) -> Pool {
        Pool::open(&format!("udp://{}", self.node.address())).unwrap()
    }

    /// Runs `ethermem node processes` with more words.
    fn ask(&self, words: &[&str]) -> Called {
        ask(&self.path(), words)
    }

    fn list(&self) -> Vec<Value> {
        let listed = self.ask(&["--format", "json"]);
        assert_eq!((listed.code, listed.err.as_str()), (0, ""));
        serde_json::from_str(&listed.out).unwrap()
    }
}

fn ask(path: &Path, words: &[&str]) -> Called {
    let all = ["node", "processes", "--control", path.to_str().unwrap()];
    call(Path::new("."), &[&all[..], words].concat())
}

/// Checks a refusal: exit code 2 and one line with this text.
fn assert_refused(called: &Called, says: &str) {
    assert_eq!((called.code, called.out.as_str()), (2, ""), "{}", called.err);
    assert!(called.err.starts_with("error: ") && called.err.contains(says), "{}", called.err);
    assert_eq!(called.err.lines().count(), 1, "{}", called.err);
}

#[test]
fn an_operator_lists_processes_and_ends_one() {
    let bench = Bench::new();
    assert_eq!(bench.list(), [] as [Value; 0]);
    let (one, other) = (bench.pool(), bench.pool());
    let (one, other) = (one.thread().unwrap(), other.thread().unwrap());
    let large = one.alloc(40 << 20, RW).wait().unwrap();
    let small = other.alloc(4096, RW).wait().unwrap();
    let listed = bench.list();
    let bytes: Vec<_> = listed.iter().map(|of| of["memory_bytes"].as_u64().unwrap()).collect();
    assert_eq!(bytes, [40 << 20, 4096], "{listed:?}");
    for found in &listed {
        assert_eq!((&found["tenant"], &found["state"]), (&0.into(), &"lives".into()));
        let lease = found["unheard_s"].as_f64().unwrap() + found["lease_left_s"].as_f64().unwrap();
        assert!((lease - 60.0).abs() < 1e-3, "a lease of a minute by default: {found}");
    }
    let table = bench.ask(&[]);
    assert_eq!((table.code, table.out.lines().count()), (0, 3), "{}", table.out);
    assert!(table.out.contains("0/1 ") && table.out.contains(" 41943040 "), "{}", table.out);
    let ended = bench.ask(&["end", "0/1"]);
    let said = (ended.code, ended.out.as_str(), ended.err.as_str());
    assert_eq!(said, (0, "ended 0/1\n", ""));
    // The process's client gets an error, and its neighbour notices nothing.
    let error = large.read(0, 8).wait().unwrap_err();
    assert!(matches!(error, Error::ProcessEnded { .. }), "{error}");
    assert!(error.to_string().contains("operator"), "{error}");
    small.write(0, b"mine").wait().unwrap();
    assert_refused(&bench.ask(&["end", "0/1"]), "0/1: no such process");
    assert_refused(&bench.ask(&["end", "7/2"]), "7/2: no such process");
    // The memory is free for another process.
    let began = Instant::now();
    while bench.list().len() > 1 {
        assert!(began.elapsed() < HANGS, "{:?}", bench.list());
    }
    assert!(other.alloc(60 << 20, RW).wait().is_ok());
    assert_eq!(small.read(0, 4).wait().unwrap(), b"mine");
    let second = bench.list()[0]["process"].to_string();
    let json = bench.ask(&["end", &format!("0/{second}"), "--format", "json"]);
    let json: Value = serde_json::from_str(&json.out).unwrap();
    assert_eq!(json["ended"], Value::Bool(true), "{json}");
    let path = bench.path();
    bench.node.terminate();
    let (code, words) = bench.node.ended();
    assert_eq!(code, Some(0), "{words}");
    assert!(!path.exists(), "the socket goes with its node");
    assert!(words.contains("an operator ends a process"), "{words}");
}

#[test]
fn what_cannot_be_asked_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("control");
    assert_refused(&ask(&path, &[]), "no such socket");
    let missing = call(Path::new("."), &["node", "processes"]);
    assert_refused(&missing, "--control is missing");
    for id in ["", "1", "1/", "/1", "1/2/3", "70000/1", "1/5000000000", "a/b"] {
        let refused = ask(&path, &["end", id]);
        assert_eq!(refused.code, 2, "{id}");
        assert!(refused.err.contains("TENANT/PROCESS"), "{id}: {}", refused.err);
    }
    let long = folder.path().join("x".repeat(200));
    assert_refused(&ask(&long, &[]), "must have 1 to 107");
    // One socket has no server, and one has a server that never responds.
    let listener = UnixListener::bind(&path).unwrap();
    let silent = std::thread::spawn({
        let path = path.clone();
        move || ask(&path, &["end", "0/1"])
    });
    let _held = listener.accept().unwrap();
    let silent = silent.join().unwrap();
    assert_refused(&silent, "no answer within 7 s");
    assert!(silent.err.contains("may be ended or not"), "{}", silent.err);
    drop(listener);
    assert_refused(&ask(&path, &[]), "no node serves this socket");
    // A second node with this path ends at once, and leaves the first one unchanged.
    let bench = Bench::new();
    let path = bench.path();
    let again = ["node", "--memory", "1MiB", "--insecure", "--listen", "127.0.0.1:0", "--control"];
    let again = call(Path::new("."), &[&again[..], &[path.to_str().unwrap()]].concat());
    assert_refused(&again, "another node has it");
    assert_eq!(bench.list(), [] as [Value; 0]);
}

/// Only root can become another user.
#[test]
fn another_user_is_refused() {
    const NOBODY: u32 = 65_534;
    if !nix::unistd::geteuid().is_root() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: another user at the control socket: no root");
        return;
    }
    let bench = Bench::new();
    let _thread = bench.pool().thread().unwrap();
    // The program must be readable for that user.
    let shared = tempfile::tempdir().unwrap();
    fs::set_permissions(shared.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = shared.path().join("ethermem");
    fs::copy(command(Path::new("."), &[]).get_program(), &program).unwrap();
    let ask = |words: &[&str]| {
        let mut command = std::process::Command::new(&program);
        command.args(["node", "processes", "--control"]).arg(bench.path()).args(words);
        command.env_remove("RUST_BACKTRACE").current_dir("/").uid(NOBODY).gid(NOBODY);
        called(&command.output().unwrap())
    };
    // In turn, the folder keeps that user out, the socket's mode does, and the node itself does.
    assert_refused(&ask(&[]), "permission denied: the user must be root or the node's own");
    fs::set_permissions(bench.folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(fs::metadata(bench.path()).unwrap().permissions().mode() & 0o777, 0o600);
    assert_refused(&ask(&["end", "0/1"]), "permission denied: the user must be root");
    fs::set_permissions(bench.path(), fs::Permissions::from_mode(0o666)).unwrap();
    for words in [&[][..], &["end", "0/1"]] {
        assert_refused(&ask(words), "user 65534: must be root or the node's own user, 0");
    }
    assert_eq!(bench.list()[0]["state"], "lives", "nothing was ended");
}
