//! Networks of a test's own: namespaces of the kernel, and pairs of interfaces between them.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};

/// A namespace, as long as something refers to it.
pub(crate) struct Namespace(File);

impl Namespace {
    /// A new one, whose loopback is up; `None`, said aloud, where this process may not have one.
    pub(crate) fn new(what: &str) -> Option<Namespace> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).ok()?;
            File::open("/proc/thread-self/ns/net").ok()
        });
        let Some(file) = made.join().unwrap() else {
            // Past the capture of the test runner.
            let line = format!("SKIPPED: {what}: network namespaces need root\n");
            let _ = std::io::stderr().write_all(line.as_bytes());
            return None;
        };
        let namespace = Namespace(file);
        namespace.ip("link set lo up");
        Some(namespace)
    }

    /// Does something in it.
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

    /// `ip` with these words.
    pub(crate) fn ip(&self, words: &str) {
        self.call("ip", words);
    }

    /// Lets no more than a frame of 100 octets in 8 ms leave by an interface, and none of over 300,
    /// but for those that pass by its queue.
    pub(crate) fn slow_down(&self, interface: &str) {
        let limit = "root tbf rate 100kbit burst 300 latency 1s";
        self.call("tc", &format!("qdisc add dev {interface} {limit}"));
    }

    fn call(&self, program: &str, words: &str) {
        let run = || Command::new(program).args(words.split(' ')).output().unwrap();
        let output = self.enter(run);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words}: {said}");
    }

    /// A pair of interfaces, one of them in another namespace, both up.
    pub(crate) fn connect(&self, own: &str, other: &Namespace, theirs: &str, mtu: u32) {
        let first = format!("link add {own} mtu {mtu} type veth peer name {theirs} mtu {mtu}");
        self.ip(&format!("{first} netns {}", other.path()));
        self.ip(&format!("link set {own} up"));
        other.ip(&format!("link set {theirs} up"));
    }

    /// An interface goes to another namespace, where it is down.
    pub(crate) fn give(&self, interface: &str, other: &Namespace) {
        self.ip(&format!("link set {interface} netns {}", other.path()));
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}
