//! What an operation costs the node, for 1 to 10,000 processes and 1 to 2^20 regions, and at the
//! first touch of a page: `cargo bench -p ethermem-clio --bench flat`.
//!
//! Each turn measures every case once, and the case of one process or one region before each, so
//! that what else runs on the machine falls on both; what counts is the median of the ratios of a
//! turn. Beside a case stands its floor: the same bytes read from the same places of a plain array,
//! in the same order, each after the one before, which costs the machine's own caches and TLB.

use std::hint::black_box;
use std::time::Instant;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{
    ENVELOPE_BYTES, Envelope, Epoch, Permissions, ProcessId, Protection, Reply, Request, RequestId,
    RequestPacket, ResponsePacket, SenderId, TenantId,
};

const TURNS: usize = 15;
const OPERATIONS: u64 = 20_000;
const READ_BYTES: u32 = 64;
const PROCESSES: [u64; 5] = [1, 10, 100, 1_000, 10_000];
const REGION_BITS: [u32; 6] = [0, 4, 8, 12, 16, 20];
/// What a 64 B read takes by UDP between two processes of such a machine: `benches/floors`.
const ROUND_TRIP_NS: f64 = 3_600.0;
const PAGE: PageSize = PageSize::Kib4;

/// A node and the addresses that are read.
struct Case {
    node: Node<Vec<u8>>,
    targets: Vec<(ProcessId, u64)>,
    envelope: Envelope,
    requests: u64,
    /// The floor's memory.
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
        // What the system does at a first touch is not the node's.
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

    /// A request by itself, acknowledged by the next.
    fn ask(&mut self, process: ProcessId, body: Request<'_>) -> Option<Reply<'static>> {
        // The clock goes on, so that what was acknowledged is forgotten.
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

    /// Nanoseconds of a read, over targets in an order that caches cannot foresee.
    fn read_ns(&mut self) -> f64 {
        let (mut request, mut answer) = ([0; 256], [0; 256]);
        let begin = Instant::now();
        for turn in 0..OPERATIONS {
            let (process, address) = self.targets[scattered(turn, self.targets.len())];
            let length =
                self.emit(&mut request, process, Request::Read { address, bytes: READ_BYTES });
            let now = Ns(self.requests);
            let answered = self.node.on_datagram(now, &request[..length], &mut answer);
            assert!(answered > READ_BYTES as usize, "a read is answered");
            black_box(&answer);
            self.node.tend(now, 0);
        }
        begin.elapsed().as_nanos() as f64 / OPERATIONS as f64
    }

    /// The floor of the same.
    fn floor_ns(&mut self) -> f64 {
        let mut answer = [0; READ_BYTES as usize];
        let begin = Instant::now();
        let mut found = 1;
        for turn in 0..OPERATIONS {
            // What was read decides where is read next, as a table decides where a page is.
            let at = scattered(turn + found - 1, self.targets.len()) << PAGE.bits();
            answer.copy_from_slice(&self.plain[at..at + READ_BYTES as usize]);
            found = u64::from(black_box(&answer)[0]);
        }
        begin.elapsed().as_nanos() as f64 / OPERATIONS as f64
    }
}

fn scattered(turn: u64, count: usize) -> usize {
    (turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20) as usize % count
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Gives every page memory, and every cache what it can hold.
fn warm(mut case: Case) -> Case {
    for at in 0..case.targets.len() {
        let (process, address) = case.targets[at];
        let written = case.ask(process, Request::Write { address, data: &[1; 8] });
        assert_eq!(written, Some(Reply::Done));
    }
    case.read_ns();
    case
}

/// Each case in turns with that of one, one after the other, since the largest takes gigabytes.
fn compare(what: &str, counts: &[u64], make: impl Fn(u64) -> Case) {
    println!("{what:>10}  node ns  floor ns  ratio to 1  of a round trip of {ROUND_TRIP_NS} ns");
    let mut one = warm(make(1));
    for &count in counts {
        let mut case = warm(make(count));
        let mut samples = [const { Vec::new() }; 4];
        for _ in 0..TURNS {
            let (first, node, floor) = (one.read_ns(), case.read_ns(), case.floor_ns());
            for (list, value) in samples.iter_mut().zip([node, floor, node / first, node - first]) {
                list.push(value);
            }
        }
        let [node, floor, ratio, more] = samples.each_mut().map(|list| median(list));
        let share = more / ROUND_TRIP_NS * 100.0;
        println!("{count:>10}{node:>9.1}{floor:>10.1}{ratio:>12.2}{share:>+10.1} %");
    }
    println!();
}

/// First touches beside second ones, of the same pages of a node that is new each time.
fn first_touch() {
    let (mut firsts, mut seconds, mut apart) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..TURNS {
        let mut case = Case::new(1, 1 << 13);
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
        firsts.push(first);
        seconds.push(second);
        apart.push(first - second);
    }
    let (first, second) = (median(&mut firsts), median(&mut seconds));
    let apart = median(&mut apart);
    println!("first touch {first:.1} ns, second {second:.1} ns, apart {apart:.1} ns");
}

fn main() {
    compare("processes", &PROCESSES, |processes| Case::new(processes, 1));
    let regions = REGION_BITS.map(|bits| 1 << bits);
    compare("regions", &regions, |regions| Case::new(1, regions));
    first_touch();
}
