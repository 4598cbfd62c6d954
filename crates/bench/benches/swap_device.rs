//! Measures a pool as a swap device, in the three ways of the OSDI'16 study's Table 5: `cargo bench
//! -p ethermem-bench --bench swap_device -- POOL...`.
//!
//! *Batch*: so many pages are asked for at once, and the next ones after the last answer; a page's
//! latency is its batch's. *Merged*: as many adjacent pages are one request. *Asynchronous*: each
//! answer is followed by the next request. Pools and ways alternate in every round. The output has
//! columns, with tabs between. Times are the machine's, on `sim:` the fabric's.

use std::cell::RefCell;
use std::mem;
use std::process::ExitCode;
use std::rc::Rc;

use ethermem::{Address, Error, Permissions, Pool, Ps, Thread};
use ethermem_bench::Draws;

/// Page of a swap device in bytes.
const PAGE_BYTES: u64 = 4096;
/// Pages of the region: 64 MiB, more than most caches hold.
const REGION_PAGES: u64 = 1 << 14;
/// Largest count in the arguments.
const COUNT_MAX: u64 = 100_000_000;
const PS_PER_US: f64 = 1e6;
/// A byte per picosecond in GB/s.
const GB_PER_S: f64 = 1e3;
const USAGE: &str = "swap_device [--rounds N] [--pages N] [--under-way N,N] POOL...";
const HEAD: &str = "pool\tway\tunder_way\tround\tgb_per_s\tp50_us\tp99_us";

/// What to measure.
struct Options {
    rounds: u64,
    /// Pages that each way reads in a round.
    pages: u64,
    /// Pages of a batch, of a merged request, and asynchronous requests at a time.
    under_way: Vec<u64>,
    pools: Vec<String>,
}

/// How pages are asked for.
#[derive(Clone, Copy, Debug)]
enum Way {
    Batch,
    Merged,
    Asynchronous,
}

/// Duration of all, and latencies of requests.
struct Sample {
    took: Ps,
    latencies: Vec<Ps>,
}

fn main() -> ExitCode {
    let options = match options(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(error) => {
            eprintln!("error: {error}: {USAGE}");
            return ExitCode::from(2);
        }
    };
    match measure(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Reads the arguments; Cargo adds `--bench`.
fn options(mut words: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options { rounds: 3, pages: 50_000, under_way: vec![4, 32], pools: vec![] };
    while let Some(word) = words.next() {
        let mut counts = |most| counts(&word, &words.next().unwrap_or_default(), most);
        match word.as_str() {
            "--bench" => {}
            "--rounds" => options.rounds = counts(COUNT_MAX)?[0],
            "--pages" => options.pages = counts(COUNT_MAX)?[0],
            "--under-way" => options.under_way = counts(REGION_PAGES)?,
            _ => options.pools.push(word),
        }
    }
    if options.pools.is_empty() { Err("no pool".to_owned()) } else { Ok(options) }
}

/// Parses an option's counts.
fn counts(option: &str, text: &str, most: u64) -> Result<Vec<u64>, String> {
    let count = |word: &str| word.parse().ok().filter(|count| (1..=most).contains(count));
    let counts: Option<Vec<u64>> = text.split(',').map(count).collect();
    counts.ok_or_else(|| format!("{option} {text}: must be 1 to {most}"))
}

fn measure(options: &Options) -> Result<(), String> {
    println!("{HEAD}");
    let pools: Result<Vec<Device>, String> =
        options.pools.iter().map(|url| Device::open(url)).collect();
    let pools = pools?;
    for round in 0..options.rounds {
        for device in &pools {
            for &under_way in &options.under_way {
                for way in [Way::Batch, Way::Merged, Way::Asynchronous] {
                    // Every way reads the same places.
                    let draws = Draws::new(round, under_way);
                    let sample = device.read(way, options.pages, under_way, draws);
                    let sample = sample.map_err(|error| format!("{}: {error}", device.url))?;
                    println!("{}", device.line(way, under_way, round, options.pages, sample));
                }
            }
        }
    }
    Ok(())
}

/// A pool, and memory of it.
struct Device {
    url: String,
    pool: Pool,
    thread: Thread,
    base: Address,
}

impl Device {
    fn open(url: &str) -> Result<Device, String> {
        let named = |error: Error| format!("{url}: {error}");
        let pool = Pool::open(url).map_err(|error| format!("{url}: {error}"))?;
        let thread = pool.thread().map_err(named)?;
        let bytes = REGION_PAGES * PAGE_BYTES;
        let region = pool.run(thread.alloc(bytes, Permissions::READ_WRITE)).map_err(named)?;
        let base = region.address();
        let merged = 1 << 18;
        for offset in (0..bytes).step_by(merged) {
            let content = vec![0xA5; merged];
            pool.run(thread.write(base.add(offset), &content)).map_err(named)?;
        }
        Ok(Device { url: url.to_owned(), pool, thread, base })
    }

    /// Address of a random run of pages.
    fn place(&self, draws: &mut Draws, pages: u64) -> Address {
        self.base.add(draws.below(REGION_PAGES - pages + 1) * PAGE_BYTES)
    }

    fn read(
        &self,
        way: Way,
        pages: u64,
        under_way: u64,
        mut draws: Draws,
    ) -> Result<Sample, Error> {
        let requests = pages.div_ceil(under_way);
        let began = self.pool.now();
        let latencies = match way {
            Way::Batch | Way::Merged => {
                self.pool.run(self.in_turn(way, requests, under_way, &mut draws))?
            }
            Way::Asynchronous => self.asynchronous(requests * under_way, under_way, draws)?,
        };
        Ok(Sample { took: self.pool.now() - began, latencies })
    }

    /// Requests that each wait for the one before.
    async fn in_turn(
        &self,
        way: Way,
        requests: u64,
        under_way: u64,
        draws: &mut Draws,
    ) -> Result<Vec<Ps>, Error> {
        let (reads, pages) = match way {
            Way::Merged => (1, under_way),
            Way::Batch | Way::Asynchronous => (under_way, 1),
        };
        let mut latencies = Vec::new();
        for _ in 0..requests {
            let began = self.thread.now();
            let batch: Vec<_> = (0..reads)
                .map(|_| self.thread.read(self.place(draws, pages), pages * PAGE_BYTES))
                .collect();
            for read in batch {
                read.await?;
            }
            latencies.push(self.thread.now() - began);
        }
        Ok(latencies)
    }

    fn asynchronous(&self, pages: u64, under_way: u64, draws: Draws) -> Result<Vec<Ps>, Error> {
        let state = Rc::new(RefCell::new(Asynchronous {
            left: pages,
            draws,
            latencies: Vec::new(),
            failure: None,
        }));
        let tasks = self.pool.tasks();
        for _ in 0..under_way {
            let (state, thread, base) = (state.clone(), self.thread.fork(), self.base);
            tasks.spawn(async move {
                while let Some(page) = Asynchronous::next(&state) {
                    let began = thread.now();
                    let done = thread.read(base.add(page * PAGE_BYTES), PAGE_BYTES).await;
                    let mut state = state.borrow_mut();
                    match done {
                        Ok(_) => state.latencies.push(thread.now() - began),
                        Err(error) => state.failure = Some(error),
                    }
                }
            });
        }
        tasks.run();
        let mut state = state.borrow_mut();
        let latencies = mem::take(&mut state.latencies);
        state.failure.take().map_or(Ok(latencies), Err)
    }

    fn line(&self, way: Way, under_way: u64, round: u64, pages: u64, mut sample: Sample) -> String {
        let bytes = pages.next_multiple_of(under_way) * PAGE_BYTES;
        sample.latencies.sort_unstable();
        let us = |percent: usize| {
            let last = sample.latencies.len() - 1;
            sample.latencies[last * percent / 100].0 as f64 / PS_PER_US
        };
        let gb_per_s = bytes as f64 / sample.took.0 as f64 * GB_PER_S;
        let (name, url) = (format!("{way:?}").to_lowercase(), &self.url);
        let (p50_us, p99_us) = (us(50), us(99));
        format!("{url}\t{name}\t{under_way}\t{round}\t{gb_per_s:.4}\t{p50_us:.3}\t{p99_us:.3}")
    }
}

/// What the tasks share.
struct Asynchronous {
    left: u64,
    draws: Draws,
    latencies: Vec<Ps>,
    failure: Option<Error>,
}

impl Asynchronous {
    /// Number of the next page to read.
    fn next(state: &RefCell<Asynchronous>) -> Option<u64> {
        let mut state = state.borrow_mut();
        if state.left == 0 || state.failure.is_some() {
            return None;
        }
        state.left -= 1;
        Some(state.draws.below(REGION_PAGES))
    }
}
