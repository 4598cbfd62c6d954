//! Measures one connection between unmodified programs of two racks over all NICs, beside kernel
//! MPTCP over the same links and one kernel TCP, in the same run:
//!
//! ```text
//! cargo bench -p ethermem-rack --bench nics -- [MBIT [RUNS]]
//! ```
//!
//! The links, the programs and the times are those of `ethermem-udp`'s measurement `paths`. It
//! needs root, `ip`, `tc` and `python3`.

#[path = "../../../udp/benches/paths/links.rs"]
mod links;
#[path = "../../../udp/benches/paths/namespace.rs"]
mod namespace;
#[path = "../../../udp/benches/paths/streams.rs"]
mod streams;

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use ethermem_rack::Config;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use links::{KILL_RUN, KILLED, LINKS, Links, RESTORED, RUN, Received, WARM_UP, cell, median};

/// Rate of a whole link in Mb/s, and number of runs, unless the command says otherwise.
const MBIT: u64 = 1000;
const RUNS: usize = 5;
/// The sides, as `links` names them: of the client and of the node.
const SIDES: [&str; 2] = ["c", "n"];

/// The files of both racks, and the processes of their NICs.
struct Racks {
    files: [PathBuf; 2],
    processes: Vec<Child>,
    _folder: tempfile::TempDir,
}

impl Drop for Racks {
    fn drop(&mut self) {
        for process in &mut self.processes {
            // A launcher ends its program first.
            let _ = kill(Pid::from_raw(process.id() as i32), Signal::SIGTERM);
            let _ = process.wait();
        }
    }
}

fn own() -> PathBuf {
    std::env::current_exe().expect("this program")
}

impl Racks {
    /// The first `count` links join two racks; `how` is `serve`, or `inside` for programs' hops in
    /// memory.
    fn new(links: &Links, count: usize, how: &str) -> Racks {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [0, 1].map(|rack| folder.path().join(format!("{rack}.toml")));
        let name = |rack: usize| format!("bench-{}-{}", SIDES[rack], std::process::id());
        for (rack, file) in files.iter().enumerate() {
            let (own, other) = (rack + 1, 2 - rack);
            let list = |of: &dyn Fn(usize) -> String| {
                (0..count).map(|link| format!("\"{}\"", of(link))).collect::<Vec<_>>().join(",")
            };
            let text = format!(
                "name = \"{}\"\n[[node]]\nname = \"n\"\naddress = \"10.77.0.{own}\"\nnics = [{}]\n\
                 [[rack]]\nname = \"{}\"\nprograms = [\"10.77.0.{other}\"]\nnics = [{}]\n",
                name(rack),
                list(&|link| format!("{}{link}", SIDES[rack])),
                name(1 - rack),
                list(&|link| format!("10.77.{link}.{other}")),
            );
            std::fs::write(file, text).expect("a file");
        }
        let spaces = [&links.client, &links.node];
        let mut processes = Vec::new();
        for rack in [1, 0] {
            let mut command = Command::new(own());
            command.arg(how).arg(&files[rack]).stderr(Stdio::piped());
            let mut process = spaces[rack].enter(|| command.spawn()).expect("a process");
            let errors = BufReader::new(process.stderr.take().expect("its errors"));
            let mut used = errors.lines().map_while(Result::ok);
            if rack == 0 {
                // Each rack has a session of its own.
                let up = used.by_ref().filter(|line| line.contains("is used"));
                assert_eq!(up.take(2 * count).count(), 2 * count, "all NICs are used");
            }
            std::thread::spawn(move || used.for_each(drop));
            processes.push(process);
        }
        Racks { files, processes, _folder: folder }
    }

    fn receive(&self, links: &Links, time: Duration) -> Option<Received> {
        let [client, node] = [0, 1].map(|rack| -> Vec<OsString> {
            vec![own().into(), "run".into(), self.files[rack].clone().into()]
        });
        streams::tcp(links, [&node, &client], time)
    }
}

/// A way of a stream over the first links.
type Way<'a> = (&'a str, Box<dyn Fn(usize, Duration) -> Option<Received> + Sync + 'a>);

fn ways(links: &Links) -> Vec<Way<'_>> {
    let ours =
        |how: &'static str| move |count, time| Racks::new(links, count, how).receive(links, time);
    vec![
        ("ours", Box::new(ours("serve"))),
        ("ours, hops in memory", Box::new(ours("inside"))),
        ("kernel MPTCP", Box::new(|count, time| streams::mptcp(links, count, time))),
    ]
}

fn throughput(links: &Links, mbit: u64, runs: usize) {
    let ways = ways(links);
    let names: Vec<&str> = ways.iter().map(|way| way.0).collect();
    println!(
        "| links | sum, Mb/s | one kernel TCP | {} | best of ours over MPTCP |",
        names.join(" | ")
    );
    println!("|---|---|---|{}---|", "---|".repeat(names.len()));
    let (half, quarter) = (mbit / 2, mbit / 4);
    for rates in [[mbit, mbit, mbit, mbit], [mbit, mbit, half, quarter]] {
        links.limit(&rates);
        let mut alone = Vec::new();
        let mut all = vec![Vec::new(); ways.len()];
        for _ in 0..runs {
            alone.extend(streams::tcp(links, [&[], &[]], RUN).map(|it| it.mbit(WARM_UP, RUN)));
            for (way, values) in ways.iter().zip(&mut all) {
                let received = way.1(LINKS, RUN);
                assert!(received.iter().all(|it| it.wrong == 0), "{}: wrong bytes", way.0);
                values.extend(received.map(|it| it.mbit(WARM_UP, RUN)));
            }
        }
        let over = (0..2).map(|it| median(&all[it]).0 / median(&all[2]).0).fold(0.0, f64::max);
        let cells: Vec<String> = all.iter().map(|values| cell(values)).collect();
        let sum: u64 = rates.iter().sum();
        println!("| {rates:?} | {sum} | {} | {} | {over:.2} |", cell(&alone), cells.join(" | "));
    }
}

fn killed(links: &Links, mbit: u64, runs: usize) {
    links.limit(&[mbit; LINKS]);
    println!(
        "\n| the last of four links killed | wrong bytes | dip, ms | Mb/s before, without, after |"
    );
    println!("|---|---|---|---|");
    for (name, receive) in ways(links) {
        let mut all = Vec::new();
        for _ in 0..runs {
            all.extend(std::thread::scope(|scope| {
                let receives = scope.spawn(|| receive(LINKS, KILL_RUN));
                links.kill();
                receives.join().expect("it receives")
            }));
        }
        let of = |value: &dyn Fn(&Received) -> f64| all.iter().map(value).collect::<Vec<_>>();
        let rate = |from, to| cell(&of(&|run| run.mbit(from, to)));
        let settle = Duration::from_millis(500);
        let dips = of(&|run| run.dip_ms(run.mbit(KILLED + settle, RESTORED)) as f64);
        let wrong: u64 = all.iter().map(|run| run.wrong).sum();
        println!(
            "| {name} | {wrong} | {} | {}, {}, {} |",
            cell(&dips),
            rate(WARM_UP, KILLED),
            rate(KILLED + settle, RESTORED),
            rate(RESTORED + settle, KILL_RUN),
        );
    }
}

/// The roles of the programs that this one starts.
fn role(words: &[OsString]) -> Option<ExitCode> {
    let config = || Config::read(Path::new(&words[2])).expect("a rack's file");
    let (report, status) = match words.get(1)?.to_str()? {
        "serve" => {
            let stop = AtomicBool::new(false);
            let mut tell = |notice| eprintln!("{notice}");
            ethermem_rack::nics::serve(&config(), &stop, &mut tell).expect("it serves");
            return Some(ExitCode::SUCCESS);
        }
        "inside" => {
            let config = Config { others: Vec::new(), ..config() };
            ethermem_rack::run(&config, &[own().into(), "serve".into(), words[2].clone()])
        }
        "run" => ethermem_rack::run(&config(), &words[3..]),
        _ => return None,
    }
    .expect("it runs");
    // The kernel must not have carried what is measured.
    assert_eq!(report.not_by_nics, 0, "{report:?}");
    Some(ExitCode::from(u8::from(!status.success())))
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = role(&words) {
        return code;
    }
    let numbers = words.iter().filter_map(|word| word.to_str()?.parse::<u64>().ok());
    let numbers: Vec<u64> = numbers.collect();
    let mbit = numbers.first().copied().unwrap_or(MBIT);
    let runs = numbers.get(1).map_or(RUNS, |&runs| runs as usize);
    let Some(links) = Links::new() else {
        println!("SKIPPED: NICs of racks beside MPTCP: network namespaces need root");
        return ExitCode::SUCCESS;
    };
    [&links.client, &links.node].into_iter().for_each(|it| it.ip("link set lo up"));
    println!("Links of {mbit} Mb/s, MTU 1500, {runs} runs: median (least to most)\n");
    throughput(&links, mbit, runs);
    killed(&links, mbit, runs);
    ExitCode::SUCCESS
}
