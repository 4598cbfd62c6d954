//! The limit on local memory is kept, as another process sees it.

#[path = "support/peak.rs"]
mod peak;
mod support;

use std::process::{Command, Output};

use support::{built, can_page, example, rounds};

/// What a process has beside the memory that the pager serves: its first stack, the variables of
/// its libraries, and the agent. Such pages stay.
const BESIDE_KIB: u64 = 512;

/// Runs one kind of growth with `mib` MiB and a limit of `local` MiB, for `processes` processes.
fn keeps(kind: &str, mib: u64, local: u64, processes: u64) {
    if !can_page() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("grows");
    if !built(&["cc", "-O1", "-pthread"], "grows.c", &program) {
        return;
    }
    // Once, and more often where `make soak` asks for it.
    for _ in 0..rounds().div_ceil(3) {
        let mut pager = Command::new(example("limit"));
        pager.arg(local.to_string()).arg(&program).args([kind, &mib.to_string()]);
        let (output, peak_kib) = peak::watched(&mut pager);
        judge(&output, peak_kib, kind, local, processes);
        if kind == "shared" {
            tells_of(&output, mib);
        }
    }
}

/// The counts say that `mib` MiB are not limited, and the pages of libraries.
fn tells_of(output: &Output, mib: u64) {
    let told = String::from_utf8_lossy(&output.stderr);
    let count = told.split_once("beside_pages: ").and_then(|(_, rest)| rest.split_once(','));
    let pages: u64 = count.expect("it is counted").0.parse().expect("a number");
    assert!((mib * 256..(mib + 16) * 256).contains(&pages), "{told}");
}

fn judge(output: &Output, peak_kib: u64, kind: &str, local: u64, processes: u64) {
    let said = String::from_utf8_lossy(&output.stdout);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said == "clean\n", "{kind} {local}: {said}{told}");
    assert!(!told.contains("written_pages: 0,"), "{kind} {local}: nothing left: {told}");
    let most_kib = (local << 10) * 102 / 100 + processes * BESIDE_KIB;
    assert!(peak_kib <= most_kib, "{kind} {local}: {peak_kib} KiB, {most_kib} allowed\n{told}");
}

#[test]
fn one_process_that_touches_fresh_memory_keeps_the_limit() {
    keeps("touch", 64, 8, 1);
    keeps("touch", 192, 64, 1);
}

#[test]
fn threads_that_fault_at_once_keep_the_limit() {
    keeps("threads", 64, 8, 1);
    keeps("threads", 192, 64, 1);
}

#[test]
fn forked_processes_keep_the_limit_together() {
    keeps("processes", 72, 8, 7);
    keeps("processes", 192, 64, 7);
}

#[test]
fn pages_that_forks_copy_keep_the_limit() {
    keeps("copies", 72, 8, 6);
    keeps("copies", 192, 64, 6);
}

#[test]
fn a_heap_whose_blocks_come_and_go_keeps_the_limit() {
    keeps("churn", 48, 8, 1);
}

#[test]
fn memory_that_is_read_before_it_is_written_keeps_the_limit() {
    keeps("zeroes", 64, 8, 1);
}

/// Shared memory stays local, beside the limit, and the counts say so.
#[test]
fn shared_memory_is_beside_the_limit_and_told() {
    keeps("shared", 32, 8, 1);
}
