//! The transport against a node: clocks that stand still, and requests that take long.

use std::sync::Arc;
use std::task::Poll;

use ethermem_clio::Address;
use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError, OffloadLimits, Sliced};
use ethermem_clio::transport::{Client, ClientConfig, Completed, OperationError};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    Envelope, Epoch, Permissions, ProcessId, Protection, Request, SenderId, TenantId,
};

const MS: u64 = 1_000_000;
const PAGE: u64 = 4096;
const MEMORY: u64 = 16 * PAGE;
/// Time of a datagram or an answer on its way.
const WAY: u64 = 5_000;

/// A client and a node with clocks of their own.
struct Pair {
    client: Client,
    node: Node<Vec<u8>>,
    now: u64,
    /// Time by which the node's clock is ahead of the client's.
    ahead: u64,
    loses_answers: bool,
    /// Time of a datagram or an answer on its way.
    way: u64,
    /// The deadline of each datagram, by the node's clock.
    lives: Vec<Ns>,
    process: ProcessId,
    /// The address of a page.
    at: u64,
}

impl Pair {
    fn new() -> Pair {
        let client = Client::new(ClientConfig {
            sender: SenderId(77),
            tenant: TenantId(1),
            protection: Protection::Crc,
            datagram_bytes_max: 1472,
            datagram_bytes_base: 1472,
            window_max: 16,
            incast_window: Bytes(1 << 20),
            queueing_target: Ns(200_000),
            retry_after_min: Ns(40_000),
            retry_after_max: Ns(100 * MS),
            give_up_after: Ns(2_000 * MS),
        });
        let config = NodeConfig {
            memory: MemoryConfig {
                memory: Bytes(MEMORY),
                page: PageSize::Kib4,
                tlb_entries: 16,
                fault_buffer_pages: 8,
            },
            key: HashKey([11, 12]),
            epoch: Epoch(41),
            sender: SenderId(u64::MAX),
            protection: Protection::Crc,
            data_bytes_max: 1400,
            processes_max: 4,
            recent_requests: 64,
            lifetime_max: Ns(100 * MS),
            keep: Ns(5_000 * MS),
            lease: Ns(u64::MAX),
            tenants: vec![(TenantId(1), Quota::UNLIMITED)],
        };
        let node = Node::new(config, vec![0; MEMORY as usize]).expect("a node can be so");
        let process = ProcessId(0);
        let client = client.expect("a client can be so");
        let (now, ahead, loses_answers) = (1, 7_200_000 * MS, false);
        let (way, lives) = (WAY, Vec::new());
        let mut pair = Pair { client, node, now, ahead, loses_answers, way, lives, process, at: 0 };
        let Ok(Completed::Created(process)) = pair.run(Request::CreateProcess) else {
            panic!("a process");
        };
        pair.process = process;
        let permissions = Permissions::READ_WRITE;
        let allocate = Request::Allocate { bytes: PAGE, at: 0, permissions };
        let Ok(Completed::Address(at)) = pair.run(allocate) else { panic!("a page") };
        pair.at = at;
        pair
    }

    /// Sends everything that is due and delivers the answers, then advances to the next wake-up.
    fn step(&mut self) {
        let mut datagram = vec![0; 65_507];
        loop {
            let bytes = self.client.poll_transmit(Ns(self.now), &mut datagram);
            if bytes == 0 {
                break;
            }
            let sent = Envelope::open(&datagram[..bytes]).expect("it is a datagram");
            self.lives.push(sent.envelope.clock);
            self.now += self.way;
            let mut answer = vec![0; 65_507];
            let there = Ns(self.now + self.ahead);
            let length = self.node.on_datagram(there, &datagram[..bytes], &mut answer);
            self.now += self.way;
            if length > 0 && !self.loses_answers {
                self.client.on_datagram(Ns(self.now), &answer[..length]);
            }
        }
        self.node.tend(Ns(self.now + self.ahead), 0);
        let wake = self.client.next_wake().map_or(u64::MAX, |wake| wake.0);
        self.now = wake.clamp(self.now + 1_000, self.now + MS);
    }

    fn run(&mut self, request: Request<'static>) -> Result<Completed, OperationError> {
        let id = self.client.submit(self.process, request);
        let began = self.now;
        loop {
            self.step();
            while let Some(event) = self.client.poll_event() {
                if event.operation == id {
                    return event.outcome;
                }
            }
            assert!(self.now - began < 60_000 * MS, "{request:?} has waited for a minute");
        }
    }

    fn read(&mut self) -> Result<Completed, OperationError> {
        self.run(Request::Read { address: self.at, bytes: 8 })
    }

    fn add(&mut self) -> Request<'static> {
        Request::Modify { address: self.at, operation: RmwOperation::FetchAndAdd(1) }
    }

    fn word(&mut self) -> u64 {
        let Ok(Completed::Bytes(word)) = self.read() else { panic!("it is read") };
        u64::from_le_bytes(word.try_into().expect("8 B"))
    }

    /// Lets the node execute a request, and loses the answer.
    fn unheard(&mut self, request: Request<'static>) {
        self.client.submit(self.process, request);
        self.loses_answers = true;
        self.step();
        self.loses_answers = false;
    }

    fn outcome(&mut self) -> Result<Completed, OperationError> {
        loop {
            self.step();
            if let Some(event) = self.client.poll_event() {
                return event.outcome;
            }
        }
    }
}

/// The client's machine sleeps for longer than the node remembers executed requests. The client's
/// clock does not count that time.
#[test]
fn an_atomic_is_executed_once_though_the_client_slept() {
    let mut pair = Pair::new();
    let add = pair.add();
    pair.unheard(add);
    pair.ahead += 60_000 * MS;
    assert_eq!(pair.outcome(), Err(OperationError::Lost));
    assert_eq!(pair.word(), 1);
    // While the node remembers the request, its answer arrives.
    pair.unheard(add);
    pair.ahead += 1_000 * MS;
    assert_eq!(pair.outcome(), Ok(Completed::Word(1)));
    assert_eq!(pair.word(), 2);
}

/// A request is forgotten after the deadline of its last datagram. An earlier datagram, sent when
/// the way and lifetimes were long, must be over by then, too.
#[test]
fn no_datagram_lives_less_long_than_one_before_it() {
    let mut pair = Pair::new();
    for way in [10 * MS, WAY, 3 * MS, WAY] {
        pair.way = way;
        for _ in 0..100 {
            assert!(pair.read().is_ok());
        }
    }
    let goes_back = pair.lives.windows(2).find(|two| two[0] > two[1]);
    assert_eq!(goes_back, None);
}

/// The node's machine stands still, and its clock with it.
#[test]
fn a_client_gets_over_a_node_whose_clock_stood_still() {
    for stood_ms in [90, 200, 1_500, 60_000, 3_600_000] {
        let mut pair = Pair::new();
        assert_eq!(pair.word(), 0);
        let add = pair.add();
        pair.unheard(add);
        pair.now += stood_ms * MS;
        pair.ahead -= stood_ms * MS;
        let began = pair.now;
        let known = pair.outcome();
        assert!(matches!(known, Ok(Completed::Word(0)) | Err(OperationError::Lost)), "{known:?}");
        assert_eq!(pair.word(), 1, "after {stood_ms} ms");
        assert_eq!(pair.run(add), Ok(Completed::Word(1)), "after {stood_ms} ms");
        assert!(pair.now - began < 5_000 * MS, "{} ms for {stood_ms}", (pair.now - began) / MS);
    }
}

/// An operation in slices without an end.
struct Endless;

impl Sliced for Endless {
    fn step(&mut self, _: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        Poll::Pending
    }
}

impl Offload for Endless {
    fn run(&self, _: &mut NodeMemory<'_>, _: &[u8]) -> Result<Vec<u8>, OffloadError> {
        unreachable!("it is run in slices")
    }

    fn begin(&self, _: &OffloadLimits, _: &[u8]) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        Some(Ok(Box::new(Endless)))
    }
}

/// Answers wait a millisecond and more until a busy client polls them, over an idle path of some
/// microseconds.
#[test]
fn a_client_that_looks_now_and_then_keeps_its_window() {
    for says_so in [false, true] {
        let mut pair = Pair::new();
        let before = pair.client.window_milli_requests();
        let mut datagram = vec![0; 65_507];
        for _ in 0..1_000 {
            pair.client.submit(pair.process, Request::Read { address: pair.at, bytes: 8 });
            let mut answers = Vec::new();
            loop {
                let bytes = pair.client.poll_transmit(Ns(pair.now), &mut datagram);
                if bytes == 0 {
                    break;
                }
                let mut answer = vec![0; 65_507];
                let there = Ns(pair.now + WAY + pair.ahead);
                let length = pair.node.on_datagram(there, &datagram[..bytes], &mut answer);
                answer.truncate(length);
                answers.push(answer);
            }
            pair.now += MS;
            answers.iter().for_each(|answer| pair.client.on_datagram(Ns(pair.now), answer));
            if says_so {
                pair.client.looked(Ns(pair.now));
            }
            while pair.client.poll_event().is_some() {}
        }
        let window = pair.client.window_milli_requests();
        assert_eq!(window >= before, says_so, "{before} before, {window} after");
    }
}

#[test]
fn an_operation_that_runs_long_does_not_hold_up_the_others() {
    let mut pair = Pair::new();
    pair.node.register("endless", Arc::new(Endless));
    let arguments = Address(pair.at).0.to_le_bytes().to_vec();
    pair.client.submit_offload(pair.process, "endless", arguments);
    for _ in 0..6_000 {
        assert!(pair.read().is_ok());
    }
    assert_eq!(pair.client.under_way(), 1);
}
