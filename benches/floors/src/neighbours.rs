//! A read of 64 B where the processors are shared: both ends on one, or busy programs beside. The
//! floor is a blocking exchange of the same bytes in the same round.

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use std::process::{Command, Stdio};

use crate::measure::{Latency, Round, Spread};
use crate::probes::pool::{PoolOperation, PoolProbe};
use crate::probes::udp::{Blocking, SILENCE_MAX};
use crate::probes::{Cpus, ProbeError, Server};

/// Numbers of busy programs beside.
const BUSY: [u32; 3] = [0, 4, 8];

/// The processors that client, server and busy programs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Share {
    /// All are kept on one.
    One,
    /// The scheduler places each on any of the given two.
    Two,
}

impl Share {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Share::One => "one processor",
            Share::Two => "two processors",
        }
    }

    /// Does the work while this thread, and what it starts, has these processors.
    pub(crate) fn within<T>(
        self,
        cpus: Cpus,
        work: impl FnOnce() -> Result<T, ProbeError>,
    ) -> Result<T, ProbeError> {
        let before = sched_getaffinity(Pid::from_raw(0))?;
        let mut set = CpuSet::new();
        set.set(cpus.client)?;
        if self == Share::Two {
            set.set(cpus.server)?;
        }
        sched_setaffinity(Pid::from_raw(0), &set)?;
        let done = work();
        sched_setaffinity(Pid::from_raw(0), &before)?;
        done
    }
}

/// One row: rounds of both.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    share: Share,
    busy_programs: u32,
    ours: Vec<Round>,
    blocking: Vec<Round>,
}

/// Measures every row in turn, `rounds` times.
pub(crate) fn measure(cpus: Cpus, rounds: u32, samples: u32) -> Result<Vec<Row>, ProbeError> {
    let mut rows = Vec::new();
    for share in [Share::One, Share::Two] {
        for busy_programs in BUSY {
            rows.push(Row { share, busy_programs, ours: Vec::new(), blocking: Vec::new() });
        }
    }
    for round in 1..=rounds {
        eprint!("\rround {round} of {rounds}");
        for row in &mut rows {
            let (ours, blocking) = row.share.within(cpus, || row.round(samples))?;
            row.ours.push(ours);
            row.blocking.push(blocking);
        }
    }
    eprintln!();
    Ok(rows)
}

impl Row {
    fn round(&self, samples: u32) -> Result<(Round, Round), ProbeError> {
        let program = std::env::current_exe()?;
        let mut busy = Vec::new();
        for _ in 0..self.busy_programs {
            let mut command = Command::new(&program);
            busy.push(Server::here(command.arg("burn").stdin(Stdio::null()))?);
        }
        let pool = PoolProbe {
            operation: PoolOperation::Read(64),
            encrypted: false,
            datagram_bytes: None,
            loss: None,
            ring: false,
        };
        Ok((pool.round_here(samples)?, Blocking::round(samples)?))
    }

    fn cells(&self) -> Option<[String; 6]> {
        let spread = |rounds: &[Round], of: fn(Latency) -> f64| {
            Spread::of(rounds.iter().filter_map(|round| round.latency).map(of))
        };
        let over = |of: fn(Latency) -> f64| {
            let pairs = self.ours.iter().zip(&self.blocking);
            Spread::of(pairs.filter_map(|(own, floor)| Some(of(own.latency?) / of(floor.latency?))))
        };
        let p50 = |latency: Latency| latency.p50_us;
        let p99 = |latency: Latency| latency.p99_us;
        let show = |spread: Spread| {
            format!("{:.2} ({:.2} to {:.2})", spread.median, spread.least, spread.most)
        };
        Some([
            format!("{}, {} busy", self.share.name(), self.busy_programs),
            show(spread(&self.ours, p50)?),
            show(spread(&self.blocking, p50)?),
            show(over(p50)?),
            show(spread(&self.ours, p99)?),
            show(over(p99)?),
        ])
    }
}

/// The table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table = "| read of 64 B | p50 us | blocking UDP, p50 us | over it | p99 us | over its \
                     p99 |\n|---|---|---|---|---|---|\n"
        .to_owned();
    for cells in rows.iter().filter_map(Row::cells) {
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}

/// A busy program: it computes until its parent ends.
pub(crate) fn burn() -> Result<(), ProbeError> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
    let begun = std::time::Instant::now();
    let mut word = 1_u64;
    // A bench that was stopped leaves nothing behind.
    while begun.elapsed() < SILENCE_MAX * 60 {
        for _ in 0..1 << 20 {
            word = std::hint::black_box(word.wrapping_mul(6_364_136_223_846_793_005) | 1);
        }
    }
    Ok(())
}
