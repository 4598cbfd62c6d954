//! Reads and writes of 64 KiB to 16 MiB, beside a TCP exchange of the same bytes in the same round.

use std::collections::VecDeque;
use std::time::Instant;

use ethermem::Region;
use serde::Serialize;

use crate::measure::{Round, Samples, Spread, over_floor};
use crate::neighbours::Share;
use crate::probes::pool::{PoolOperation, PoolProbe};
use crate::probes::stream::Stream;
use crate::probes::{Cpus, ProbeError};

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const SIZES: [u64; 3] = [64 * KIB, MIB, 16 * MIB];
/// A region has room for several of the longest, so that an operation does not touch what the one
/// before left in a cache.
const REGION_BYTES: u64 = 128 * MIB;
/// A write's answer.
const ACKNOWLEDGED_BYTES: u64 = 16;
const WINDOW: usize = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Operation {
    Read,
    Write,
    /// Reads, 16 under way.
    ReadsUnderWay,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    Udp,
    UdpEncrypted,
    Ring,
}

/// One row: rounds of both.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    share: Share,
    way: Way,
    operation: Operation,
    bytes: u64,
    ours: Vec<Round>,
    tcp: Vec<Round>,
    skipped: Option<String>,
}

/// Rows whose name has one of the texts; without any, all.
pub(crate) fn rows(only: &[String]) -> Vec<Row> {
    let mut rows = Vec::new();
    for share in [Share::Two, Share::One] {
        for way in [Way::Udp, Way::UdpEncrypted, Way::Ring] {
            for operation in [Operation::Read, Operation::Write, Operation::ReadsUnderWay] {
                rows.extend(SIZES.map(|bytes| Row {
                    share,
                    way,
                    operation,
                    bytes,
                    ours: Vec::new(),
                    tcp: Vec::new(),
                    skipped: None,
                }));
            }
        }
    }
    rows.retain(|row| only.is_empty() || only.iter().any(|text| row.name().contains(text)));
    rows
}

/// Measures every row in turn, `rounds` times. Each measurement moves so many bytes.
pub(crate) fn measure(
    mut rows: Vec<Row>,
    cpus: Cpus,
    rounds: u32,
    volume_bytes: u64,
) -> Result<Vec<Row>, ProbeError> {
    for round in 1..=rounds {
        eprint!("\rround {round} of {rounds}");
        for row in rows.iter_mut().filter(|row| row.skipped.is_none()) {
            match row.share.within(cpus, || row.round(volume_bytes)) {
                Ok((ours, tcp)) => {
                    row.ours.push(ours);
                    row.tcp.push(tcp);
                }
                Err(ProbeError::Lacking(reason)) => {
                    eprintln!("\nSKIPPED: {}: {reason}", row.name());
                    row.skipped = Some(reason);
                }
                Err(error) => {
                    return Err(ProbeError::Failed(format!("{}: {error}", row.name())));
                }
            }
        }
    }
    eprintln!();
    Ok(rows)
}

impl Row {
    fn name(&self) -> String {
        let way = match self.way {
            Way::Udp => "udp",
            Way::UdpEncrypted => "udp, encrypted",
            Way::Ring => "ring",
        };
        let operation = match self.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::ReadsUnderWay => "16 reads under way",
        };
        let bytes = match self.bytes {
            bytes if bytes < MIB => format!("{} KiB", bytes / KIB),
            bytes => format!("{} MiB", bytes / MIB),
        };
        format!("{}, {way}, {operation}, {bytes}", self.share.name())
    }

    fn round(&self, volume_bytes: u64) -> Result<(Round, Round), ProbeError> {
        let count = u32::try_from((volume_bytes / self.bytes).max(4)).unwrap_or(u32::MAX);
        let (request_bytes, response_bytes) = match self.operation {
            Operation::Write => (self.bytes, ACKNOWLEDGED_BYTES),
            Operation::Read | Operation::ReadsUnderWay => (0, self.bytes),
        };
        let memory_bytes = REGION_BYTES;
        let tcp = Stream { request_bytes, response_bytes, memory_bytes }.round(count)?;
        let pool = PoolProbe {
            operation: PoolOperation::Read(0),
            encrypted: self.way == Way::UdpEncrypted,
            datagram_bytes: None,
            loss: None,
            ring: self.way == Way::Ring,
        };
        let ours = pool.with_region(REGION_BYTES, |region| match self.operation {
            Operation::ReadsUnderWay => self.under_way(region, count),
            Operation::Read | Operation::Write => self.one_by_one(region, count),
        })?;
        Ok((ours, tcp))
    }

    /// Place of an operation: they walk through the region.
    fn place(&self, number: u32) -> u64 {
        u64::from(number) * self.bytes % REGION_BYTES
    }

    /// Writes all of the region: the node maps its memory then. Returns the bytes of one operation.
    fn fill(&self, region: &Region) -> Result<Vec<u8>, ProbeError> {
        let bytes = vec![7; usize::try_from(self.bytes).expect("sizes are short of 64 MiB")];
        for at in (0..REGION_BYTES).step_by(bytes.len()) {
            region.write_from(at, &bytes)?;
        }
        Ok(bytes)
    }

    fn one_by_one(&self, region: &Region, count: u32) -> Result<Round, ProbeError> {
        let mut bytes = self.fill(region)?;
        let (warm, mut samples) = (count / 10 + 1, Samples::new());
        for number in 0..count + warm {
            let start = Instant::now();
            match self.operation {
                Operation::Write => region.write_from(self.place(number), &bytes)?,
                _ => region.read_into(self.place(number), &mut bytes)?,
            }
            let took = start.elapsed();
            if number >= warm {
                samples.add(took);
            }
        }
        Ok(samples.one_by_one())
    }

    /// The rate of all, and of each the time from its start to its end.
    fn under_way(&self, region: &Region, count: u32) -> Result<Round, ProbeError> {
        self.fill(region)?;
        let mut samples = Samples::new();
        let begun = Instant::now();
        let mut waiting = VecDeque::new();
        for number in 0..count.max(2 * WINDOW as u32) {
            if waiting.len() == WINDOW {
                take(&mut waiting, &mut samples)?;
            }
            waiting.push_back((Instant::now(), region.read(self.place(number), self.bytes)));
        }
        let all = count.max(2 * WINDOW as u32);
        while !waiting.is_empty() {
            take(&mut waiting, &mut samples)?;
        }
        let rate = f64::from(all) / begun.elapsed().as_secs_f64();
        Ok(Round { operations_per_s: rate, ..samples.one_by_one() })
    }

    /// Rate over TCP's. One at a time, rates are those of the median operation.
    fn over(&self) -> Option<Spread> {
        Spread::of(self.ours.iter().zip(&self.tcp).map(|(ours, tcp)| self.ratio(ours, tcp)))
    }

    fn ratio(&self, ours: &Round, tcp: &Round) -> f64 {
        match self.operation {
            Operation::ReadsUnderWay => {
                let tcp_us = tcp.latency.map_or(f64::NAN, |latency| latency.p50_us);
                ours.operations_per_s * tcp_us / 1e6
            }
            Operation::Read | Operation::Write => 1.0 / over_floor(ours, tcp),
        }
    }

    fn cells(&self) -> Option<[String; 5]> {
        let latency = |rounds: &[Round], p99: bool| {
            let latencies = rounds.iter().filter_map(|round| round.latency);
            Spread::of(latencies.map(|latency| if p99 { latency.p99_us } else { latency.p50_us }))
        };
        let over = self.over()?;
        Some([
            self.name(),
            format!("{:.0}", latency(&self.ours, false)?.median),
            format!("{:.0}", latency(&self.ours, true)?.median),
            format!("{:.0}", latency(&self.tcp, false)?.median),
            format!("{:.2} ({:.2} to {:.2})", over.median, over.least, over.most),
        ])
    }
}

fn take(
    waiting: &mut VecDeque<(Instant, ethermem::Pending<Vec<u8>>)>,
    samples: &mut Samples,
) -> Result<(), ProbeError> {
    let Some((begun, pending)) = waiting.pop_front() else { return Ok(()) };
    pending.wait()?;
    samples.add(begun.elapsed());
    Ok(())
}

/// The table in Markdown.
pub(crate) fn table(rows: &[Row]) -> String {
    let mut table =
        "| what | p50, us | p99, us | TCP, p50, us | rate over TCP's |\n|---|---|---|---\
                     |---|\n"
            .to_owned();
    for cells in rows.iter().filter_map(Row::cells) {
        table += &format!("| {} |\n", cells.join(" | "));
    }
    table
}
