//! Measures one tenant's reads while another tenant's slow request runs and, in one run with that,
//! while none runs: `cargo bench -p ethermem-node --bench neighbour`, or with `-- --quick`, `--
//! --bits 10,14` or `-- --only share`.
//!
//! The node is started as `ethermem node` starts it, encrypted, over UDP on loopback. Its memory is
//! reserved and not touched unless a line says so, because page tables are what is measured. One
//! thread has both clients. It reads 64 B for one tenant every 50 us; between two reads it polls
//! for the other tenant's response. A late read delays those behind it. They are counted as if each
//! had been sent on time.

mod requests;
mod served;

use std::time::{Duration, Instant};

use requests::{Asker, KINDS, Kind};
use served::{Neighbour, stay_on};

/// Interval of reads in nanoseconds.
const EVERY_NS: u64 = 50_000;
/// Largest allowed increase of the other tenant's p99 and maximum, in nanoseconds.
const P99_NS_MAX: f64 = 1e6;
const MAX_NS_MAX: f64 = 10e6;

/// Number and size of the measurements.
struct Extent {
    bits: Vec<u32>,
    rounds: usize,
    /// Requests are repeated in a round until this time has passed or their number is reached.
    round_for: Duration,
    only: Option<String>,
}

impl Extent {
    fn of(words: &[&str]) -> Result<Extent, String> {
        let mut extent = Extent {
            bits: vec![10, 14, 16, 18, 20, 22],
            rounds: 5,
            round_for: Duration::from_millis(200),
            only: None,
        };
        let mut words = words.iter();
        while let Some(&word) = words.next() {
            let mut value = || words.next().ok_or_else(|| format!("{word}: a value must follow"));
            match word {
                "--quick" => {
                    (extent.bits, extent.rounds) = (vec![10, 14], 2);
                    extent.round_for = Duration::from_millis(50);
                }
                "--bits" => {
                    let bits: Result<_, _> = value()?.split(',').map(str::parse).collect();
                    extent.bits = bits.map_err(|error| format!("--bits: {error}"))?;
                }
                "--rounds" => {
                    extent.rounds =
                        value()?.parse().map_err(|error| format!("--rounds: {error}"))?;
                }
                "--only" => extent.only = Some((*value()?).to_owned()),
                _ => return Err(format!("{word}: must be --quick, --bits, --rounds or --only")),
            }
        }
        Ok(extent)
    }
}

/// Latencies of reads that were sent on time, and of those delayed by a late one.
#[derive(Default)]
struct Reads(Vec<u64>);

impl Reads {
    fn add(&mut self, took_ns: u64) {
        let mut late = took_ns;
        loop {
            self.0.push(late);
            match late.checked_sub(EVERY_NS) {
                Some(left) if left > EVERY_NS => late = left,
                _ => return,
            }
        }
    }

    /// p50, p99, p99.9 and the maximum.
    fn percentiles(&mut self) -> [f64; 4] {
        self.0.sort_unstable();
        let at = |share: f64| {
            let place = (self.0.len() as f64 * share).ceil() as usize;
            self.0[place.clamp(1, self.0.len()) - 1] as f64
        };
        [at(0.5), at(0.99), at(0.999), at(1.0)]
    }
}

/// Reads for the neighbour until `done` returns true, which is called between two reads.
fn read_until(neighbour: &mut Neighbour, reads: &mut Reads, mut done: impl FnMut() -> bool) {
    let mut due = Instant::now();
    while !done() {
        if Instant::now() >= due {
            due = Instant::now() + Duration::from_nanos(EVERY_NS);
            reads.add(neighbour.read_ns());
        }
    }
}

/// Results of a round: percentiles alone and beside a request, the request's time in ms, reads
/// beside it.
struct Round {
    alone: [f64; 4],
    beside: [f64; 4],
    request_ms: f64,
    reads: usize,
    requests: u32,
    refused: u32,
}

fn round(neighbour: &mut Neighbour, asker: &mut Asker, extent: &Extent) -> Round {
    let (mut alone, mut beside) = (Reads::default(), Reads::default());
    let (mut busy, mut requests, mut refused) = (Duration::ZERO, 0_u32, 0_u32);
    while busy < extent.round_for && requests < asker.requests_max() {
        asker.prepare();
        let span = (extent.round_for / 20).max(busy / requests.max(1));
        let start = Instant::now();
        read_until(neighbour, &mut alone, || start.elapsed() >= span);
        asker.begin();
        read_until(neighbour, &mut alone, || asker.is_due());
        let start = Instant::now();
        read_until(neighbour, &mut beside, || asker.has_ended());
        busy += start.elapsed();
        requests += 1;
        refused += u32::from(asker.clear());
    }
    let request_ms = busy.as_secs_f64() * 1e3 / f64::from(requests);
    let reads = beside.0.len();
    let (alone, beside) = (alone.percentiles(), beside.percentiles());
    Round { alone, beside, request_ms, reads, requests, refused }
}

/// The median, the minimum and the maximum.
fn spread(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

/// Microseconds of p50, p99, p99.9 and the maximum: medians, and the spread of the last three.
fn cells(rounds: &[Round], of: impl Fn(&Round) -> [f64; 4]) -> String {
    let cell = |at: usize| {
        let [median, least, most] = spread(rounds.iter().map(|round| of(round)[at] / 1e3));
        if at == 0 {
            format!("{median:.0}")
        } else {
            format!("{median:.0} ({least:.0} to {most:.0})")
        }
    };
    [0, 1, 2, 3].map(cell).join(" / ")
}

fn line(kind: &Kind, bits: u32, extent: &Extent) -> bool {
    let mut asker = Asker::new(kind.what, bits);
    let mut neighbour = Neighbour::new(&asker.served);
    let rounds: Vec<Round> =
        (0..extent.rounds).map(|_| round(&mut neighbour, &mut asker, extent)).collect();
    let median =
        |at: usize, of: fn(&Round) -> [f64; 4]| spread(rounds.iter().map(|r| of(r)[at]))[0];
    let grows = |at: usize| median(at, |round| round.beside) - median(at, |round| round.alone);
    let within = grows(1) <= P99_NS_MAX && grows(3) <= MAX_NS_MAX;
    let [request, _, _] = spread(rounds.iter().map(|round| round.request_ms));
    let requests: u32 = rounds.iter().map(|round| round.requests).sum();
    let refused: u32 = rounds.iter().map(|round| round.refused).sum();
    let reads: usize = rounds.iter().map(|round| round.reads).sum();
    println!(
        "| {} | 2^{bits} | {requests}, {refused} refused | {request:.2} | {} | {} \
         | {:+.2}, {:+.2} | {reads} |{}",
        kind.name,
        cells(&rounds, |round| round.alone),
        cells(&rounds, |round| round.beside),
        grows(1) / 1e6,
        grows(3) / 1e6,
        if within { "" } else { " missed" }
    );
    within
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let extent = Extent::of(&words).unwrap_or_else(|problem| {
        eprintln!("error: {problem}");
        std::process::exit(2);
    });
    stay_on(0);
    println!(
        "| request | pages | requests | one takes, ms | alone: p50 / p99 / p99.9 / max, us \
         | beside: p50 / p99 / p99.9 / max, us | p99, max grow by, ms | reads beside |\n\
         |---|---|---|---|---|---|---|---|"
    );
    let mut missed = 0;
    for kind in &KINDS {
        if extent.only.as_ref().is_some_and(|only| !kind.name.contains(only.as_str())) {
            continue;
        }
        for &bits in
            extent.bits.iter().filter(|bits| (kind.bits_min..=kind.bits_max).contains(*bits))
        {
            missed += usize::from(!line(kind, bits, &extent));
        }
    }
    println!("\n{missed} of the lines miss: p99 must grow by at most 1 ms, the maximum by 10 ms");
}
