//! Measures a memory node that is far away: behind a path that delays datagrams.
//!
//! `cargo bench -p ethermem-pager --bench far` first reads 64 B, 16 times at once, on paths whose
//! delays vary. Then it runs itself under the pager: threads touch random pages that are at the
//! node, and then the same pages with the same delay emulated. The ratio of the two says how well
//! `emulate` promises what `run` does.

#[path = "../tests/support/relay.rs"]
mod relay;

use std::error::Error;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Barrier;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ethermem::{Pending, Permissions, Pool};
use ethermem_node::NodeOptions;
use ethermem_pager::{Delay, Local, Nothing, Options, hold_signals, run};
use ethermem_units::Bytes;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Set in the measured program under the pager: the file for its result, and its threads.
const RESULTS: &str = "ETHERMEM_FAR_RESULTS";
const THREADS: &str = "ETHERMEM_FAR_THREADS";
const PAGE_BYTES: usize = 4096;
/// Pages that the program holds, an eighth of which is local.
const PAGES: usize = 8192;
const LOCAL_BYTES: u64 = (PAGES * PAGE_BYTES / 8) as u64;
const COUNTS: [usize; 5] = [1, 2, 4, 8, 16];
const DELAYS: [Duration; 2] = [Duration::from_micros(100), Duration::from_millis(1)];
const ROUNDS: usize = 5;
/// How long the threads touch pages.
const SPAN: Duration = Duration::from_secs(2);

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    if let Some(path) = std::env::var_os(RESULTS) {
        return touch(Path::new(&path), std::env::var(THREADS)?.parse()?);
    }
    hold_signals()?;
    let mut server = ethermem_node::start(&NodeOptions::in_clear(Bytes(256 << 20)))?.server;
    let node = server.address().ok_or("it is not bound")?;
    std::thread::spawn(move || server.run(Duration::from_millis(1), &AtomicBool::new(false)));
    read_at_once(node)?;
    println!("| a way takes | threads | touches/s | over one thread | over `emulate` |");
    println!("|---|---|---|---|---|");
    for delay in DELAYS {
        let path = relay::Path {
            delay,
            jitter: Duration::ZERO,
            lost_one_in: None,
            ends_after: None,
            seed: 1,
        };
        let url = format!("udp://{}", relay::open(node, path));
        let latency = page_time(&url)?;
        let mut one = None;
        for threads in COUNTS {
            let mut far = Vec::new();
            let mut emulated = Vec::new();
            for _ in 0..ROUNDS {
                let local = Local::Bytes(LOCAL_BYTES);
                let pool = Some(Pool::open(&url)?);
                far.push(measure(&Options { pool, ..Options::new(local) }, threads)?);
                let delay = Delay::Fixed { latency, bits_per_second: None };
                emulated.push(measure(&Options { delay, ..Options::new(local) }, threads)?);
            }
            let ratios: Vec<f64> = far.iter().zip(&emulated).map(|(far, by)| far / by).collect();
            let far = Spread::of(far);
            let first = *one.get_or_insert(far.median);
            println!(
                "| {delay:?} | {threads} | {far:.0} | {:.2} | {:.2} |",
                far.median / first,
                Spread::of(ratios),
            );
        }
    }
    Ok(())
}

/// Shortest and longest time of a way in us, and one of how many datagrams is lost.
const PATHS: [(u64, u64, Option<u64>); 6] = [
    (300, 300, None),
    (200, 600, None),
    (200, 2_200, None),
    (200, 600, Some(100)),
    (200, 600, Some(20)),
    (200, 2_200, Some(10)),
];
/// Reads under way at once, and reads in all.
const AT_ONCE: usize = 16;
const READS: usize = 8_000;

/// Prints how long reads of 64 B take on paths whose delays vary.
fn read_at_once(node: SocketAddr) -> Result<()> {
    println!("| a way takes | lost | mean | p50 | p99 | reads/s | of the path's own |");
    println!("|---|---|---|---|---|---|---|");
    for (least, most, lost_one_in) in PATHS {
        let us = Duration::from_micros;
        let path = relay::Path {
            delay: us(least),
            jitter: us(most - least),
            lost_one_in,
            ends_after: None,
            seed: 1,
        };
        let url = format!("udp://{}?timeout_ms=4500", relay::open(node, path));
        let pool = Pool::open(&url)?;
        let region = pool.thread()?.alloc(1 << 20, Permissions::READ_WRITE).wait()?;
        let mut times = Vec::with_capacity(READS);
        let began = Instant::now();
        let mut reads: Vec<(Instant, Pending<Vec<u8>>)> = Vec::new();
        let mut asked = 0;
        while times.len() < READS {
            while asked < READS && reads.len() < AT_ONCE {
                let at = (asked * PAGE_BYTES + asked * 64) as u64 % (1 << 20);
                reads.push((Instant::now(), region.read(at & !63, 64)));
                asked += 1;
            }
            pool.step();
            let mut at = 0;
            while at < reads.len() {
                match reads[at].1.poll_result() {
                    Some(read) => {
                        read?;
                        times.push(reads.swap_remove(at).0.elapsed());
                    }
                    None => at += 1,
                }
            }
        }
        let seconds = began.elapsed().as_secs_f64();
        times.sort();
        let mean = times.iter().sum::<Duration>() / READS as u32;
        let rate = READS as f64 / seconds;
        // What the reads would give if each took the mean of the path, and none was lost.
        let own = AT_ONCE as f64 / ((least + most) as f64 / 1e6);
        println!(
            "| {least} to {most} us | {} | {:.2} ms | {:.2} ms | {:.2} ms | {rate:.0} | {:.2} |",
            lost_one_in.map_or("-".to_owned(), |one| format!("1 in {one}")),
            mean.as_secs_f64() * 1e3,
            times[READS / 2].as_secs_f64() * 1e3,
            times[READS * 99 / 100].as_secs_f64() * 1e3,
            rate / own
        );
    }
    println!();
    Ok(())
}

/// A median and its range.
struct Spread {
    median: f64,
    least: f64,
    most: f64,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Spread {
        values.sort_by(f64::total_cmp);
        let (least, most) = (values[0], values[values.len() - 1]);
        Spread { median: values[values.len() / 2], least, most }
    }
}

impl std::fmt::Display for Spread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Spread { median, least, most } = self;
        let digits = f.precision().unwrap_or(2);
        write!(f, "{median:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}

/// Median time of a page's read on the pool.
fn page_time(url: &str) -> Result<Duration> {
    let pool = Pool::open(url)?;
    let region = pool.thread()?.alloc(1 << 20, Permissions::READ_WRITE).wait()?;
    let mut page = vec![0; PAGE_BYTES];
    let mut times = Vec::new();
    for at in 0..200 {
        let began = Instant::now();
        region.read_into(at * PAGE_BYTES as u64, &mut page)?;
        times.push(began.elapsed());
    }
    times.sort();
    Ok(times[times.len() / 2])
}

/// Runs this program under the pager, and returns its touches per second.
fn measure(options: &Options, threads: usize) -> Result<f64> {
    let file = tempfile::NamedTempFile::new()?;
    let this = std::env::current_exe()?.into_os_string();
    let set = |name: &str, value: &str| OsString::from(format!("{name}={value}"));
    let path = file.path().display().to_string();
    let words = [set(RESULTS, &path), set(THREADS, &threads.to_string())];
    let [results, threads] = words;
    run(&["env".into(), results, threads, this], options, &mut Nothing)?;
    Ok(std::fs::read_to_string(file.path())?.trim().parse()?)
}

/// The program: its threads touch pages of one memory at random.
fn touch(results: &Path, threads: usize) -> Result<()> {
    let word_of = |at: usize| at as u64 ^ 0x9e37_79b9;
    let mut memory = vec![0u64; PAGES * PAGE_BYTES / 8];
    for (at, word) in memory.iter_mut().enumerate() {
        *word = word_of(at);
    }
    let start = Barrier::new(threads);
    let touches: u64 = std::thread::scope(|scope| {
        let touch = |number: usize| {
            let (memory, start) = (&memory, &start);
            move || {
                let mut random = Xoshiro256PlusPlus::seed_from_u64(number as u64);
                start.wait();
                let (began, mut touches) = (Instant::now(), 0_u64);
                while began.elapsed() < SPAN {
                    let at = (random.next_u64() % PAGES as u64) as usize * PAGE_BYTES / 8;
                    assert_eq!(std::hint::black_box(memory[at]), word_of(at), "a wrong page");
                    touches += 1;
                }
                touches
            }
        };
        let all: Vec<_> = (0..threads).map(|number| scope.spawn(touch(number))).collect();
        all.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    Ok(std::fs::write(results, format!("{}", touches as f64 / SPAN.as_secs_f64()))?)
}
