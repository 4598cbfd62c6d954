//! Network namespaces, and links between them.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;

use nix::sched::{CloneFlags, setns, unshare};

/// A namespace, which exists as long as something refers to it.
pub(crate) struct Namespace(File);

impl Namespace {
    /// Creates a namespace; `None` if this process may not.
    pub(crate) fn new() -> Option<Namespace> {
        let made = std::thread::spawn(|| {
            unshare(CloneFlags::CLONE_NEWNET).ok()?;
            File::open("/proc/thread-self/ns/net").ok()
        });
        made.join().expect("it does not panic").map(Namespace)
    }

    /// Calls `act` in the namespace.
    pub(crate) fn enter<T: Send>(&self, act: impl FnOnce() -> T + Send) -> T {
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                setns(&self.0, CloneFlags::CLONE_NEWNET).expect("the namespace exists");
                act()
            });
            inside.join().expect("what runs inside does not panic")
        })
    }

    /// Runs `ip` or `tc` with these words.
    pub(crate) fn call(&self, program: &str, words: &str) {
        let run = || Command::new(program).args(words.split(' ')).output();
        let output = self.enter(run).expect("the program is installed");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {words}: {said}");
    }

    pub(crate) fn ip(&self, words: &str) {
        self.call("ip", words);
    }

    /// Adds a pair of interfaces with MTU 1500, one of them in another namespace, both up.
    pub(crate) fn connect(&self, own: &str, other: &Namespace, theirs: &str) {
        let there = format!("/proc/{}/fd/{}", std::process::id(), other.0.as_raw_fd());
        self.ip(&format!("link add {own} type veth peer name {theirs} netns {there}"));
        self.ip(&format!("link set {own} up"));
        other.ip(&format!("link set {theirs} up"));
    }
}
