//! Private networks of a test: network namespaces, and pairs of interfaces between them.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};

/// A namespace, which exists as long as something refers to it.
pub(crate) struct Namespace(File);

impl Namespace {
    /// Creates a namespace with its loopback up; `None`, with a SKIPPED line, if this process may
    /// not.
    pub(crate) fn new(what: &str) -> Option<Namespace> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).ok()?;
            File::open("/proc/thread-self/ns/net").ok()
        });
        let Some(file) = made.join().unwrap() else {
            // The line bypasses the test runner's capture.
            let line = format!("SKIPPED: {what}: network namespaces need root\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        let namespace = Namespace(file);
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Calls `act` in the namespace.
    pub(crate) fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).unwrap();
                act()
            });
            match inside.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// Runs `ip` with these words.
    pub(crate) fn ip(&self, words: &str) {
        self.call("ip", words);
    }

    /// Runs `tc` with these words.
    pub(crate) fn tc(&self, words: &str) {
        self.call("tc", words);
    }

    /// Octets that an interface has sent.
    pub(crate) fn sent(&self, interface: &str) -> u64 {
        let all = self.enter(|| std::fs::read_to_string("/proc/thread-self/net/dev")).unwrap();
        let named = |line: &&str| line.trim_start().starts_with(&format!("{interface}:"));
        let line = all.lines().find(named).unwrap_or_else(|| panic!("no {interface}: {all}"));
        // Eight counters of what was received come first.
        line.split_whitespace().nth(9).unwrap().parse().unwrap()
    }

    /// Limits an interface to one frame of 100 octets in 8 ms, and drops frames of over 300, except
    /// frames that bypass its queue.
    pub(crate) fn slow_down(&self, interface: &str) {
        let limit = "root tbf rate 100kbit burst 300 latency 1s";
        self.tc(&format!("qdisc add dev {interface} {limit}"));
    }

    fn call(&self, program: &str, words: &str) {
        let run = || Command::new(program).args(words.split(' ')).output().unwrap();
        let output = self.enter(run);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words}: {said}");
    }

    /// Adds a pair of interfaces, one of them in another namespace, both up.
    pub(crate) fn connect(&self, own: &str, other: &Namespace, theirs: &str, mtu: u32) {
        let first = format!("link add {own} mtu {mtu} type veth peer name {theirs} mtu {mtu}");
        self.ip(&format!("{first} netns {}", other.path()));
        self.ip(&format!("link set {own} up"));
        other.ip(&format!("link set {theirs} up"));
    }

    /// Moves an interface to another namespace, where it is down.
    pub(crate) fn give(&self, interface: &str, other: &Namespace) {
        self.ip(&format!("link set {interface} netns {}", other.path()));
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
