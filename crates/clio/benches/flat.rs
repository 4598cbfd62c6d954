//! Cost of an operation at the node, for 1 to 10,000 processes and 1 to 2^20 regions, and at the
//! first touch of a page: `cargo bench -p ethermem-clio --bench flat`.
//!
//! Each turn measures every case once, preceded by the case of one process or one region. So other
//! load on the machine affects both; the result is the median of a turn's ratios. Beside a case
//! stands its floor. It reads equal bytes from equal places of a plain array, in equal order, each
//! read after the previous one: the cost of the machine's own caches and TLB.
//!
//! `-- --quick` runs few repetitions of everything. `-- count processes 1000 5000` and `-- count
//! regions 65536 5000` do this many reads of one case and nothing else. Two runs of different
//! lengths under `valgrind` differ by the instructions and misses of the reads, which are equal on
//! any machine.

use std::hint::black_box;
use std::time::Instant;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, Epoch, Permissions, ProcessId, Protection, Reply, Request, RequestId,
    RequestPacket, ResponsePacket, SenderId, TenantId,
};

const READ_BYTES: u32 = 64;
const PROCESSES: [u64; 5] = [1, 10, 100, 1_000, 10_000];
const REGION_BITS: [u32; 6] = [0, 4, 8, 12, 16, 20];
/// Time of a 64 B read by UDP between two processes of such a machine: `benches/floors`.
const ROUND_TRIP_NS: f64 = 3_600.0;
const PAGE: PageSize = PageSize::Kib4;

/// The extent of a measurement.
#[derive(Clone, Copy)]
struct Extent {
    turns: usize,
    operations: u64,
    /// Largest case; larger ones are left out.
    most: u64,
}

const WHOLE: Extent = Extent { turns: 15, operations: 20_000, most: u64::MAX };
const QUICK: Extent = Extent { turns: 3, operations: 500, most: 256 };

/// A node, and the addresses to read.
struct Case {
    node: Node<Vec<u8>>,
    targets: Vec<(ProcessId, u64)>,
    envelope: Envelope,
    requests: u64,
    /// The array of the floor.
    plain: Vec<u8>,
}

fn config(pages: u64) -> NodeConfig {
    NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(pages * PAGE.bytes()),
            page: PAGE,
            tlb_entries: 4096,
            fault_buffer_pages: 1024,
        },
        key: HashKey([5, 6]),
        epoch: Epoch(1),
        sender: SenderId(1),
        protection: Protection::Carrier,
        data_bytes_max: 1408,
        processes_max: 10_001,
        recent_requests: 1 << 14,
        lifetime_max: Ns(u64::MAX / 4),
        keep: Ns(u64::MAX / 2),
        lease: Ns(u64::MAX),
        tenants: vec![(TenantId(1), Quota::UNLIMITED)],
    }
}

impl Case {
    fn new(processes: u64, regions_each: u64) -> Case {
        let pages = (processes * regions_each).max(1024);
        let mut bytes = vec![0; (pages * PAGE.bytes()) as usize];
        // The system's work at a first touch is not the node's, so it is done before.
        bytes.iter_mut().step_by(PAGE.bytes() as usize).for_each(|octet| *octet = black_box(0));
        let mut case = Case {
            node: Node::new(config(pages), bytes).expect("a node can be so"),
            targets: Vec::new(),
            envelope: Envelope {
                protection: Protection::Carrier,
                tenant: TenantId(1),
                epoch: Epoch(1),
                sender: SenderId(2),
                sequence: 0,
                clock: Ns(1),
            },
            requests: 0,
            plain: vec![1; (pages * PAGE.bytes()) as usize],
        };
        for _ in 0..processes {
            let Some(Reply::Created(process)) = case.ask(ProcessId(0), Request::CreateProcess)
            else {
                panic!("there is room for each process");
            };
            for _ in 0..regions_each {
                let permissions = Permissions::READ_WRITE;
                let body = Request::Allocate { bytes: PAGE.bytes(), at: 0, permissions };
                let Some(Reply::Address(at)) = case.ask(process, body) else {
                    panic!("there is a page for each region");
                };
                case.targets.push((process, at));
            }
        }
        case
    }

    /// Sends one request; the next request acknowledges it.
    fn ask(&mut self, process: ProcessId, body: Request<'_>) -> Option<Reply<'static>> {
        // The clock advances, so that acknowledged requests are forgotten.
        let now = Ns(self.requests + 1);
        let (mut request, mut answer) = ([0; 256], [0; 256]);
        let length = self.emit(&mut request, process, body);
        let length = self.node.on_datagram(now, &request[..length], &mut answer);
        self.node.tend(now, 1 << 16);
        let packet = ResponsePacket::packets(answer.get(ENVELOPE_BYTES..length)?).next()?.ok()?;
        match packet.reply {
            Reply::Created(process) => Some(Reply::Created(process)),
            Reply::Address(address) => Some(Reply::Address(address)),
            Reply::Done => Some(Reply::Done),
            other => panic!("{other:?}"),
        }
    }

    fn emit(&mut self, into: &mut [u8], process: ProcessId, body: Request<'_>) -> usize {
        self.requests += 1;
        self.envelope.sequence += 1;
        self.envelope.clock = Ns(self.requests);
        let packet = RequestPacket {
            attempt: 0,
            process,
            request: RequestId(self.requests),
            acknowledged: RequestId(self.requests - 1),
            body,
        };
        let front = self.envelope.emit(into).expect("there is room");
        front + packet.emit(&mut into[front..]).expect("there is room")
    }

    /// Nanoseconds per read, over targets in an order that caches cannot predict.
    fn read_ns(&mut self, operations: u64) -> f64 {
        let (mut request, mut answer) = ([0; 256], [0; 256]);
        let begin = Instant::now();
        for turn in 0..operations {
            let (process, address) = self.targets[scattered(turn, self.targets.len())];
            let length =
                self.emit(&mut request, process, Request::Read { address, bytes: READ_BYTES });
            let now = Ns(self.requests);
            let answered = self.node.on_datagram(now, &request[..length], &mut answer);
            assert!(answered > READ_BYTES as usize, "a read is answered");
            black_box(&answer);
            self.node.tend(now, 0);
        }
        begin.elapsed().as_nanos() as f64 / operations as f64
    }

    /// Page table accesses per read, since there were `before`.
    fn accesses_a_read(&self, before: u64, reads: u64) -> f64 {
        (self.accesses() - before) as f64 / reads as f64
    }

    fn accesses(&self) -> u64 {
        self.node.memory().map().counters().table_accesses
    }

    /// Nanoseconds per read of the floor.
    fn floor_ns(&mut self, operations: u64) -> f64 {
        let mut answer = [0; READ_BYTES as usize];
        let begin = Instant::now();
        let mut found = 1;
        for turn in 0..operations {
            // The bytes read decide the next read's place, as a table decides where a page is.
            let at = scattered(turn + found - 1, self.targets.len()) << PAGE.bits();
            answer.copy_from_slice(&self.plain[at..at + READ_BYTES as usize]);
            found = u64::from(black_box(&answer)[0]);
        }
        begin.elapsed().as_nanos() as f64 / operations as f64
    }
}

fn scattered(turn: u64, count: usize) -> usize {
    (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % count
}

/// The median, the minimum and the maximum.
fn spread(values: &mut [f64]) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [values[values.len() / 2], values[0], values[values.len() - 1]]
}

/// Gives every page its memory, and fills every cache.
fn warm(mut case: Case) -> Case {
    for at in 0..case.targets.len() {
        let (process, address) = case.targets[at];
        let written = case.ask(process, Request::Write { address, data: &[1; 8] });
        assert_eq!(written, Some(Reply::Done));
    }
    case.read_ns(case.targets.len() as u64);
    case
}

/// Compares each case in turns with the case of one. Cases run one after the other, since the
/// largest takes gigabytes.
fn compare(what: &str, counts: &[u64], extent: Extent, make: impl Fn(u64) -> Case) {
    println!(
        "| {what} | node, ns | floor, ns | over that of 1 | of a round trip | table, a read |"
    );
    println!("|---|---|---|---|---|---|");
    let mut one = warm(make(1));
    for &count in counts.iter().filter(|&&count| count <= extent.most) {
        let mut case = warm(make(count));
        let before = case.accesses();
        let mut samples = [const { Vec::new() }; 4];
        for _ in 0..extent.turns {
            let (first, node) = (one.read_ns(extent.operations), case.read_ns(extent.operations));
            let floor = case.floor_ns(extent.operations);
            for (list, value) in samples.iter_mut().zip([node, floor, node / first, node - first]) {
                list.push(value);
            }
        }
        let accesses = case.accesses_a_read(before, extent.turns as u64 * extent.operations);
        let [node, floor, ratio, more] = samples.each_mut().map(|list| spread(list));
        let [more, least, most] = more.map(|more| more / ROUND_TRIP_NS * 100.0);
        println!(
            "| {count} | {:.1} ({:.1} to {:.1}) | {:.1} | {:.2} ({:.2} to {:.2}) \
             | {more:+.1} % ({least:+.1} to {most:+.1}) | {accesses:.3} |",
            node[0], node[1], node[2], floor[0], ratio[0], ratio[1], ratio[2]
        );
    }
    println!();
}

/// Compares first touches with second touches of the pages of a fresh node.
fn first_touch(extent: Extent) {
    let mut samples = [const { Vec::new() }; 3];
    for _ in 0..extent.turns {
        let mut case = Case::new(1, extent.most.min(1 << 13));
        let mut pass = || {
            let (mut request, mut answer) = ([0; 256], [0; 256]);
            let begin = Instant::now();
            for at in 0..case.targets.len() {
                let (process, address) = case.targets[at];
                let length =
                    case.emit(&mut request, process, Request::Read { address, bytes: READ_BYTES });
                let now = Ns(case.requests);
                let answered = case.node.on_datagram(now, &request[..length], &mut answer);
                assert!(answered > READ_BYTES as usize, "a page is ready");
                case.node.tend(now, 0);
            }
            begin.elapsed().as_nanos() as f64 / case.targets.len() as f64
        };
        let (first, second) = (pass(), pass());
        for (list, value) in samples.iter_mut().zip([first, second, first - second]) {
            list.push(value);
        }
    }
    let [first, second, apart] = samples.each_mut().map(|list| spread(list));
    println!(
        "first touch {:.1} ns, second {:.1} ns, apart {:.1} ns ({:.1} to {:.1})",
        first[0], second[0], apart[0], apart[1], apart[2]
    );
}

/// Runs a number of reads of a case, for a program that counts instructions from outside.
fn count(words: &[&str]) -> Option<()> {
    let &[what, count, operations] = words else { return None };
    let (count, operations) = (count.parse().ok()?, operations.parse().ok()?);
    let case = match what {
        "processes" => Case::new(count, 1),
        "regions" => Case::new(1, count),
        _ => return None,
    };
    let mut case = warm(case);
    let before = case.accesses();
    case.read_ns(operations);
    let accesses = case.accesses_a_read(before, operations);
    println!("{what} {count}: {operations} reads, {accesses:.3} accesses to the table each");
    Some(())
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let extent = match words[..] {
        [] => WHOLE,
        ["--quick"] => QUICK,
        ["count", ref rest @ ..] if count(rest).is_some() => return,
        _ => {
            eprintln!("error: must be --quick and count processes|regions COUNT READS");
            std::process::exit(2);
        }
    };
    compare("processes", &PROCESSES, extent, |processes| Case::new(processes, 1));
    let regions = REGION_BITS.map(|bits| 1 << bits);
    compare("regions", &regions, extent, |regions| Case::new(1, regions));
    first_touch(extent);
}
