//! Whole programs under the pager: their results, their exit statuses, and every byte of their
//! memory.
//!
//! Each run is a process of its own (`examples/limit`), because a pager waits for all of its
//! children.

mod support;

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use support::{built, can_page, example, rounds, skipped, under};

/// Runs the torture program with `local` MiB of its 16 or so local.
fn torture(local: &str, more: &[&str], accesses: u64, seed: u64) {
    let program = example("torture");
    let (accesses, seed) = (accesses.to_string(), seed.to_string());
    let mut words = more.to_vec();
    words.push(program.to_str().expect("a path of text"));
    words.extend(["--accesses", &accesses, "--seed", &seed]);
    let output = under(local, &words);
    let (said, told) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(
        output.status.success() && said.starts_with("clean"),
        "limit {local} {}: {:?}\n{said}{told}",
        words.join(" "),
        output.status
    );
}

/// The first pages are evicted while threads fork. In one of 1,500 such runs, a child was once
/// taken to have been registered with its parent, a moment after the fork.
#[test]
fn no_byte_changes_when_a_fork_meets_the_first_registration() {
    if !can_page() {
        return;
    }
    for seed in 1..=rounds() * 10 {
        torture("2", &[], 2_500, seed);
    }
}

/// More runs at once than processors: threads are preempted between a change of a mapping and its
/// event, so that other threads overtake them. In 600,000 accesses a thread once lost a page.
#[test]
fn no_byte_changes_on_an_overloaded_machine() {
    if !can_page() {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for seed in 0..3 * processors as u64 {
            scope.spawn(move || torture("2", &[], rounds() * 10_000, 1_000 + seed));
        }
    });
}

#[test]
fn no_byte_changes_at_any_share() {
    if !can_page() {
        return;
    }
    for seed in 1..=rounds() {
        for local in ["1", "2", "4", "8", "16", "all"] {
            torture(local, &[], 30_000, seed);
        }
    }
}

/// Pages are in flight while their memory is moved, discarded, forked and evicted again.
#[test]
fn no_byte_changes_while_pages_come_late() {
    if !can_page() {
        return;
    }
    for seed in 1..=rounds() {
        for local in ["1", "4"] {
            torture(local, &["--late"], 30_000, seed);
        }
    }
}

#[test]
fn no_byte_changes_in_a_pool() {
    if can_page() {
        torture("2", &["--pool", "local:"], 30_000, 1);
    }
}

/// No loader preloads the agent into these programs, so it is written into them.
#[test]
fn programs_of_any_linkage_and_language_keep_every_byte() {
    if !can_page() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("program");
    for (builder, source, local) in [
        (&["cc", "-O1", "-pthread"][..], "words.c", "1"),
        (&["cc", "-O1", "-pthread", "-static"], "words.c", "1"),
        (&["cc", "-O1", "-pthread", "-static-pie"], "words.c", "1"),
        (&["musl-gcc", "-O1", "-pthread", "-static"], "words.c", "1"),
        (&["musl-gcc", "-O1", "-pthread"], "words.c", "1"),
        (&["env", "CGO_ENABLED=0", "go", "build"], "maps.go", "16"),
    ] {
        if !built(builder, source, &program) {
            continue;
        }
        let mut left = false;
        for _ in 0..rounds() {
            let path = program.to_str().expect("a path of text");
            let output = under(local, &[path, "argument"]);
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(0), "{}: {told}", builder.join(" "));
            assert_eq!(output.stdout, b"clean\n", "{}", builder.join(" "));
            left |= !told.contains("taken_pages: 0,");
        }
        assert!(left, "{}: no page left in any round", builder.join(" "));
    }
}

#[test]
fn a_program_ends_as_it_ends_alone() {
    if !can_page() {
        return;
    }
    let failed = under("4", &["sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(failed.status.code(), Some(7));
    assert_eq!(failed.stdout, b"out\n");
    assert!(failed.stderr.starts_with(b"err\n"));
    let killed = under("4", &["sh", "-c", "kill -KILL $$"]);
    assert_eq!(killed.status.signal(), Some(9));
    let orphan = under("4", &["sh", "-c", "(sleep 0.2; echo late) & exit 3"]);
    assert_eq!((orphan.status.code(), &orphan.stdout[..]), (Some(3), &b"late\n"[..]));
}

#[test]
fn what_cannot_be_run_is_refused_in_one_line() {
    if !can_page() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let text = folder.path().join("text");
    std::fs::write(&text, "no program").expect("written");
    for (program, expected) in [
        ("no-such-program", "no such program in PATH"),
        ("/no/such/file", "No such file"),
        ("/", "neither a 64-bit program"),
        ("", "no such program in PATH"),
        (text.to_str().expect("text"), "neither a 64-bit program"),
    ] {
        let refused = under("4", &[program]);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_program_dies_with_its_pager() {
    if !can_page() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    // If the program survived, its memory would be zeroes from then on.
    let mut pager = Command::new(example("limit"))
        .args(["4", "sh", "-c", "echo $$ > pid; sleep 60; echo survived > wrong"])
        .current_dir(folder.path())
        .spawn()
        .expect("the example runs");
    std::thread::sleep(std::time::Duration::from_millis(500));
    let number = std::fs::read_to_string(folder.path().join("pid")).expect("it started");
    pager.kill().expect("killed");
    pager.wait().expect("ended");
    let gone = |number: &str| !std::path::Path::new("/proc").join(number.trim()).exists();
    let dead = (0..200).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(20));
        gone(&number)
    });
    assert!(dead, "process {} lives on", number.trim());
}

#[test]
fn what_moves_again_at_once_and_what_a_fork_wipes_is_as_without_the_pager() {
    if !can_page() {
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let moves = folder.path().join("moves");
    for linked in [&["cc", "-O1"][..], &["cc", "-O1", "-static"]] {
        if !built(linked, "moves.c", &moves) {
            return;
        }
        for local in ["1", "3"] {
            let output = under(local, &[moves.to_str().expect("a path of text")]);
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said == "clean\n", "{linked:?} {local}: {said}");
        }
    }
}

#[test]
fn no_byte_changes_while_pager_and_threads_share_a_processor() {
    if !can_page() {
        return;
    }
    for (local, seed) in [("2", 1), ("8", 2)] {
        torture(local, &["--together"], rounds() * 10_000, seed);
    }
    torture("2", &["--pool", "local:", "--together"], 30_000, 3);
}

/// Threads and processes that begin while their parent is bound get its processors back.
#[test]
fn what_begins_on_one_processor_may_run_on_all() {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    if !can_page() {
        return;
    }
    if processors < 2 {
        skipped("there is only one processor");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let heirs = folder.path().join("heirs");
    for linked in [&["cc", "-O1", "-pthread"][..], &["cc", "-O1", "-pthread", "-static"]] {
        if !built(linked, "heirs.c", &heirs) {
            return;
        }
        let path = heirs.to_str().expect("a path of text");
        for (more, said) in
            [(&["--together", path][..], "clean bound\n"), (&[path], "clean free\n")]
        {
            let output = under("4", more);
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!(String::from_utf8_lossy(&output.stdout), said, "{linked:?}: {told}");
        }
    }
}
