//! Measures a read over UDP on loopback, for 1 to 10,000 processes and 1 to 2^20 regions, and at
//! the first touch of a page: `cargo bench -p ethermem-node --bench flat`, or with `-- --quick`.
//!
//! One node, started as `ethermem node` starts it, has all of it. Each turn first reads one region
//! repeatedly, and then all regions in an order that caches cannot predict. Both use one server,
//! socket and machine. The result is the median of the turns' ratios of medians. Both ends poll,
//! the client on CPU 0 and the node on CPU 1. The state machine alone is measured by `cargo bench
//! -p ethermem-clio --bench flat`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use ethermem_clio::memory::PageSize;
use ethermem_clio::transport::Completed;
use ethermem_node::NodeOptions;
use ethermem_udp::{ClientOptions, Driver, NodePlace};
use ethermem_units::Bytes;
use ethermem_wire::clio::{Permissions, ProcessId, Request, TenantId};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

const PAGE: PageSize = PageSize::Kib4;
const READ_BYTES: u32 = 64;
const PROCESSES: [u64; 4] = [1, 100, 1_000, 10_000];
const REGION_BITS: [u32; 4] = [0, 10, 16, 20];
/// Number of allocations in flight.
const TOGETHER: usize = 16;

/// Number and size of the measurements.
#[derive(Clone, Copy)]
struct Extent {
    turns: usize,
    reads: usize,
    /// Larger cases are skipped.
    most: u64,
}

const WHOLE: Extent = Extent { turns: 15, reads: 5_000, most: u64::MAX };
const QUICK: Extent = Extent { turns: 3, reads: 200, most: 1 << 10 };

/// A node in a thread of its own, a client of it, and the targets of reads.
struct Pair {
    client: Driver,
    targets: Vec<(ProcessId, u64)>,
    stop: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Pair {
    fn new(processes: u64, regions_each: u64) -> Pair {
        let pages = (processes * regions_each).max(1024);
        let memory = Bytes(pages * PAGE.bytes());
        let options = NodeOptions { page: PAGE, ..NodeOptions::in_clear(memory) };
        let mut started = ethermem_node::start(&options).expect("there is memory");
        let node = started.server.address().expect("it is bound");
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let serving = std::thread::spawn(move || {
            stay_on(1);
            started.server.run(Duration::from_secs(1), &told).expect("it serves");
        });
        let options = ClientOptions {
            node: NodePlace::Udp(node),
            tenant: TenantId(0),
            key: None,
            datagram_bytes_max: None,
            window: 64,
            incast_window: Bytes(1 << 20),
            give_up_after: Duration::from_secs(30),
        };
        let client = Driver::connect(&options).expect("the node is there");
        let mut pair = Pair { client, targets: Vec::new(), stop, serving: Some(serving) };
        let made = pair.all(&vec![(ProcessId(0), Request::CreateProcess); processes as usize]);
        let asked: Vec<_> = made
            .iter()
            .flat_map(|made| {
                let Completed::Created(process) = *made else { panic!("{made:?}") };
                let permissions = Permissions::READ_WRITE;
                let allocate = Request::Allocate { bytes: PAGE.bytes(), at: 0, permissions };
                vec![(process, allocate); regions_each as usize]
            })
            .collect();
        let allocated = pair.all(&asked);
        pair.targets = asked
            .iter()
            .zip(allocated)
            .map(|((process, _), allocated)| match allocated {
                Completed::Address(address) => (*process, address),
                other => panic!("{other:?}"),
            })
            .collect();
        pair
    }

    /// Submits all requests, some at once, and returns their results.
    fn all(&mut self, asked: &[(ProcessId, Request<'static>)]) -> Vec<Completed> {
        let mut done = Vec::with_capacity(asked.len());
        for some in asked.chunks(TOGETHER) {
            let named: Vec<_> = some
                .iter()
                .map(|(process, request)| self.client.client().submit(*process, *request))
                .collect();
            let mut outcomes = vec![None; named.len()];
            self.client.send().expect("the socket takes it");
            while outcomes.iter().any(Option::is_none) {
                self.client.turn().expect("the socket gives it");
                while let Some(event) = self.client.client().poll_event() {
                    let at = named.iter().position(|&name| name == event.operation);
                    outcomes[at.expect("it was asked for")] =
                        Some(event.outcome.expect("it is allowed"));
                }
            }
            done.extend(outcomes.into_iter().flatten());
        }
        done
    }

    /// Nanoseconds of a read, from its submission to its result.
    fn read_ns(&mut self, at: usize) -> f64 {
        let (process, address) = self.targets[at];
        let begin = Instant::now();
        self.client.client().submit(process, Request::Read { address, bytes: READ_BYTES });
        self.client.send().expect("the socket takes it");
        let event = loop {
            self.client.turn().expect("the socket gives it");
            if let Some(event) = self.client.client().poll_event() {
                break event;
            }
        };
        let took = begin.elapsed();
        let Ok(Completed::Bytes(_)) = event.outcome else { panic!("{event:?}") };
        took.as_nanos() as f64
    }

    /// The median of `reads` reads; `which` maps a read's number to its target.
    fn median_ns(&mut self, reads: usize, which: impl Fn(usize) -> usize) -> f64 {
        let mut times: Vec<f64> = (0..reads).map(|turn| self.read_ns(which(turn))).collect();
        spread(&mut times)[0]
    }
}

/// Pins the calling thread to a CPU, and prints a line if it cannot.
fn stay_on(cpu: usize) {
    let mut set = CpuSet::new();
    let bound = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
    if let Err(problem) = bound {
        println!("not bound to CPU {cpu}: {problem}");
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.serving.take().expect("it was started").join();
        assert!(ended.is_ok() || std::thread::panicking(), "the node panicked");
    }
}

fn scattered(turn: usize, count: usize) -> usize {
    ((turn as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % count
}

/// The median, the minimum and the maximum.
fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

fn line(name: &str, samples: &mut [Vec<f64>; 4]) {
    let [of_one, of_all, ratio, apart] = samples.each_mut().map(|list| spread(list));
    println!(
        "| {name} | {:.0} | {:.0} ({:.0} to {:.0}) | {:.3} ({:.3} to {:.3}) \
         | {:+.0} ({:+.0} to {:+.0}) |",
        of_one[0],
        of_all[0],
        of_all[1],
        of_all[2],
        ratio[0],
        ratio[1],
        ratio[2],
        apart[0],
        apart[1],
        apart[2]
    );
}

/// Compares reads of one target with reads of all.
fn compare(name: &str, mut pair: Pair, extent: Extent) {
    let count = pair.targets.len();
    // Every page gets memory.
    for at in 0..count {
        pair.read_ns(at);
    }
    let mut samples = [const { Vec::new() }; 4];
    for turn in 0..extent.turns {
        let one = pair.median_ns(extent.reads, |_| 0);
        let first = turn * extent.reads;
        let all = pair.median_ns(extent.reads, |at| scattered(first + at, count));
        for (list, value) in samples.iter_mut().zip([one, all, all / one, all - one]) {
            list.push(value);
        }
    }
    line(name, &mut samples);
}

/// Compares the first touch of pages with the second.
fn first_touch(extent: Extent) {
    let mut samples = [const { Vec::new() }; 4];
    for _ in 0..extent.turns {
        let count = extent.reads.min(1 << 13);
        let mut pair = Pair::new(1, count as u64);
        let first = pair.median_ns(count, |at| at);
        let second = pair.median_ns(count, |at| at);
        for (list, value) in samples.iter_mut().zip([second, first, first / second, first - second])
        {
            list.push(value);
        }
    }
    line("first touch beside the second", &mut samples);
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let extent = match words[..] {
        [] => WHOLE,
        ["--quick"] => QUICK,
        _ => {
            eprintln!("error: must be --quick");
            std::process::exit(2);
        }
    };
    println!(
        "| read of 64 B | of one, ns | of all, ns | ratio | apart, ns |\n|---|---|---|---|---|"
    );
    for processes in PROCESSES.into_iter().filter(|&count| count <= extent.most) {
        compare(&format!("{processes} processes"), Pair::new(processes, 1), extent);
    }
    for regions in REGION_BITS.map(|bits| 1 << bits).into_iter().filter(|&n| n <= extent.most) {
        compare(&format!("{regions} regions"), Pair::new(1, regions), extent);
    }
    first_touch(extent);
}
