//! Operations of a key-value store on the compiled hardware, beside equal operations on the
//! simulator's EDM.

use std::fmt::Write as _;
use std::path::PathBuf;

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
use crate::error::Error;
use crate::latency::link_setting;

/// [`LOCAL_LATENCY`] in cycles of 2.56 ns.
const DRAM_CYCLES: &str = "32";
const MEMORY_BYTES: u64 = 1 << 20;
/// Alignment of records in bytes: the longest record.
pub const RECORD_BYTES: u64 = 1024;
/// Workloads without inserts and scans, because the records are words of a memory.
pub const WORKLOADS: [Workload; 4] = [Workload::A, Workload::B, Workload::C, Workload::F];

/// Operations for the hardware.
#[derive(Clone, Debug)]
pub struct Request {
    /// One of [`WORKLOADS`].
    pub workload: Workload,
    /// Fraction of the operations that go to the memory node.
    pub remote_share: f64,
    /// Number of operations, including local ones.
    pub operations: u64,
    /// Number of remote operations in flight.
    pub clients: u64,
    /// Length of a read in bytes.
    pub read_bytes: u64,
    /// Length of a write in bytes.
    pub write_bytes: u64,
    /// Seed of the operations.
    pub seed: u64,
    /// Path of the repository; `None` if it is the working directory or above it.
    pub rtl: Option<PathBuf>,
    /// File for the waves.
    pub fst: Option<PathBuf>,
}

/// Results of the hardware and the simulator.
#[derive(Debug, Serialize)]
pub struct Outcome {
    workload: &'static str,
    remote_share: f64,
    operations: u64,
    clients: u64,
    seed: u64,
    /// Number of cycles of 2.56 ns that the hardware ran.
    cycles: u64,
    /// Remote requests per second: reads and writes.
    requests_per_s: f64,
    remote: Vec<Kinds>,
    /// Mean over local and remote requests in ns.
    mean_ns: f64,
    simulator_mean_ns: f64,
    difference_percent: f64,
}

/// Remote requests of one kind, including DRAM time.
#[derive(Debug, Serialize)]
struct Kinds {
    kind: &'static str,
    bytes: u64,
    requests: u64,
    mean_ns: f64,
    p50_ns: f64,
    p99_ns: f64,
    /// Latency on the simulator's EDM, unloaded, with an equal DRAM, in ns.
    simulator_ns: f64,
    difference_percent: f64,
}

/// Operations for the hardware, and the local ones.
struct Stream {
    lines: String,
    local: u64,
}

impl Request {
    /// Runs the operations. The first run compiles the model.
    ///
    /// # Errors
    ///
    /// When the repository is not found, or when the model does not run.
    pub fn run(&self) -> Result<Outcome, Error> {
        let stream = Stream::of(self);
        let changes = Changes { settings: vec![link_setting(25)], trace: None };
        let config = Scenario::default_with(&changes, FABRIC_NAMES)?.fabric;
        let flow = Flow::find(self.rtl.as_deref())?;
        let waves = waves_file(self.fst.as_deref())?;
        let clients = self.clients.to_string();
        let words = ["ycsb", &clients, DRAM_CYCLES];
        let measured = flow.run(&words, &stream.lines, waves.as_deref())?;
        Outcome::of(self, &stream, &measured, &config)
    }
}

impl Stream {
    fn of(request: &Request) -> Stream {
        let mut draws = Draws::new(request.seed, 0);
        let mut records = ScrambledZipfian::new(MEMORY_BYTES / RECORD_BYTES);
        let read = ("read", request.read_bytes);
        let write = ("write", request.write_bytes);
        let mut stream = Stream { lines: String::new(), local: 0 };
        for _ in 0..request.operations {
            let action = request.workload.next(&mut draws);
            let remote = draws.unit() < request.remote_share;
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
        request: &Request,
        stream: &Stream,
        measured: &Measured,
        config: &FabricConfig,
    ) -> Result<Outcome, Error> {
        let kinds = [
            Kinds::of("read", Kind::Read, request.read_bytes, measured, config)?,
            Kinds::of("write", Kind::Write, request.write_bytes, measured, config)?,
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
            workload: request.workload.name(),
            remote_share: request.remote_share,
            operations: request.operations,
            clients: request.clients,
            seed: request.seed,
            cycles,
            requests_per_s: if cycles == 0 { 0.0 } else { requests as f64 / ns(cycles) * 1e9 },
            mean_ns,
            simulator_mean_ns,
            difference_percent: percent(mean_ns, simulator_mean_ns),
            remote,
        })
    }

    /// The requests for people.
    #[must_use]
    pub fn table(&self, style: TableStyle) -> String {
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
    ) -> Result<Kinds, Error> {
        let get = |what: &str| measured.get(&format!("{kind}{what}"));
        let requests = get("s")?;
        // The DRAM time of a read is on its path; for a write it follows the last word.
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

/// The workload with this name.
///
/// # Errors
///
/// One line with what is allowed.
pub fn workload(text: &str) -> Result<Workload, String> {
    let found = text.parse().ok().filter(|workload| WORKLOADS.contains(workload));
    found.ok_or_else(|| "must be A, B, C and F".to_owned())
}

/// Parses a fraction from 0 to 1.
///
/// # Errors
///
/// One line with what is allowed.
pub fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "must be 0 to 1".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(workload: Workload, operations: u64, remote_share: f64, seed: u64) -> Stream {
        Stream::of(&Request {
            workload,
            remote_share,
            operations,
            clients: 1,
            read_bytes: 1024,
            write_bytes: 100,
            seed,
            rtl: None,
            fst: None,
        })
    }

    fn count(stream: &Stream, kind: &str) -> usize {
        stream.lines.lines().filter(|line| line.starts_with(kind)).count()
    }

    #[test]
    fn the_mixes_are_those_of_the_workloads() {
        let mixes = [(Workload::A, 0.5), (Workload::B, 0.05), (Workload::F, 1.0 / 3.0)];
        for (workload, writes) in mixes {
            let stream = stream(workload, 20_000, 1.0, 1);
            let (read, write) = (count(&stream, "read"), count(&stream, "write"));
            let share = write as f64 / (read + write) as f64;
            // Five standard deviations.
            assert!((share - writes).abs() < 5.0 * 0.5 / f64::sqrt(20_000.0), "{workload} {share}");
        }
    }

    #[test]
    fn the_share_that_is_not_remote_stays_local() {
        let none = stream(Workload::A, 1000, 0.0, 1);
        assert_eq!((none.local, none.lines.len()), (1000, 0));
        let half = stream(Workload::A, 1000, 0.5, 1);
        assert_eq!(half.local + half.lines.lines().count() as u64, 1000);
        assert!((400..600).contains(&half.local));
    }

    #[test]
    fn a_seed_repeats_the_operations_and_another_does_not() {
        let of = |seed| stream(Workload::F, 2000, 1.0, seed).lines;
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
    }
}
