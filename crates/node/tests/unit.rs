//! The systemd unit: the files it names exist, and it permits what the node needs.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

fn tools() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools")
}

fn unit() -> String {
    fs::read_to_string(tools().join("ethermem-node.service")).unwrap()
}

/// The words of a setting.
fn words(unit: &str, key: &str) -> BTreeSet<String> {
    let values = unit.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    values.flat_map(str::split_whitespace).map(str::to_owned).collect()
}

#[test]
fn its_user_is_one_that_the_guide_makes() {
    let users = fs::read_to_string(tools().join("ethermem.sysusers")).unwrap();
    let lines = users.lines().filter(|line| !line.starts_with('#'));
    let made: BTreeSet<String> = lines
        .filter_map(|line| line.strip_prefix("u ")?.split(' ').next())
        .map(str::to_owned)
        .collect();
    assert!(!made.is_empty());
    assert_eq!(words(&unit(), "User"), made);
    let guide = fs::read_to_string(tools().join("../docs/how-to/run-a-memory-node.md")).unwrap();
    for step in ["tools/ethermem.sysusers", "tools/ethermem-node.service", "systemd-sysusers"] {
        assert!(guide.contains(step), "the guide does not say {step}");
    }
}

/// A node with `ring` opens a packet socket; one that looks up MTUs lists interfaces.
#[test]
fn it_may_open_what_a_node_opens() {
    let unit = unit();
    let families = words(&unit, "RestrictAddressFamilies");
    for family in ["AF_INET", "AF_INET6", "AF_UNIX", "AF_PACKET", "AF_NETLINK"] {
        assert!(families.contains(family), "{family}");
    }
    for right in ["CAP_NET_ADMIN", "CAP_NET_RAW"] {
        for key in ["AmbientCapabilities", "CapabilityBoundingSet"] {
            assert!(words(&unit, key).contains(right), "{key}: {right}");
        }
    }
}

#[test]
fn systemd_has_nothing_against_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ethermem-node.service");
    // The unit names the program's path in the guide, which does not exist here.
    let here = unit().replace("/usr/local/bin/ethermem", "/bin/true");
    fs::write(&path, here).unwrap();
    let verify = Command::new("systemd-analyze").arg("verify").arg(&path).output();
    let Ok(verified) = verify else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: the unit: systemd-analyze is not installed");
        return;
    };
    let said = String::from_utf8_lossy(&verified.stderr);
    let of_it: Vec<&str> = said.lines().filter(|line| line.contains("ethermem-node")).collect();
    assert!(of_it.is_empty() && verified.status.success(), "{said}");
}
