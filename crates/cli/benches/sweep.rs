//! Measures what a second core brings to `ethermem sweep`: `cargo bench -p ethermem-cli`.
//!
//! One thread and two take turns on the same points, so that what else runs on the machine falls on
//! both; each turn is a process of its own, and its journal and results are new. The median of the
//! ratios of a turn counts, where the machine was ours: on cores that others use too, two threads
//! get less than two cores, and the ratio says nothing of the sweep.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

/// Turns of one thread and two.
const TURNS: usize = 5;
/// What two cores should bring.
const TARGET: f64 = 1.9;
/// A run that had less of the cores that it asked for shared them.
const CORES_SHARE_MIN: f64 = 0.97;
/// Linux counts the time of processes in ticks, a hundred to the second.
const TICKS_PER_S: f64 = 100.0;

const BASE: &str = "[workload]\nmessages = 100000\n";
const SWEEP: &str = "scenario = 'base.toml'\nseeds = 4\n[vary]\n\
                     workload.load = {from = 0.3, to = 0.8, steps = 6}\n";

/// What one call took.
struct Sample {
    wall_s: f64,
    /// Time on cores, of all its threads; `None` where the system does not say.
    cores_s: Option<f64>,
}

impl Sample {
    /// Cores that it had, in the mean over its time.
    fn cores(&self) -> Option<f64> {
        self.cores_s.map(|cores_s| cores_s / self.wall_s)
    }
}

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder for the results");
    fs::write(folder.path().join("base.toml"), BASE).expect("a scenario fits");
    fs::write(folder.path().join("sweep.toml"), SWEEP).expect("a sweep fits");
    let (mut ratios, mut shared) = (Vec::new(), 0);
    for turn in 1..=TURNS {
        let [one, two] = [1, 2].map(|threads| sweep(folder.path(), threads));
        let had = |sample: &Sample, asked: f64| {
            sample.cores().is_some_and(|cores| cores < CORES_SHARE_MIN * asked)
        };
        let is_shared = had(&one, 1.0) || had(&two, 2.0);
        shared += usize::from(is_shared);
        ratios.push(one.wall_s / two.wall_s);
        let shown =
            |cores: Option<f64>| cores.map_or("?".to_owned(), |cores| format!("{cores:.2}"));
        println!(
            "turn {turn}: one thread {:.2} s on {} cores, two {:.2} s on {} cores: {:.3} times as \
             fast{}",
            one.wall_s,
            shown(one.cores()),
            two.wall_s,
            shown(two.cores()),
            one.wall_s / two.wall_s,
            if is_shared { ", on cores that others used too" } else { "" }
        );
    }
    ratios.sort_by(f64::total_cmp);
    let median = ratios[TURNS / 2];
    let spread = format!("{:.3} to {:.3}", ratios[0], ratios[TURNS - 1]);
    let verdict = match (median >= TARGET, shared * 2 > TURNS) {
        (true, _) => "met",
        (false, true) => "not known: the machine was shared",
        (false, false) => "missed",
    };
    println!(
        "a sweep over two cores: {median:.3} times as fast ({spread}), asked {TARGET}: {verdict}"
    );
    ExitCode::SUCCESS
}

/// Runs the whole sweep anew on so many threads.
fn sweep(folder: &Path, threads: u8) -> Sample {
    for name in ["r.parquet", "r.parquet.journal"] {
        // The first call finds none.
        let _ = fs::remove_file(folder.join(name));
    }
    let started = Instant::now();
    let cores_before = children_s();
    let ended = Command::new(env!("CARGO_BIN_EXE_ethermem"))
        .args(["sweep", "sweep.toml", "--out", "r.parquet", "--threads", &threads.to_string()])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("the command starts");
    let wall_s = started.elapsed().as_secs_f64();
    assert!(ended.success(), "the sweep failed: {ended}");
    let cores_s = children_s().zip(cores_before).map(|(after, before)| after - before);
    Sample { wall_s, cores_s }
}

/// How long all children that have ended were on cores, as Linux says it.
fn children_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the program's name, which may have spaces, the first field is the third.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / TICKS_PER_S)
}
