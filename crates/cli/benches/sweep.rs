//! Measures the gain of a second core for `ethermem sweep`: `cargo bench -p ethermem-cli`.
//!
//! One thread, two threads, and two processes of one thread with half of the points each,
//! alternate, so that other load of the machine affects all of them. Results and journals are new
//! each time. The two processes share only the machine: their gain over one process is all that its
//! second core can give, and stands beside the target. The result is the median of the turns'
//! ratios, if the machine was otherwise idle. On shared cores two threads get less than two cores,
//! and the ratio does not describe the sweep.

use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;
use std::{fmt, fs};

/// Number of turns of one thread and two.
const TURNS: usize = 7;
/// Speed-up that two cores should give.
const TARGET: f64 = 1.9;
/// A run that had a smaller fraction of its requested cores shared them.
const CORES_SHARE_MIN: f64 = 0.97;
/// Linux counts the time of processes in ticks, a hundred per second.
const TICKS_PER_S: f64 = 100.0;

const BASE: &str = "[workload]\nmessages = 100000\n";
/// With six loads this makes 96 points, so that the last one, which runs alone, is a small part.
/// All are in one process, or half of them in each of two.
const SEEDS: usize = 16;

/// Measurements of one call.
struct Sample {
    wall_s: f64,
    /// Processor time of all its threads in seconds; `None` if the system does not provide it.
    cores_s: Option<f64>,
}

impl Sample {
    /// Mean number of cores that it had.
    fn cores(&self) -> Option<f64> {
        self.cores_s.map(|cores_s| cores_s / self.wall_s)
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = self.cores().map_or("?".to_owned(), |cores| format!("{cores:.2}"));
        write!(f, "{:.2} s on {cores} cores", self.wall_s)
    }
}

/// Speed-ups by the second core, in all turns.
struct Ratios(Vec<f64>);

impl Ratios {
    fn median(&mut self) -> f64 {
        self.0.sort_by(f64::total_cmp);
        self.0[self.0.len() / 2]
    }

    fn shown(&mut self) -> String {
        let median = self.median();
        format!("{median:.3} times as fast ({:.3} to {:.3})", self.0[0], self.0[self.0.len() - 1])
    }
}

fn main() -> ExitCode {
    let folder = tempfile::tempdir().expect("a folder for the results");
    fs::write(folder.path().join("base.toml"), BASE).expect("a scenario fits");
    let (mut threads, mut processes, mut shared) = (Ratios(vec![]), Ratios(vec![]), 0);
    for turn in 1..=TURNS {
        let [one, two, apart] =
            [(1, 1), (1, 2), (2, 1)].map(|(parts, threads)| sweep(folder.path(), parts, threads));
        let had = |sample: &Sample, asked: f64| {
            sample.cores().is_some_and(|cores| cores < CORES_SHARE_MIN * asked)
        };
        let is_shared = had(&one, 1.0) || had(&two, 2.0);
        shared += usize::from(is_shared);
        threads.0.push(one.wall_s / two.wall_s);
        processes.0.push(one.wall_s / apart.wall_s);
        println!(
            "turn {turn}: one thread {one}; two {two}: {:.3} times as fast; two processes {apart}: \
             {:.3} times{}",
            one.wall_s / two.wall_s,
            one.wall_s / apart.wall_s,
            if is_shared { "; on cores that others used too" } else { "" }
        );
    }
    let verdict = match (threads.median() >= TARGET, shared * 2 > TURNS) {
        (true, _) => "met",
        (false, true) => "not known: the machine was shared",
        (false, false) => "missed",
    };
    println!("a sweep over two cores: {}, asked {TARGET}: {verdict}", threads.shown());
    println!("two processes that share nothing: {}", processes.shown());
    println!("the sweep has {:.3} of that", threads.median() / processes.median());
    ExitCode::SUCCESS
}

/// Runs the whole sweep from the start, in `processes` processes of `threads` threads.
fn sweep(folder: &Path, processes: usize, threads: usize) -> Sample {
    let sweep = format!(
        "scenario = 'base.toml'\nseeds = {}\n[vary]\n\
         workload.load = {{from = 0.3, to = 0.8, steps = 6}}\n",
        SEEDS / processes
    );
    fs::write(folder.join("sweep.toml"), sweep).expect("a sweep fits");
    let outs: Vec<String> = (0..processes).map(|process| format!("{process}.parquet")).collect();
    for out in &outs {
        for name in [out.clone(), format!("{out}.journal")] {
            // Before the first call the files do not exist.
            let _ = fs::remove_file(folder.join(name));
        }
    }
    let started = Instant::now();
    let cores_before = children_s();
    let start = |out| {
        Command::new(env!("CARGO_BIN_EXE_ethermem"))
            .args(["sweep", "sweep.toml", "--out", out, "--threads", &threads.to_string()])
            .current_dir(folder)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the command starts")
    };
    let children: Vec<Child> = outs.iter().map(|out| start(out)).collect();
    for mut child in children {
        let ended = child.wait().expect("it is a child");
        assert!(ended.success(), "the sweep failed: {ended}");
    }
    let wall_s = started.elapsed().as_secs_f64();
    let cores_s = children_s().zip(cores_before).map(|(after, before)| after - before);
    Sample { wall_s, cores_s }
}

/// Processor time of all ended children in seconds, from Linux.
fn children_s() -> Option<f64> {
    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // Behind the program's name, which may contain spaces, the first field is number 3.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |field: usize| fields.get(field - 3)?.parse::<f64>().ok();
    Some((ticks(16)? + ticks(17)?) / TICKS_PER_S)
}
