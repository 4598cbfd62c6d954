//! Static programs that a program under the pager executes: they are served too, and behave as
//! without the pager.

mod support;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use support::{built, can_page, example, rounds};

const WAYS: [&str; 14] = [
    "execve",
    "execv",
    "execvp",
    "execvpe",
    "execl",
    "execlp",
    "execle",
    "fexecve",
    "execveat",
    "fork",
    "vfork",
    "posix_spawn",
    "posix_spawnp",
    "thread",
];

/// A folder with `told`, linked statically, and `executes`, linked dynamically.
fn programs() -> Option<(tempfile::TempDir, PathBuf, PathBuf)> {
    if !can_page() {
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let (told, executes) = (folder.path().join("told"), folder.path().join("executes"));
    let is_built = built(&["cc", "-O1", "-static"], "told.c", &told)
        && built(&["cc", "-O1", "-pthread"], "executes.c", &executes);
    is_built.then_some((folder, told, executes))
}

/// Writes an executable file.
fn executable(path: &Path, content: &[u8]) {
    std::fs::write(path, content).expect("written");
    std::fs::set_permissions(path, Permissions::from_mode(0o755)).expect("allowed");
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// Runs `command`, with or without the pager.
fn run(folder: &Path, paged: bool, command: &[&str]) -> Output {
    let pager = example("limit");
    let mut run = Command::new(if paged { text(&pager) } else { command[0] });
    run.args(if paged { &["1"][..] } else { &[] });
    run.args(if paged { command } else { &command[1..] });
    let path = format!("{}:/bin:/usr/bin", folder.display());
    run.env("PATH", path).env("TOLD", "a value").current_dir(folder).stdin(Stdio::null());
    run.output().expect("it runs")
}

/// A counter that `limit` prints at the end.
fn count(output: &Output, name: &str) -> u64 {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let number =
        said.rsplit(&format!(" {name}: ")).next().and_then(|rest| rest.split(&[',', ' ']).next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{name} in {said}"))
}

/// Runs `command` alone and under the pager: equal output and status, and some pages were remote.
fn compare(folder: &Path, command: &[&str]) {
    let (alone, paged) = (run(folder, false, command), run(folder, true, command));
    let what = command.join(" ");
    let said = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said(&paged), said(&alone), "{what}");
    assert_eq!(paged.status, alone.status, "{what}");
    assert!(count(&paged, "read_pages") > 0, "{what}: {}", String::from_utf8_lossy(&paged.stderr));
    assert_eq!(count(&paged, "unserved"), 0, "{what}");
}

#[test]
fn a_static_program_is_served_however_it_is_executed() {
    let Some((folder, told, executes)) = programs() else { return };
    for way in WAYS {
        let own = if ["fork", "vfork", "posix_spawn", "posix_spawnp"].contains(&way) {
            "0"
        } else {
            "self"
        };
        let by_name = ["execvp", "execvpe", "execlp", "posix_spawnp"].contains(&way);
        let program = if by_name { "told" } else { text(&told) };
        for signal in ["0", "9", "6", "40"] {
            compare(folder.path(), &[text(&executes), way, program, own, signal]);
        }
    }
}

/// Builds without a C library that the agent could interpose: the kernel reports their executions.
const WITHOUT_LOADER: [&[&str]; 3] = [
    &["cc", "-O1", "-pthread", "-static"],
    &["musl-gcc", "-O1", "-pthread", "-static"],
    &["musl-gcc", "-O1", "-pthread"],
];

#[test]
fn a_static_program_is_served_that_a_static_one_executes() {
    let Some((folder, told, _)) = programs() else { return };
    let executes = folder.path().join("static-executes");
    for builder in WITHOUT_LOADER {
        if !built(builder, "executes.c", &executes) {
            continue;
        }
        for way in WAYS {
            let starts = ["fork", "vfork", "posix_spawn", "posix_spawnp"].contains(&way);
            let by_name = ["execvp", "execvpe", "execlp", "posix_spawnp"].contains(&way);
            let program = if by_name { "told" } else { text(&told) };
            for signal in ["0", "9", "40"] {
                let own = if starts { "0" } else { "self" };
                compare(folder.path(), &[text(&executes), way, program, own, signal]);
            }
            // The execution passes through a static program and a shell, which has a loader.
            let line = format!("./static-executes {way} {program} 0 0; echo $?; told 0");
            compare(folder.path(), &[text(&executes), "execv", "/bin/sh", "-c", &line]);
        }
    }
}

#[test]
fn a_program_is_served_that_go_starts() {
    let Some((folder, told, executes)) = programs() else { return };
    let starts = folder.path().join("starts");
    if !built(&["env", "CGO_ENABLED=0", "go", "build"], "starts.go", &starts) {
        return;
    }
    for signal in ["0", "9", "40"] {
        compare(folder.path(), &[text(&starts), text(&told), "0", signal]);
        compare(folder.path(), &[text(&starts), text(&starts), text(&told), "0", signal]);
    }
    compare(folder.path(), &[text(&starts), text(&executes), "vfork", text(&told), "0", "0"]);
}

#[test]
fn a_shell_executes_static_programs() {
    let Some((folder, _told, _)) = programs() else { return };
    executable(&folder.path().join("script"), b"#! ./told an_argument\n");
    for script in [
        "told 0; echo $?",
        "exec ./told $$",
        "./told 0 15; echo $?",
        "trap '' HUP; umask 27; cd /; told 0 <&- 3</dev/null; echo $?",
        "exec told $$ <&- 2>/dev/null",
        "./told 0 | cat; exec ./told $$ 9",
        "./script; echo $?",
        "env told 0; xargs -n 1 told < /dev/null; timeout 60 told 0 11; echo $?",
        "for i in 1 2 3 4; do ./told 0 & done; wait",
    ] {
        compare(folder.path(), &["sh", "-c", script]);
    }
}

#[test]
fn nothing_is_lost_however_often_static_programs_are_executed() {
    let Some((folder, told, executes)) = programs() else { return };
    for _ in 0..rounds() {
        compare(folder.path(), &[text(&executes), "vfork", text(&told), "0", "0"]);
        compare(folder.path(), &[text(&executes), "posix_spawn", text(&told), "0", "0"]);
    }
}

/// No thread stays traced after an execution that fails, whatever the reason.
#[test]
fn what_cannot_be_executed_fails_as_alone() {
    let Some((folder, _, executes)) = programs() else { return };
    fails_as_alone(folder.path(), &executes);
    for builder in WITHOUT_LOADER {
        let executes = folder.path().join("static-executes");
        if built(builder, "executes.c", &executes) {
            fails_as_alone(folder.path(), &executes);
        }
    }
}

fn fails_as_alone(folder: &Path, executes: &Path) {
    std::fs::write(folder.join("text"), "no program").expect("written");
    executable(&folder.join("empty"), b"");
    executable(&folder.join("broken"), b"\x7fELF\x02\x01\x01 and nothing else");
    for way in WAYS {
        for program in ["./nothing", "./text", "./empty", "./broken", "/"] {
            let command = [text(executes), way, program, "0", "0"];
            let (alone, paged) = (run(folder, false, &command), run(folder, true, &command));
            let what = command.join(" ");
            assert_eq!(
                String::from_utf8_lossy(&paged.stdout),
                String::from_utf8_lossy(&alone.stdout),
                "{what}"
            );
            assert_eq!(paged.status, alone.status, "{what}");
        }
    }
}

/// A program with another tracer cannot be traced by the pager: it runs unserved, and is named.
#[test]
fn what_may_not_be_traced_runs_by_itself_and_is_named() {
    let Some((folder, told, _)) = programs() else { return };
    let tracer = folder.path().join("traces");
    if !built(&["cc", "-O1"], "traces.c", &tracer) {
        return;
    }
    let paged = run(folder.path(), true, &[text(&tracer), text(&told), "0", "0"]);
    let said = String::from_utf8_lossy(&paged.stderr).into_owned();
    assert_eq!(paged.status.code(), Some(7), "{said}");
    assert_eq!(count(&paged, "unserved"), 1, "{said}");
    let named = said.lines().find(|line| line.starts_with("by itself: "));
    assert!(
        named.is_some_and(|line| line.contains("traces") && line.contains("ptrace: EPERM")),
        "{said}"
    );
}

/// The filter requires CAP_SYS_ADMIN; without it, the executed program is named.
#[test]
fn what_the_kernel_does_not_tell_of_is_named() {
    let Some((folder, told, _)) = programs() else { return };
    let limit = example("limit");
    let mut paged = Command::new("setpriv");
    paged.args(["--bounding-set", "-sys_admin", text(&limit), "1", text(&told), "0", "0"]);
    let paged = match paged.current_dir(folder.path()).output() {
        Ok(paged) => paged,
        Err(error) => return support::skipped(&format!("setpriv: {error}")),
    };
    let said = String::from_utf8_lossy(&paged.stderr).into_owned();
    assert_eq!(paged.status.code(), Some(7), "{said}");
    assert!(count(&paged, "read_pages") > 0, "{said}");
    assert_eq!(count(&paged, "unserved"), 1, "{said}");
    let named = said.lines().find(|line| line.starts_with("by itself: "));
    assert!(
        named.is_some_and(|line| line.contains("told executes, if any: seccomp: EACCES")),
        "{said}"
    );
}

/// A program into which a loader preloads the agent is not announced, so nothing is traced.
#[test]
fn programs_with_a_loader_are_executed_without_the_pager() {
    let Some((folder, ..)) = programs() else { return };
    std::os::unix::fs::symlink("/bin/true", folder.path().join("linked")).expect("a link");
    executable(&folder.path().join("script"), b"#!/bin/sh\nexec env true\n");
    let script = "/bin/true; ./linked; ./script; env sh -c true; timeout 60 true";
    let paged = run(folder.path(), true, &["sh", "-c", script]);
    assert_eq!((paged.status.code(), count(&paged, "announced")), (Some(0), 0));
    let paged = run(folder.path(), true, &["sh", "-c", "told 0; exec told 0"]);
    assert_eq!((paged.status.code(), count(&paged, "announced")), (Some(7), 2));
}

/// Without an environment nothing preloads the agent: such a program runs unserved, as it does
/// alone, and the report says so.
#[test]
fn a_program_without_an_environment_runs_by_itself_and_is_named() {
    let Some((folder, told, executes)) = programs() else { return };
    let executes_static = folder.path().join("static-executes");
    let mut commands = vec![
        vec!["env", "-i", "/bin/echo", "said"],
        vec!["env", "-i", text(&told), "0", "9"],
        vec!["env", "-u", "LD_PRELOAD", "/bin/echo", "said"],
        vec!["sh", "-c", "env -i /bin/echo said; echo $?"],
        vec![text(&executes), "posix_spawn", "/usr/bin/env", "-i", "/bin/echo"],
    ];
    if built(&["cc", "-O1", "-pthread", "-static"], "executes.c", &executes_static) {
        commands.push(vec![text(&executes_static), "execv", "/usr/bin/env", "-i", "/bin/echo"]);
    }
    for command in commands {
        let (alone, paged) =
            (run(folder.path(), false, &command), run(folder.path(), true, &command));
        let what = command.join(" ");
        let said = String::from_utf8_lossy(&paged.stderr).into_owned();
        assert_eq!((&paged.stdout, paged.status), (&alone.stdout, alone.status), "{what}: {said}");
        assert_eq!(count(&paged, "unserved"), 1, "{what}: {said}");
        assert!(said.contains(": its environment lacks LD_PRELOAD"), "{what}: {said}");
    }
}

/// A program that an announcement would kill does not announce.
#[test]
fn a_program_that_may_open_no_socket_runs_by_itself() {
    let Some((folder, told, _)) = programs() else { return };
    let confined = folder.path().join("confined");
    if !built(&["cc", "-O1"], "confined.c", &confined) {
        return;
    }
    let paged = run(folder.path(), true, &[text(&confined), text(&told), "0", "0"]);
    let said = String::from_utf8_lossy(&paged.stderr).into_owned();
    assert_eq!((paged.status.code(), count(&paged, "announced")), (Some(7), 0), "{said}");
}
