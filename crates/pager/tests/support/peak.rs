//! The memory of a program as another process sees it: what the kernel shows in `/proc`, and
//! nothing that the pager counts itself.

use std::fs::read_to_string;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(1);

/// The children of all threads of a process.
fn children(process: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten();
    let lists = tasks.filter_map(|task| read_to_string(task.ok()?.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Resident private memory of a process in KiB. Pages that a fork left shared count for each.
fn resident_kib(process: u32) -> u64 {
    let status = read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok()).unwrap_or(0)
}

/// Resident private memory of a program in KiB: of all that descends from the keeper, which is the
/// pager's child.
fn program_kib(pager: u32) -> u64 {
    let mut next: Vec<u32> = children(pager).into_iter().flat_map(children).collect();
    let mut sum = 0;
    while let Some(process) = next.pop() {
        sum += resident_kib(process);
        next.extend(children(process));
    }
    sum
}

/// Runs a pager, and returns its output with the largest resident private memory of its program in
/// KiB, looked at each millisecond.
pub(crate) fn watched(pager: &mut Command) -> (Output, u64) {
    let pager: Child =
        pager.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let number = pager.id();
    let output = std::thread::spawn(move || pager.wait_with_output().expect("it ends"));
    let mut peak_kib = 0;
    while !output.is_finished() {
        peak_kib = peak_kib.max(program_kib(number));
        std::thread::sleep(PAUSE);
    }
    (output.join().expect("its output"), peak_kib)
}
