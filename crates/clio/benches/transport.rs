//! Cost of an operation at its client and its node when many go together, without a network: `cargo
//! bench -p ethermem-clio --bench transport`.
//!
//! 64 operations are submitted, sent in one datagram, answered in one datagram and polled. Each
//! part is timed alone; the result is the median of the rounds.

use std::hint::black_box;
use std::time::Instant;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::transport::{Client, ClientConfig, Completed, Event};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::clio::{Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId};

const ROUNDS: u64 = 20_000;
const TOGETHER: u64 = 64;
const DATAGRAM_BYTES: usize = 65_507;
const PAGES: u64 = 1024;
const PAGE: PageSize = PageSize::Kib4;
/// Distance between the addresses of two operations: a quarter of a page.
const STEP_BYTES: u64 = 1024;
const REGION_BYTES: u64 = PAGES / 2 * PAGE.bytes();
/// A round trip long enough that the node has room for the results of all writes within a
/// datagram's life.
const ROUND_TRIP_NS: u64 = 1_000_000;

struct Pair {
    now: u64,
    client: Client,
    node: Node<Vec<u8>>,
    process: ProcessId,
    region: u64,
    request: Vec<u8>,
    answer: Vec<u8>,
}

fn node_config() -> NodeConfig {
    NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(PAGES * PAGE.bytes()),
            page: PAGE,
            tlb_entries: 4096,
            fault_buffer_pages: 512,
        },
        key: HashKey([5, 6]),
        epoch: Epoch(1),
        sender: SenderId(1),
        protection: Protection::Carrier,
        data_bytes_max: 65_000,
        processes_max: 16,
        recent_requests: 1 << 14,
        lifetime_max: Ns(100_000_000),
        keep: Ns(5_000_000_000),
        lease: Ns(u64::MAX),
        tenants: vec![(TenantId(0), Quota::UNLIMITED)],
    }
}

fn client_config() -> ClientConfig {
    ClientConfig {
        sender: SenderId(2),
        tenant: TenantId(0),
        protection: Protection::Carrier,
        datagram_bytes_max: DATAGRAM_BYTES,
        datagram_bytes_base: DATAGRAM_BYTES,
        window_max: 256,
        incast_window: Bytes(4 << 20),
        queueing_target: Ns(200_000),
        retry_after_min: Ns(40_000),
        retry_after_max: Ns(100_000_000),
        give_up_after: Ns(2_000_000_000),
    }
}

impl Pair {
    fn new() -> Pair {
        let memory = vec![0; (PAGES * PAGE.bytes()) as usize];
        let mut pair = Pair {
            now: 1,
            client: Client::new(client_config()).expect("a client can be so"),
            node: Node::new(node_config(), memory).expect("a node can be so"),
            process: ProcessId(0),
            region: 0,
            request: vec![0; DATAGRAM_BYTES],
            answer: vec![0; DATAGRAM_BYTES],
        };
        let Completed::Created(process) = pair.one(Request::CreateProcess) else {
            panic!("a process is made");
        };
        pair.process = process;
        let permissions = Permissions::READ_WRITE;
        let allocate = Request::Allocate { bytes: REGION_BYTES, at: 0, permissions };
        let Completed::Address(region) = pair.one(allocate) else { panic!("there is room") };
        pair.region = region;
        pair
    }

    fn one(&mut self, request: Request<'static>) -> Completed {
        self.client.submit(self.process, request);
        self.exchange();
        self.node.tend(Ns(self.now), 1 << 20);
        let Event { outcome, .. } = self.client.poll_event().expect("it was answered");
        outcome.expect("it is allowed")
    }

    /// Exchanges datagrams until none is left. Returns the times of writing, answering and
    /// receiving.
    fn exchange(&mut self) -> [u64; 3] {
        let mut took = [0; 3];
        loop {
            let start = Instant::now();
            let bytes = self.client.poll_transmit(Ns(self.now), &mut self.request);
            took[0] += start.elapsed().as_nanos() as u64;
            if bytes == 0 {
                return took;
            }
            self.now += ROUND_TRIP_NS / 2;
            let start = Instant::now();
            let asked = &self.request[..bytes];
            let bytes = self.node.on_datagram(Ns(self.now), asked, &mut self.answer);
            took[1] += start.elapsed().as_nanos() as u64;
            self.now += ROUND_TRIP_NS / 2;
            let start = Instant::now();
            self.client.on_datagram(Ns(self.now), &self.answer[..bytes]);
            took[2] += start.elapsed().as_nanos() as u64;
        }
    }

    fn address(&self, index: u64) -> u64 {
        self.region + index * STEP_BYTES % (REGION_BYTES - 8192)
    }

    /// Times of submitting, writing, answering and receiving, for operations with `each` accesses.
    fn round(&mut self, each: u64, ask: &impl Fn(&mut Pair, u64), first: u64) -> [u64; 4] {
        let start = Instant::now();
        for index in (first..first + TOGETHER).step_by(each as usize) {
            ask(self, index);
        }
        let asked = start.elapsed().as_nanos() as u64;
        let [written, answered, heard] = self.exchange();
        let start = Instant::now();
        for _ in 0..TOGETHER / each {
            let Some(event) = self.client.poll_event() else {
                panic!("not all were answered: {:?}, {:?}", self.node.counters(), first / TOGETHER);
            };
            black_box(event.outcome.expect("they are allowed"));
        }
        let heard = heard + start.elapsed().as_nanos() as u64;
        self.node.tend(Ns(self.now), 1 << 16);
        [asked, written, answered, heard]
    }
}

fn measure(name: &str, each: u64, ask: impl Fn(&mut Pair, u64)) {
    let mut pair = Pair::new();
    let rounds: Vec<[u64; 4]> =
        (0..ROUNDS).map(|round| pair.round(each, &ask, round * TOGETHER)).collect();
    let [asked, written, answered, heard] = core::array::from_fn(|part| {
        let mut times: Vec<u64> = rounds.iter().map(|round| round[part]).collect();
        times.sort_unstable();
        times[times.len() / 2] as f64 / TOGETHER as f64
    });
    println!("| {name} | {asked:.0} | {written:.0} | {answered:.0} | {heard:.0} |");
}

fn main() {
    println!("Nanoseconds of an access, {TOGETHER} together:");
    println!("| access | asked for | written | answered by the node | heard |");
    println!("|---|---|---|---|---|");
    for bytes in [64, 4096] {
        measure(&format!("read {bytes} B"), 1, |pair: &mut Pair, index| {
            let address = pair.address(index);
            pair.client.submit(pair.process, Request::Read { address, bytes });
        });
        measure(&format!("read {bytes} B by gathers of 32"), 32, |pair: &mut Pair, index| {
            let places: [_; 32] =
                std::array::from_fn(|at| (pair.address(index + at as u64), bytes.into()));
            pair.client.submit_gather(pair.process, places.into_iter());
        });
    }
    measure("write 64 B", 1, |pair: &mut Pair, index| {
        let address = pair.address(index);
        pair.client.submit_write(pair.process, address, vec![7; 64]);
    });
}
