//! Raw Ethernet from the command line: on the loopback, and without the privilege.

use std::io::Write as _;
use std::process::Command;

use crate::node::Running;
use crate::support::{Called, call, called, root};

/// True if this process may use raw Ethernet; prints a SKIPPED line if not.
pub(crate) fn may() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap();
    let has_it = u64::from_str_radix(line.trim(), 16).unwrap() & 1 << 13 != 0;
    if !has_it {
        // The line bypasses the test runner's capture.
        let _ = writeln!(std::io::stderr(), "SKIPPED: raw Ethernet needs CAP_NET_RAW");
    }
    has_it
}

/// A place for this program: other test programs run beside it, on the same loopback.
pub(crate) fn place(which: u32) -> String {
    format!("lo:{}", 1024 + (std::process::id() * 4 + which) % 60_000)
}

#[test]
fn a_node_on_a_ring_serves_what_pools_are_used_for() {
    if !may() {
        return;
    }
    let place = place(0);
    let always = ["--memory", "4MiB", "--page", "4KiB", "--insecure"];
    let node = Running::start_with(&[&always[..], &["--ring", &place]].concat());
    let url = node.address();
    assert_eq!(url, format!("ring://{place}/00:00:00:00:00:00"));
    for pool in [url, &format!("ring://{place}")] {
        let micro = ["bench", "micro", "--pool", pool, "--op", "read,write,cas"];
        let few = ["--operations", "200", "--depth", "1,16", "--format", "json"];
        let done = call(&root(), &[&micro[..], &few].concat());
        assert_eq!(done.code, 0, "{}", done.err);
        let points: serde_json::Value = serde_json::from_str(&done.out).unwrap();
        assert_eq!(points.as_array().unwrap().len(), 6);
    }
    let records = ["--records", "100", "--operations", "200", "--format", "json"];
    let ycsb = ["bench", "ycsb", "--pool", url, "--workload", "A"];
    let done = call(&root(), &[&ycsb[..], &records].concat());
    assert_eq!(done.code, 0, "{}", done.err);
    // A second node needs another port.
    let taken = call(&root(), &[&["node"], &always[..], &["--ring", &place]].concat());
    assert_eq!((taken.code, taken.out.as_str()), (2, ""));
    assert!(taken.err.contains("must be one that no other node has there"), "{}", taken.err);
}

#[test]
fn a_node_is_on_udp_and_on_a_ring_at_once() {
    if !may() {
        return;
    }
    let place = place(1);
    let node = Running::start(&["--memory", "4MiB", "--ring", &place]);
    for pool in [format!("udp://{}", node.address()), format!("ring://{place}")] {
        let micro = ["bench", "micro", "--pool", &pool, "--op", "read", "--operations", "100"];
        let done = call(&root(), &micro);
        assert_eq!(done.code, 0, "{pool}: {}", done.err);
    }
}

fn unprivileged(arguments: &[&str]) -> Option<Called> {
    let mut command = Command::new("setpriv");
    command.args(["--bounding-set=-net_raw", "--inh-caps=-net_raw", "--"]);
    command.arg(env!("CARGO_BIN_EXE_ethermem")).args(arguments);
    match command.output() {
        Ok(output) if !output.stderr.starts_with(b"setpriv:") => Some(called(&output)),
        _ => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: no setpriv that drops a capability");
            None
        }
    }
}

#[test]
fn without_the_privilege_both_ends_say_so_in_a_line() {
    let node = ["node", "--memory", "1MiB", "--insecure", "--ring", "lo"];
    let pool = ["bench", "micro", "--pool", "ring://lo", "--op", "read"];
    for (arguments, front) in [(&node[..], "ring lo: "), (&pool, "ring://lo: ")] {
        let Some(refused) = unprivileged(arguments) else { return };
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{arguments:?}");
        let (line, says) = (refused.err, format!("{front}raw Ethernet needs CAP_NET_RAW: "));
        assert!(line.starts_with("error: ") && line.contains(&says), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
}

#[test]
fn what_a_ring_cannot_be_is_refused_in_a_line() {
    let node =
        |ring: &str| call(&root(), &["node", "--memory", "1MiB", "--insecure", "--ring", ring]);
    for (ring, says) in [
        ("no-such-one", "interface `no-such-one`: there is none of that name"),
        ("lo:0", "must be INTERFACE or INTERFACE:PORT, port 1 to 65535"),
        ("lo/02:00:00:00:00:01", "must be INTERFACE or INTERFACE:PORT, port 1 to 65535"),
    ] {
        let refused = node(ring);
        assert_eq!((refused.code, refused.out.as_str()), (2, ""), "{ring}");
        assert!(refused.err.contains(says), "{ring}: {}", refused.err);
    }
    if may() {
        let silent = format!("ring://{}?timeout_ms=50", place(2));
        let refused = call(&root(), &["bench", "micro", "--pool", &silent, "--op", "read"]);
        assert_eq!(refused.code, 2);
        assert!(refused.err.contains("no answer within 50 ms"), "{}", refused.err);
    }
}
