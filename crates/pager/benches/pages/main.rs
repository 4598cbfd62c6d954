//! Measures what a remote page costs under the pager, beside the bare sequence of system calls.
//!
//! `cargo bench -p ethermem-pager --bench pages` measures the floors first. Then this program runs
//! itself under the pager, with its memory here and at a memory node on another thread. Numbers are
//! medians; quote their ratios.

mod floor;

use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use ethermem::Pool;
use ethermem_node::NodeOptions;
use ethermem_pager::{Counts, Local, Nothing, Options, hold_signals, run};
use ethermem_units::Bytes;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use floor::{Floor, PAGE_BYTES, median, quantile};

/// Variable that is set in the measured program under the pager; it names the file for the results.
const RESULTS: &str = "ETHERMEM_PAGES_RESULTS";
/// Pages that the program holds.
const PAGES: usize = 8192;
const LOCAL_BYTES: u64 = 8 << 20;
/// Pages that are read while local memory has room.
const ROOM_PAGES: usize = 1024;
const TOUCHES: usize = 20_000;
/// An access that takes less than this many microseconds is no fault.
const HIT_US: f64 = 1.0;
const ROUNDS: usize = 5;
/// Runs with all memory local, each paired with a run without a pager.
const PAIRS: usize = 11;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> Result<()> {
    if let Some(path) = std::env::var_os(RESULTS) {
        return touch(Path::new(&path));
    }
    let floor = floor::measure(TOUCHES)?;
    println!("floor, fault, UDP, map: p50 {:.2} us, p99 {:.2} us", floor.p50_us, floor.p99_us);
    println!("floor, 16 pages to a UFFDIO_COPY: {:.0} pages/s", floor.copies);
    hold_signals()?;
    all_local()?;
    let local = Options::new(Local::Bytes(LOCAL_BYTES));
    show("store in the pager", &measure(&local)?, &floor);
    show("the same, on one processor", &on_one(&local)?, &floor);
    let mut server = ethermem_node::start(&NodeOptions::in_clear(Bytes(64 << 20)))?.server;
    let url = format!("udp://{}", server.address().expect("it is bound"));
    std::thread::spawn(move || {
        // As in the floor's measurement, so that the program can run on the other processor.
        let _ = floor::bind_to(1);
        server.run(Duration::from_millis(1), &AtomicBool::new(false))
    });
    let pool = Some(Pool::open(&url)?);
    let remote = Options { pool, ..Options::new(Local::Bytes(LOCAL_BYTES)) };
    show("store at a memory node over UDP", &measure(&remote)?, &floor);
    show("the same, on one processor", &on_one(&remote)?, &floor);
    Ok(())
}

/// Runs the program and its pager on one processor, as the floor does.
fn on_one(options: &Options) -> Result<Measured> {
    let this = Pid::from_raw(0);
    let before = sched_getaffinity(this)?;
    floor::bind_to(0)?;
    let measured = measure(options);
    sched_setaffinity(this, &before)?;
    measured
}

/// Runs the program alternately by itself and under the pager with all memory local. Compares the
/// time of its work, and how much later it begins and ends.
fn all_local() -> Result<()> {
    let (mut ratios, mut starts) = (Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let began = Instant::now();
        let alone = alone()?;
        let alone_ms = began.elapsed().as_secs_f64() * 1e3;
        let began = Instant::now();
        let paged = measure(&Options::new(Local::All))?;
        let paged_ms = began.elapsed().as_secs_f64() * 1e3;
        ratios.push(paged.work_s / alone);
        starts.push(paged_ms - alone_ms - (paged.work_s - alone) * 1e3);
    }
    println!(
        "all local: {:.3} of the time without a pager ({:.3} to {:.3} in {PAIRS} pairs), and {:.1} \
         ms to start and end",
        median(&mut ratios),
        ratios[0],
        ratios[PAIRS - 1],
        median(&mut starts)
    );
    Ok(())
}

/// Runs this program without the pager, and returns the seconds of its work.
fn alone() -> Result<f64> {
    let file = tempfile::NamedTempFile::new()?;
    let mut command = std::process::Command::new(std::env::current_exe()?);
    let status = command.env(RESULTS, file.path()).status()?;
    assert!(status.success(), "by itself: {status}");
    let text = std::fs::read_to_string(file.path())?;
    let last = text.split_whitespace().last().ok_or("five numbers")?;
    Ok(last.parse()?)
}

/// What the program measured, and what its pager counted.
struct Measured {
    p50_us: f64,
    p99_us: f64,
    /// Pages per second, where another page is evicted for each one.
    scan: f64,
    /// Pages per second where local memory has room.
    roomy_scan: f64,
    /// Duration of all the program's work in seconds.
    work_s: f64,
    counts: Counts,
}

fn show(name: &str, measured: &Measured, floor: &Floor) {
    let Measured { p50_us, p99_us, scan, roomy_scan, counts, .. } = measured;
    println!(
        "{name}: random p50 {p50_us:.2} us ({:.2} of the floor), p99 {p99_us:.2} us; scan \
         {scan:.0} pages/s ({:.2} of the floor), with room {roomy_scan:.0} ({:.2}); {} faults, \
         {} pages taken out at {:.2} us",
        p50_us / floor.p50_us,
        scan / floor.copies,
        roomy_scan / floor.copies,
        counts.faults,
        counts.taken_pages,
        counts.taking_ns as f64 / 1e3 / counts.taken_pages.max(1) as f64
    );
}

/// Runs this program under the pager.
fn measure(options: &Options) -> Result<Measured> {
    let file = tempfile::NamedTempFile::new()?;
    let this = std::env::current_exe()?.into_os_string();
    let variable = OsString::from(format!("{RESULTS}={}", file.path().display()));
    let outcome = run(&["env".into(), variable, this], options, &mut Nothing)?;
    let text = std::fs::read_to_string(file.path())?;
    let values: Vec<f64> =
        text.split_whitespace().map(str::parse).collect::<std::result::Result<_, _>>()?;
    let [p50_us, p99_us, scan, roomy_scan, work_s] = values[..] else {
        return Err("five numbers".into());
    };
    Ok(Measured { p50_us, p99_us, scan, roomy_scan, work_s, counts: outcome.counts })
}

/// The program: fills its pages, touches them at random, reads them in order.
fn touch(results: &Path) -> Result<()> {
    let began = Instant::now();
    let mut memory = vec![0u64; PAGES * PAGE_BYTES / 8];
    for (at, word) in memory.iter_mut().enumerate() {
        *word = at as u64 ^ 0x9e37_79b9;
    }
    let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
    let mut times = Vec::with_capacity(TOUCHES);
    for _ in 0..TOUCHES {
        let at = (random.next_u64() % PAGES as u64) as usize * PAGE_BYTES / 8;
        let began = Instant::now();
        let word = std::hint::black_box(memory[at]);
        times.push(began.elapsed().as_secs_f64() * 1e6);
        assert_eq!(word, at as u64 ^ 0x9e37_79b9, "a page came back wrong");
    }
    let mut missed: Vec<f64> = times.iter().copied().filter(|time| *time > HIT_US).collect();
    if missed.len() < TOUCHES / 10 {
        missed = times;
    }
    let mut scans: Vec<f64> = (0..ROUNDS).map(|_| scan(&memory)).collect();
    // Evicting these pages leaves room for the reads below.
    let part = &memory[..ROOM_PAGES * PAGE_BYTES / 8];
    let mut roomy: Vec<f64> = (0..ROUNDS)
        .map(|round| {
            drop(std::hint::black_box(vec![round as u64 + 1; PAGES * PAGE_BYTES / 8]));
            scan(part)
        })
        .collect();
    let text = format!(
        "{} {} {} {} {}",
        quantile(&mut missed, 0.5),
        quantile(&mut missed, 0.99),
        median(&mut scans),
        median(&mut roomy),
        began.elapsed().as_secs_f64()
    );
    Ok(std::fs::write(results, text)?)
}

/// Reads a word of each page, in order, and returns pages per second.
fn scan(memory: &[u64]) -> f64 {
    let began = Instant::now();
    let sum: u64 = memory.iter().step_by(PAGE_BYTES / 8).fold(0, |sum, word| sum ^ word);
    std::hint::black_box(sum);
    (memory.len() * 8 / PAGE_BYTES) as f64 / began.elapsed().as_secs_f64()
}
