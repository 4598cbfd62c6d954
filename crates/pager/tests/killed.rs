//! A program dies with its pager: every process that it started, however it is linked and however
//! it forks. None of them sees a wrong word before that.
//!
//! The pager or its keeper is killed at any time from the first instruction on. A surviving process
//! is found by a token in its environment; a wrong word is recorded in a file.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use support::{built, can_page, example, rounds};

const TOKEN: &str = "ETHERMEM_TEST_TOKEN";
const SEED: &str = "ETHERMEM_KILL_SEED";
/// Longer than any step takes on a busy machine.
const HANG: Duration = Duration::from_secs(60);

/// How a kind of program is built, its source, and how it is told to fork.
const KINDS: [(&str, &[&str], &str, &str); 5] = [
    ("glibc", &["cc", "-O1"], "keeps.c", "libc"),
    ("musl", &["musl-gcc", "-O1"], "keeps.c", "libc"),
    ("static", &["cc", "-O1", "-static"], "keeps.c", "libc"),
    ("go", &["env", "CGO_ENABLED=0", "go", "build"], "keeps.go", ""),
    ("raw fork", &["cc", "-O1"], "keeps.c", "raw"),
];

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Processes whose environment has the token.
fn left(token: &str) -> Vec<(i32, String)> {
    let wanted = format!("{TOKEN}={token}");
    let processes = std::fs::read_dir("/proc").expect("the kernel has one");
    let numbers = processes.filter_map(|it| it.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let has_token = |number: &i32| {
        let environment = std::fs::read(format!("/proc/{number}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|text| text == wanted.as_bytes())
    };
    let name = |number| std::fs::read_to_string(format!("/proc/{number}/comm")).unwrap_or_default();
    numbers.filter(has_token).map(|number| (number, name(number).trim().to_owned())).collect()
}

/// The process between the pager and the program, if it has started.
fn keeper(pager: &Child) -> Option<i32> {
    let pager = pager.id();
    let children = std::fs::read_to_string(format!("/proc/{pager}/task/{pager}/children")).ok()?;
    children.split_ascii_whitespace().next()?.parse().ok()
}

/// The process to kill.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Victim {
    Pager,
    Keeper,
}

/// One program under a pager, and what remains of it.
struct Trial<'f> {
    folder: &'f Path,
    program: &'f Path,
    how: &'f str,
    token: String,
}

impl Trial<'_> {
    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}-{}", self.token))
    }

    fn start(&self) -> Child {
        let mut command = Command::new(example("limit"));
        command.arg("1").arg(self.program).args([self.file("wrong"), self.file("ready")]);
        command.args(Some(self.how).filter(|how| !how.is_empty())).env(TOKEN, &self.token);
        command.env("TMPDIR", self.folder).stdin(Stdio::null()).stderr(Stdio::null());
        command.spawn().expect("the example runs")
    }

    /// Kills `victim` some time after the start, or after all processes of the program run, and
    /// returns what is wrong then.
    fn run(&self, victim: Victim, is_ready: bool, after: Duration) -> Vec<String> {
        let began = Instant::now();
        let mut pager = self.start();
        while is_ready && !self.file("ready").exists() && began.elapsed() < HANG {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(after);
        let ended = pager.try_wait().expect("waited");
        let mut wrong: Vec<_> =
            ended.map(|it| format!("it ended by itself: {it}")).into_iter().collect();
        let killed = match victim {
            Victim::Pager => None,
            Victim::Keeper => keeper(&pager),
        };
        let victim = killed.unwrap_or(pager.id().cast_signed());
        let kill = Command::new("kill").args(["-KILL", &victim.to_string()]).status();
        assert!(kill.expect("every machine has it").success());
        let killed = Instant::now();
        let mut survivors = left(&self.token);
        while !survivors.is_empty() && killed.elapsed() < HANG {
            pager.try_wait().expect("waited");
            std::thread::sleep(Duration::from_millis(1));
            survivors = left(&self.token);
        }
        wrong.extend(survivors.iter().map(|it| format!("{it:?} survives")));
        for (survivor, _) in survivors {
            drop(Command::new("kill").args(["-KILL", &survivor.to_string()]).status());
        }
        pager.wait().expect("ended");
        if let Ok(text) = std::fs::read_to_string(self.file("wrong")) {
            wrong.extend(text.lines().map(str::to_owned));
        }
        wrong
    }
}

#[test]
fn every_process_dies_with_the_pager_and_sees_no_wrong_word() {
    if !can_page() {
        return;
    }
    let kills = number("ETHERMEM_PAGER_KILLS").unwrap_or(8 * rounds()).max(5);
    let seed = number(SEED).unwrap_or_else(|| u64::from(std::process::id()));
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    let folder = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut done) = (Vec::new(), 0);
    for (kind, builder, source, how) in KINDS {
        let program = folder.path().join(kind);
        if !built(builder, source, &program) {
            continue;
        }
        for trial in 0..kills / KINDS.len() as u64 {
            let token = format!("{}-{kind}-{trial}", std::process::id());
            let it = Trial { folder: folder.path(), program: &program, how, token };
            let draw = random.next_u64();
            let victim = if draw.is_multiple_of(4) { Victim::Keeper } else { Victim::Pager };
            let is_ready = (draw >> 8).is_multiple_of(2);
            let after =
                Duration::from_micros((draw >> 16) % if is_ready { 60_000 } else { 200_000 });
            let found = it.run(victim, is_ready, after);
            let what = format!("{kind}, {victim:?} killed, ready {is_ready}, after {after:?}");
            wrong.extend(found.into_iter().map(|found| format!("{what}: {found}")));
            done += 1;
        }
    }
    println!("{done} kills, {} wrong pages or survivors, {SEED}={seed}", wrong.len());
    assert!(wrong.is_empty(), "{SEED}={seed}: {}", wrong.join("\n"));
    let agents = std::fs::read_dir(folder.path()).expect("the folder");
    let names = agents.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let agents: Vec<_> = names.filter(|name| name.starts_with("ethermem-agent")).collect();
    assert!(agents.is_empty(), "an agent's file is left: {agents:?}");
}
