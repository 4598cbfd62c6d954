//! Peers that send false messages: processes of another user, and hostile descendants. No false
//! message is accepted, no other process is read or ended, and the program goes on.

mod support;

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{built, can_page, example, rounds, skipped};

const NOBODY: u32 = 65534;
const HANG: Duration = Duration::from_secs(120);

/// A folder that every user may read, with the attacker and a program that measures.
struct AttackFolder {
    folder: tempfile::TempDir,
    attacker: PathBuf,
    waits: PathBuf,
}

fn place() -> Option<AttackFolder> {
    if !can_page() {
        return None;
    }
    if std::fs::metadata("/proc/self").expect("its folder").uid() != 0 {
        skipped("only root can start programs of another user");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).expect("allowed");
    let (attacker, waits) = (folder.path().join("attacker"), folder.path().join("waits"));
    std::fs::copy(example("attacker"), &attacker).expect("copied");
    std::fs::set_permissions(&attacker, Permissions::from_mode(0o755)).expect("allowed");
    built(&["cc", "-O1"], "waits.c", &waits).then_some(AttackFolder { folder, attacker, waits })
}

/// Duration of the attack in seconds; `make soak` raises it.
fn seconds() -> f64 {
    let asked = std::env::var("ETHERMEM_ATTACK_S").ok().and_then(|text| text.parse().ok());
    asked.unwrap_or(rounds() as f64)
}

impl AttackFolder {
    fn end(&self) -> PathBuf {
        self.folder.path().join("end")
    }

    /// Starts the measuring program under a pager, with a quarter of its memory local.
    fn program(&self, more: &[&str]) -> Child {
        let mut command = Command::new(example("limit"));
        command.args(["4", text(&self.waits), text(&self.end())]).args(more);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
    }

    fn attack(&self, seconds: f64, more: &[&str]) -> Child {
        let mut command = Command::new(&self.attacker);
        command.arg(seconds.to_string()).args(more).uid(NOBODY).gid(NOBODY);
        command.stdout(Stdio::piped()).spawn().expect("it starts")
    }
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// Output of a process that has ended. A process that hangs is a failure.
fn ended(mut child: Child, what: &str) -> Output {
    let began = Instant::now();
    while child.try_wait().expect("waited").is_none() {
        if began.elapsed() > HANG {
            child.kill().expect("killed");
            panic!("{what} hangs");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("its output")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn strangers_read_nothing_end_nothing_and_stop_nothing() {
    let Some(place) = place() else { return };
    let mut bystander = Command::new("sleep").arg("3600").spawn().expect("it starts");
    let program = place.program(&[]);
    std::thread::sleep(Duration::from_millis(300));
    let attackers = [
        place.attack(seconds(), &[]),
        place.attack(seconds(), &[]),
        place.attack(seconds(), &["--silent"]),
    ];
    std::thread::sleep(Duration::from_secs_f64(seconds()));
    for attacker in attackers {
        let attacker = ended(attacker, "an attacker");
        println!("attacker: {}", said(&attacker).trim());
        assert!(attacker.status.success(), "{}", said(&attacker));
        assert!(!said(&attacker).contains("connections 0 "), "it reached a pager");
    }
    std::fs::write(place.end(), "").expect("written");
    let program = ended(program, "the program");
    println!("attacked from outside: {}", said(&program).trim());
    assert!(program.status.success() && said(&program).contains("clean"), "{}", said(&program));
    assert!(bystander.try_wait().expect("waited").is_none(), "a bystander was ended");
    bystander.kill().expect("killed");
    bystander.wait().expect("ended");
}

/// A descendant's messages about itself may be accepted: it can harm only itself.
#[test]
fn a_descendant_that_lies_harms_itself_alone() {
    let Some(place) = place() else { return };
    let mut bystander = Command::new("sleep").arg("3600").spawn().expect("it starts");
    let attack = seconds().to_string();
    let program = place.program(&[text(&place.attacker), &attack]);
    let silent = place.program(&[text(&place.attacker), &attack, "--silent"]);
    std::thread::sleep(Duration::from_secs_f64(seconds() + 0.3));
    std::fs::write(place.end(), "").expect("written");
    for program in [program, silent] {
        let program = ended(program, "the program");
        println!("attacked by a descendant: {}", said(&program).trim());
        assert!(program.status.success() && said(&program).contains("clean"), "{}", said(&program));
    }
    assert!(bystander.try_wait().expect("waited").is_none(), "a bystander was ended");
    bystander.kill().expect("killed");
    bystander.wait().expect("ended");
}
