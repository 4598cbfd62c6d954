//! `ethermem rtl ycsb`: operations of a key-value store on the compiled hardware, beside the same
//! on the simulator's EDM.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use ethermem_bench::Draws;
use ethermem_bench::ycsb::{Action, LOCAL_LATENCY, ScrambledZipfian, Workload};
use ethermem_sim::output::{TableStyle, TextTable};
use ethermem_sim::registry::{self, FABRIC_NAMES};
use ethermem_sim::scenario::{Changes, Scenario};
use ethermem_sim::{FabricConfig, Kind};
use ethermem_units::Bytes;
use serde::Serialize;

use super::flow::{Flow, Measured, waves_file};
use super::stages::ns;
use crate::failure::Failure;
use crate::latency::link_setting;
use crate::output::Format;
use crate::value::bytes_in;

/// [`LOCAL_LATENCY`] in cycles of 2.56 ns.
const DRAM_CYCLES: &str = "32";
const MEMORY_BYTES: u64 = 1 << 20;
/// Records begin at a multiple of the longest.
const RECORD_BYTES: u64 = 1024;

#[derive(Args)]
#[command(after_help = "Examples:\n  \
    ethermem rtl ycsb --workload A --remote-share 0.5\n  \
    ethermem rtl ycsb --workload B --clients 8 --operations 20000 --format json\n  \
    ethermem rtl ycsb --workload F --operations 20 --fst waves.fst\n\
    \n\
    A compute node, a switch and a memory node run as compiled RTL at 25 Gb/s, joined by lines as\n\
    long as those of the published testbed; records are drawn as YCSB's zipfian. A read ends with\n\
    its last byte, a write when memory has it. Local operations take the DRAM's 82 ns. Beside\n\
    each is the same message on the simulator's EDM, alone: with several clients the difference\n\
    is what they wait for each other. The first run compiles the model, which takes minutes. It\n\
    runs in the repository and needs its tools (rtl/README.md).")]
pub(crate) struct Arguments {
    /// Core workload: A, B, C or F
    #[arg(long, value_name = "NAME", value_parser = workload)]
    workload: Workload,

    /// Share of the operations that go to the memory node
    #[arg(long, value_name = "SHARE", default_value = "1", value_parser = share)]
    remote_share: f64,

    /// Operations, local ones included
    #[arg(long, value_name = "COUNT", default_value = "2000",
          value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    operations: u64,

    /// Remote operations under way at a time
    #[arg(long, value_name = "COUNT", default_value = "1",
          value_parser = clap::value_parser!(u64).range(1..=16))]
    clients: u64,

    /// Bytes that a read brings
    #[arg(long, value_name = "BYTES", default_value = "1024",
          value_parser = bytes_in(1..=RECORD_BYTES))]
    read_bytes: u64,

    /// Bytes that a write carries
    #[arg(long, value_name = "BYTES", default_value = "100",
          value_parser = bytes_in(1..=RECORD_BYTES))]
    write_bytes: u64,

    /// Seed of the operations
    #[arg(long, value_name = "SEED", default_value = "1")]
    seed: u64,

    /// The repository, if it is not the working directory or above it
    #[arg(long, value_name = "FOLDER")]
    rtl: Option<PathBuf>,

    /// Write the waves of all of it to a file, in FST; the first run with waves builds a model of
    /// its own
    #[arg(long, value_name = "FILE")]
    fst: Option<PathBuf>,

    /// How to print the result
    #[arg(long, value_name = "FORMAT", default_value = "table")]
    format: Format,
}

/// What is printed.
#[derive(Debug, Serialize)]
struct Outcome {
    workload: &'static str,
    remote_share: f64,
    operations: u64,
    clients: u64,
    seed: u64,
    /// Cycles of 2.56 ns that the hardware ran.
    cycles: u64,
    /// Remote requests a second: reads and writes.
    requests_per_s: f64,
    remote: Vec<Kinds>,
    /// Over local and remote requests.
    mean_ns: f64,
    simulator_mean_ns: f64,
    difference_percent: f64,
}

/// Remote requests of a kind, with the DRAM.
#[derive(Debug, Serialize)]
struct Kinds {
    kind: &'static str,
    bytes: u64,
    requests: u64,
    mean_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
    /// The simulator's EDM, alone in the network, and the same DRAM.
    simulator_ns: f64,
    difference_percent: f64,
}

/// What the hardware is to do, and what stays local.
struct Stream {
    lines: String,
    local: u64,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let stream = Stream::of(arguments);
    let changes = Changes { settings: vec![link_setting(25)], trace: None };
    let config = Scenario::default_with(&changes, FABRIC_NAMES)?.fabric;
    let flow = Flow::find(arguments.rtl.as_deref())?;
    let waves = waves_file(arguments.fst.as_deref())?;
    let clients = arguments.clients.to_string();
    let words = ["ycsb", &clients, DRAM_CYCLES];
    let measured = flow.run(&words, &stream.lines, waves.as_deref())?;
    let outcome = Outcome::of(arguments, &stream, &measured, &config)?;
    arguments.format.print(&outcome, Outcome::table)
}

impl Stream {
    fn of(arguments: &Arguments) -> Stream {
        let mut draws = Draws::new(arguments.seed, 0);
        let mut records = ScrambledZipfian::new(MEMORY_BYTES / RECORD_BYTES);
        let read = ("read", arguments.read_bytes);
        let write = ("write", arguments.write_bytes);
        let mut stream = Stream { lines: String::new(), local: 0 };
        for _ in 0..arguments.operations {
            let action = arguments.workload.next(&mut draws);
            let remote = draws.unit() < arguments.remote_share;
            let address = records.next(&mut draws) * RECORD_BYTES;
            let requests: &[(&str, u64)] = match action {
                Action::Read => &[read],
                Action::Update => &[write],
                Action::ReadModifyWrite => &[read, write],
                Action::Insert | Action::Scan => unreachable!("{action:?} in A, B, C or F"),
            };
            for (name, bytes) in requests {
                if remote {
                    writeln!(stream.lines, "{name} {bytes} {address}").expect("it is in memory");
                } else {
                    stream.local += 1;
                }
            }
        }
        stream
    }
}

impl Outcome {
    fn of(
        arguments: &Arguments,
        stream: &Stream,
        measured: &Measured,
        config: &FabricConfig,
    ) -> Result<Outcome, Failure> {
        let kinds = [
            Kinds::of("read", Kind::Read, arguments.read_bytes, measured, config)?,
            Kinds::of("write", Kind::Write, arguments.write_bytes, measured, config)?,
        ];
        let remote: Vec<Kinds> = kinds.into_iter().filter(|kind| kind.requests > 0).collect();
        let requests: u64 = remote.iter().map(|kind| kind.requests).sum();
        let mean = |of: fn(&Kinds) -> f64| {
            let sum: f64 = remote.iter().map(|kind| of(kind) * kind.requests as f64).sum();
            (sum + LOCAL_LATENCY.as_ns_f64() * stream.local as f64)
                / (requests + stream.local) as f64
        };
        let (mean_ns, simulator_mean_ns) =
            (mean(|kind| kind.mean_ns), mean(|kind| kind.simulator_ns));
        let cycles = measured.get("cycles")?;
        Ok(Outcome {
            workload: arguments.workload.name(),
            remote_share: arguments.remote_share,
            operations: arguments.operations,
            clients: arguments.clients,
            seed: arguments.seed,
            cycles,
            requests_per_s: if cycles == 0 { 0.0 } else { requests as f64 / ns(cycles) * 1e9 },
            mean_ns,
            simulator_mean_ns,
            difference_percent: percent(mean_ns, simulator_mean_ns),
            remote,
        })
    }

    fn table(&self, style: TableStyle) -> String {
        let number = |value: f64| format!("{value:.2}");
        let mut rows: Vec<Vec<String>> = self
            .remote
            .iter()
            .map(|kind| {
                let mut row = vec![format!("remote {}", kind.kind)];
                row.extend([kind.bytes.to_string(), kind.requests.to_string()]);
                row.extend([kind.mean_ns, kind.p50_ns, kind.p99_ns, kind.simulator_ns].map(number));
                row.push(format!("{:+.2}", kind.difference_percent));
                row
            })
            .collect();
        let mut all = vec!["all, with local".to_owned(), String::new(), String::new()];
        all.extend([number(self.mean_ns), String::new(), String::new()]);
        all.push(number(self.simulator_mean_ns));
        all.push(format!("{:+.2}", self.difference_percent));
        rows.push(all);
        let header =
            ["requests", "bytes", "count", "mean ns", "p50 ns", "p99 ns", "alone ns", "diff %"];
        let table = TextTable { header: &header, text_columns: &[0], optional_columns: &[], rows };
        let Outcome { workload, remote_share, clients, seed, cycles, .. } = self;
        format!(
            "YCSB {workload}, remote share {remote_share}, {clients} at a time, seed {seed}: \
             {cycles} cycles of 2.56 ns, {:.3} million remote requests/s\n{}",
            self.requests_per_s / 1e6,
            table.render(style)
        )
    }
}

impl Kinds {
    fn of(
        kind: &'static str,
        of: Kind,
        bytes: u64,
        measured: &Measured,
        config: &FabricConfig,
    ) -> Result<Kinds, Failure> {
        let get = |what: &str| measured.get(&format!("{kind}{what}"));
        let requests = get("s")?;
        // The DRAM of a read is in its way; that of a write comes behind its last word.
        let dram_ns = if of == Kind::Write { LOCAL_LATENCY.as_ns_f64() } else { 0.0 };
        let edm = registry::find("edm").expect("a fabric of the simulator");
        let simulator_ns =
            (edm.alone)(config, of, Bytes(bytes)).as_ns_f64() + LOCAL_LATENCY.as_ns_f64();
        let mean_ns = ns(get("_cycles_sum")?) / requests.max(1) as f64 + dram_ns;
        Ok(Kinds {
            kind,
            bytes,
            requests,
            mean_ns,
            p50_ns: ns(get("_cycles_p50")?) + dram_ns,
            p99_ns: ns(get("_cycles_p99")?) + dram_ns,
            simulator_ns,
            difference_percent: percent(mean_ns, simulator_ns),
        })
    }
}

fn percent(measured: f64, expected: f64) -> f64 {
    (measured / expected - 1.0) * 100.0
}

/// Those without inserts and scans: the records are words of a memory.
fn workload(text: &str) -> Result<Workload, String> {
    let allowed = [Workload::A, Workload::B, Workload::C, Workload::F];
    let found = text.parse().ok().filter(|workload| allowed.contains(workload));
    found.ok_or_else(|| "allowed are A, B, C and F".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "allowed is 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn stream(words: &[&str]) -> Stream {
        let line = Line::try_parse_from(["rtl"].iter().chain(words)).unwrap();
        Stream::of(&line.arguments)
    }

    fn count(stream: &Stream, kind: &str) -> usize {
        stream.lines.lines().filter(|line| line.starts_with(kind)).count()
    }

    #[test]
    fn the_mixes_are_those_of_the_workloads() {
        let many = ["--operations", "20000", "--workload"];
        for (workload, writes) in [("A", 0.5), ("B", 0.05), ("F", 1.0 / 3.0)] {
            let stream = stream(&[&many[..], &[workload]].concat());
            let (read, write) = (count(&stream, "read"), count(&stream, "write"));
            let share = write as f64 / (read + write) as f64;
            // Five standard deviations.
            assert!((share - writes).abs() < 5.0 * 0.5 / f64::sqrt(20_000.0), "{workload} {share}");
        }
    }

    #[test]
    fn the_share_that_is_not_remote_stays_local() {
        let words = ["--workload", "A", "--operations", "1000", "--remote-share"];
        let none = stream(&[&words[..], &["0"]].concat());
        assert_eq!((none.local, none.lines.len()), (1000, 0));
        let half = stream(&[&words[..], &["0.5"]].concat());
        assert_eq!(half.local + half.lines.lines().count() as u64, 1000);
        assert!((400..600).contains(&half.local));
    }

    #[test]
    fn a_seed_repeats_the_operations_and_another_does_not() {
        let of = |seed| stream(&["--workload", "F", "--seed", seed]).lines;
        assert_eq!(of("7"), of("7"));
        assert_ne!(of("7"), of("8"));
    }
}
