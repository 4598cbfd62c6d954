//! Exact counts and results of a client, datagram by datagram, against a real node.

use std::sync::Arc;

use ethermem_clio::memory::{HashKey, MemoryConfig, PageSize};
use ethermem_clio::node::{Node, NodeConfig, Quota};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError};
use ethermem_clio::transport::{
    Client, ClientConfig, ClientCounters, Completed, Event, OperationError,
};
use ethermem_units::{Bytes, Ns};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioOpcode, ClioStatus, ENVELOPE_BYTES, Envelope, Epoch, Packets, Permissions, ProcessId,
    Protection, REQUEST_BYTES, Reply, Request, RequestId, RequestPacket, ResponsePacket, SenderId,
    TenantId,
};

const MS: u64 = 1_000_000;
const PAGE: u64 = 4096;
const WAY: u64 = 5_000;
const RETRY_MIN: u64 = 40_000;
const GIVE_UP: u64 = 2_000 * MS;
const LONGEST: usize = 65_507;

/// An offload that returns the number of bytes it was given.
struct Length;

impl Offload for Length {
    fn run(&self, _: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        Ok((arguments.len() as u64).to_le_bytes().to_vec())
    }
}

struct Pair {
    client: Client,
    node: Node<Vec<u8>>,
    now: u64,
    process: ProcessId,
    at: u64,
}

fn client_config() -> ClientConfig {
    ClientConfig {
        sender: SenderId(77),
        tenant: TenantId(1),
        protection: Protection::Crc,
        datagram_bytes_max: 1472,
        datagram_bytes_base: 1472,
        window_max: 64,
        incast_window: Bytes(1 << 20),
        queueing_target: Ns(200_000),
        retry_after_min: Ns(RETRY_MIN),
        retry_after_max: Ns(100 * MS),
        give_up_after: Ns(GIVE_UP),
    }
}

fn node_config(epoch: u32) -> NodeConfig {
    NodeConfig {
        memory: MemoryConfig {
            memory: Bytes(64 * PAGE),
            page: PageSize::Kib4,
            tlb_entries: 16,
            fault_buffer_pages: 8,
        },
        key: HashKey([11, 12]),
        epoch: Epoch(epoch),
        sender: SenderId(u64::MAX),
        protection: Protection::Crc,
        data_bytes_max: 1400,
        processes_max: 4,
        recent_requests: 1 << 10,
        lifetime_max: Ns(100 * MS),
        keep: Ns(5_000 * MS),
        lease: Ns(u64::MAX),
        tenants: vec![(TenantId(1), Quota::UNLIMITED)],
    }
}

impl Pair {
    /// A client that knows its node, and has a process and 16 pages.
    fn new() -> Pair {
        let client = Client::new(client_config()).expect("a client can be so");
        let node = Node::new(node_config(41), vec![0; (64 * PAGE) as usize]);
        let mut node = node.expect("a node can be so");
        node.register("length", Arc::new(Length));
        let mut pair = Pair { client, node, now: 1, process: ProcessId(0), at: 0 };
        let Ok(Completed::Created(process)) = pair.run(Request::CreateProcess) else {
            panic!("a process");
        };
        pair.process = process;
        let permissions = Permissions::READ_WRITE;
        let memory = pair.run(Request::Allocate { bytes: 16 * PAGE, at: 0, permissions });
        let Ok(Completed::Address(at)) = memory else { panic!("memory") };
        pair.at = at;
        // The acknowledgements are sent, and no work is left.
        for _ in 0..10 {
            pair.now += MS;
            while pair.exchange() {}
        }
        pair
    }

    /// The next datagram of the client.
    fn sent(&mut self) -> Option<Vec<u8>> {
        let mut datagram = vec![0; LONGEST];
        let bytes = self.client.poll_transmit(Ns(self.now), &mut datagram);
        datagram.truncate(bytes);
        (bytes > 0).then_some(datagram)
    }

    fn answer(&mut self, datagram: &[u8]) -> Vec<u8> {
        let mut answer = vec![0; LONGEST];
        let bytes = self.node.on_datagram(Ns(self.now), datagram, &mut answer);
        answer.truncate(bytes);
        answer
    }

    /// Delivers one datagram and its answer. Returns whether there was one.
    fn exchange(&mut self) -> bool {
        let Some(datagram) = self.sent() else { return false };
        self.now += WAY;
        let answer = self.answer(&datagram);
        self.node.tend(Ns(self.now), u64::MAX);
        self.now += WAY;
        if !answer.is_empty() {
            self.client.on_datagram(Ns(self.now), &answer);
        }
        true
    }

    fn outcome(&mut self) -> Result<Completed, OperationError> {
        for _ in 0..100_000 {
            while self.exchange() {}
            if let Some(Event { outcome, .. }) = self.client.poll_event() {
                return outcome;
            }
            let wake = self.client.next_wake().map_or(self.now, |wake| wake.0);
            self.now = wake.max(self.now + 1);
        }
        panic!("it never ends");
    }

    fn run(&mut self, request: Request<'static>) -> Result<Completed, OperationError> {
        self.client.submit(self.process, request);
        self.outcome()
    }

    fn add(&self) -> Request<'static> {
        Request::Modify { address: self.at, operation: RmwOperation::FetchAndAdd(1) }
    }

    fn since(&self, before: ClientCounters) -> ClientCounters {
        let now = self.client.counters();
        ClientCounters {
            datagrams: now.datagrams - before.datagrams,
            requests: now.requests - before.requests,
            retries: now.retries - before.retries,
            answers: now.answers - before.answers,
            ignored: now.ignored - before.ignored,
            corrupt: now.corrupt - before.corrupt,
        }
    }
}

fn requests_of(datagram: &[u8]) -> usize {
    let opened = Envelope::open(datagram).expect("it is sound");
    Packets::new(&datagram[opened.packets]).filter(Result::is_ok).count()
}

fn first_packet<T>(datagram: &[u8], show: impl Fn(&RequestPacket<'_>) -> T) -> T {
    let opened = Envelope::open(datagram).expect("it is sound");
    let mut packets = Packets::new(&datagram[opened.packets]);
    show(&packets.next().expect("it has one").expect("it can be read"))
}

/// An answer with other packets or of another epoch, sealed as a node's.
fn resealed(answer: &[u8], epoch: u32, packets: &[u8]) -> Vec<u8> {
    let opened = Envelope::open(answer).expect("it is sound");
    let envelope = Envelope { epoch: Epoch(epoch), ..opened.envelope };
    let mut octets = vec![0; ENVELOPE_BYTES];
    envelope.emit(&mut octets).expect("there is room");
    octets.extend_from_slice(packets);
    let end = octets.len();
    octets.resize(end + 4, 0);
    envelope.seal(&mut octets, end).expect("there is room");
    octets
}

fn response(opcode: u8, request: RequestId, reply: Reply<'_>) -> Vec<u8> {
    let mut octets = vec![0; 100];
    let packet = ResponsePacket { opcode, attempt: 0, request, reply };
    let bytes = packet.emit(&mut octets).expect("there is room");
    octets.truncate(bytes);
    octets
}

/// Answers of another epoch, to another request, of another kind, cut off, or to probes that were
/// never sent: each is counted as ignored, and ends nothing.
#[test]
fn what_is_no_answer_to_a_request_is_counted_and_ends_nothing() {
    let mut pair = Pair::new();
    let add = pair.add();
    pair.client.submit(pair.process, add);
    let datagram = pair.sent().expect("a request");
    let number = first_packet(&datagram, |packet| packet.request);
    let answer = pair.answer(&datagram);
    let opened = Envelope::open(&answer).expect("it is sound");
    let sound = answer[opened.packets].to_vec();
    let add_code = ClioOpcode::FetchAndAdd as u8;
    let word = Reply::Word(0);
    let unknown = RequestId(number.0 + 100);
    let probe = ClioOpcode::Probe as u8;
    let wrong = [
        resealed(&answer, 40, &sound),
        resealed(&answer, 41, &response(ClioOpcode::Swap as u8, number, word)),
        resealed(&answer, 41, &response(add_code, unknown, word)),
        resealed(&answer, 41, &response(add_code, number, Reply::Created(ProcessId(1)))),
        resealed(&answer, 41, &sound[..sound.len() - 1]),
        resealed(&answer, 41, &response(probe, number, Reply::Refused(ClioStatus::Malformed, 0))),
        resealed(&answer, 41, &response(probe, unknown, Reply::Padding(8))),
        resealed(&answer, 40, &response(probe, number, Reply::Padding(8))),
    ];
    for (place, datagram) in wrong.iter().enumerate() {
        for _ in 0..2 {
            let before = pair.client.counters();
            pair.client.on_datagram(Ns(pair.now + WAY), datagram);
            let ignored = ClientCounters { ignored: 1, ..ClientCounters::default() };
            assert_eq!(pair.since(before), ignored, "number {place}");
            assert_eq!((pair.client.poll_event(), pair.client.under_way()), (None, 1));
        }
    }
    pair.client.on_datagram(Ns(pair.now + WAY), &answer);
    assert_eq!(pair.client.poll_event().map(|event| event.outcome), Some(Ok(Completed::Word(0))));
}

/// Acknowledgements wait for a request to go with, but not longer than their time. A packet of
/// their own has a number of its own, and names each result once.
#[test]
fn acknowledgements_go_when_they_are_due_with_the_numbers_of_their_results() {
    let mut pair = Pair::new();
    let add = pair.add();
    let mut numbers = Vec::new();
    for _ in 0..3 {
        pair.client.submit(pair.process, add);
        let datagram = pair.sent().expect("a request");
        // This request acknowledges the result before it.
        let acknowledged = first_packet(&datagram, |packet| packet.acknowledged);
        assert_eq!(acknowledged, numbers.pop().unwrap_or(RequestId::NONE));
        numbers.push(first_packet(&datagram, |packet| packet.request));
        let answer = pair.answer(&datagram);
        pair.client.on_datagram(Ns(pair.now), &answer);
    }
    for _ in 0..2 {
        pair.client.submit(pair.process, add);
    }
    let datagram = pair.sent().expect("two requests");
    let first = first_packet(&datagram, |packet| packet.request);
    let answer = pair.answer(&datagram);
    pair.now += 1;
    pair.client.on_datagram(Ns(pair.now), &answer);
    let due = pair.client.next_wake().expect("two results are to be acknowledged");
    assert_eq!(due, Ns(pair.now + RETRY_MIN));
    pair.now = due.0 - 1;
    assert_eq!(pair.sent(), None, "it is not due");
    pair.now += 1;
    let datagram = pair.sent().expect("it is due");
    let (number, ids) = first_packet(&datagram, |packet| match packet.body {
        Request::Acknowledge(ids) => (packet.request, ids.iter().collect::<Vec<_>>()),
        other => panic!("{other:?}"),
    });
    assert_eq!((number, ids), (RequestId(first.0 + 2), vec![first, RequestId(first.0 + 1)]));
    assert_eq!((pair.sent(), pair.client.next_wake()), (None, None));
    pair.client.submit(pair.process, add);
    let next = pair.sent().expect("a request");
    assert_eq!(first_packet(&next, |packet| packet.request), RequestId(first.0 + 3));
}

#[test]
fn each_datagram_request_and_answer_is_counted_once() {
    let mut pair = Pair::new();
    for _ in 0..2 {
        let before = pair.client.counters();
        for _ in 0..3 {
            let read = Request::Read { address: pair.at, bytes: 8 };
            pair.client.submit(pair.process, read);
        }
        let datagram = pair.sent().expect("three requests in one datagram");
        assert_eq!(requests_of(&datagram), 3);
        assert_eq!(pair.client.under_way(), 3);
        let answer = pair.answer(&datagram);
        pair.now += 2 * WAY;
        // A damaged answer, an intact one, its duplicate, one of another protection, and one cut
        // off.
        let mut damaged = answer.clone();
        *damaged.last_mut().expect("it has a check") ^= 1;
        pair.client.on_datagram(Ns(pair.now), &damaged);
        pair.client.on_datagram(Ns(pair.now), &answer);
        assert_eq!(pair.client.under_way(), 0);
        pair.client.on_datagram(Ns(pair.now), &answer);
        let opened = Envelope::open(&answer).expect("it is sound");
        let mut bare = answer.clone();
        Envelope { protection: Protection::Carrier, ..opened.envelope }
            .emit(&mut bare)
            .expect("there is room");
        pair.client.on_datagram(Ns(pair.now), &bare[..answer.len() - 4]);
        pair.client.on_datagram(Ns(pair.now), &answer[..5]);
        let expected = ClientCounters {
            datagrams: 1,
            requests: 3,
            retries: 0,
            answers: 3,
            ignored: 3 + 1 + 1,
            corrupt: 1,
        };
        assert_eq!(pair.since(before), expected);
        for _ in 0..3 {
            let event = pair.client.poll_event().expect("three have ended");
            assert_eq!(event.outcome, Ok(Completed::Bytes(vec![0; 8])));
        }
        assert_eq!(pair.client.poll_event(), None);
    }
}

/// An answer of another protection has no check that counts: not one octet of it may be believed.
#[test]
fn an_answer_that_is_protected_otherwise_is_none() {
    let mut pair = Pair::new();
    let add = pair.add();
    pair.client.submit(pair.process, add);
    let datagram = pair.sent().expect("a request");
    let answer = pair.answer(&datagram);
    let opened = Envelope::open(&answer).expect("it is sound");
    let mut bare = answer.clone();
    let envelope = Envelope { protection: Protection::Carrier, ..opened.envelope };
    envelope.emit(&mut bare).expect("there is room");
    pair.client.on_datagram(Ns(pair.now + WAY), &bare[..answer.len() - 4]);
    assert_eq!((pair.client.poll_event(), pair.client.under_way()), (None, 1));
    pair.client.on_datagram(Ns(pair.now + WAY), &answer);
    assert_eq!(pair.client.poll_event().map(|event| event.outcome), Some(Ok(Completed::Word(0))));
}

/// The node reports which of the client's datagrams was damaged. Its requests are retried at once,
/// and no others.
#[test]
fn what_was_damaged_goes_again_at_once() {
    let mut pair = Pair::new();
    let add = pair.add();
    let mut datagrams = Vec::new();
    for _ in 0..2 {
        pair.client.submit(pair.process, add);
        datagrams.push(pair.sent().expect("a request"));
    }
    let mut damaged = datagrams[1].clone();
    *damaged.last_mut().expect("it has a check") ^= 1;
    let nack = pair.answer(&damaged);
    assert!(!nack.is_empty());
    pair.now += 1;
    assert_eq!(pair.sent(), None, "none of them is due");
    pair.client.on_datagram(Ns(pair.now), &nack);
    let again = pair.sent().expect("it goes again");
    assert_eq!((requests_of(&again), pair.client.counters().retries), (1, 1));
    let number = |datagram: &[u8]| first_packet(datagram, |packet| packet.request);
    assert_eq!(number(&again), number(&datagrams[1]));
    assert_eq!(pair.sent(), None, "the other was not damaged");
    let answer = pair.answer(&again);
    pair.client.on_datagram(Ns(pair.now), &answer);
    let event = pair.client.poll_event().expect("it has ended");
    assert_eq!(event.outcome, Ok(Completed::Word(0)), "the first was not executed");
}

#[test]
fn arguments_are_as_long_as_a_datagram_carries_and_a_name_as_its_length_says() {
    let mut pair = Pair::new();
    let room = |name: &str| LONGEST - ENVELOPE_BYTES - REQUEST_BYTES - 1 - name.len() - 4;
    let most = room("length");
    for bytes in [0, 1, most - 1, most] {
        pair.client.submit_offload(pair.process, "length", vec![7; bytes]);
        // The result follows an octet that says how the operation ended.
        let length = [&[0], &(bytes as u64).to_le_bytes()[..]].concat();
        assert_eq!(pair.outcome(), Ok(Completed::Bytes(length)), "{bytes} B");
    }
    pair.client.submit_offload(pair.process, "length", vec![7; most + 1]);
    assert_eq!(pair.outcome(), Err(OperationError::Length(most as u64 + 1)));
    let long = "n".repeat(255);
    pair.client.submit_offload(pair.process, &long, vec![7; 3]);
    let unknown = pair.outcome();
    assert!(matches!(unknown, Err(OperationError::Refused { .. })), "{unknown:?}");
    pair.client.submit_offload(pair.process, &"n".repeat(256), vec![7; 3]);
    assert_eq!(pair.outcome(), Err(OperationError::Length(3)));
}

/// A write is cut by the limits of the node and of the path; every byte arrives at its place.
#[test]
fn a_write_and_a_read_are_cut_into_the_longest_parts_there_may_be() {
    let mut pair = Pair::new();
    // Parts meet at multiples of 64, so all but the last have 1344 B of the 1400.
    let parts = |bytes: usize| 1 + bytes.saturating_sub(1400).div_ceil(1344) as u64;
    for bytes in [1, 1399, 1400, 1401, 2743, 2744, 2745, 60_000_usize] {
        let data: Vec<u8> = (0..bytes).map(|at| (at * 31 / 7) as u8).collect();
        let before = pair.client.counters();
        pair.client.submit_write(pair.process, pair.at, data.clone());
        assert_eq!(pair.outcome(), Ok(Completed::Done));
        assert_eq!(pair.since(before).requests, parts(bytes), "{bytes} B");
        let before = pair.client.counters();
        let read = Request::Read { address: pair.at, bytes: bytes as u32 };
        assert_eq!(pair.run(read), Ok(Completed::Bytes(data)));
        assert_eq!(pair.since(before).requests, parts(bytes), "{bytes} B");
    }
    pair.client.submit_write(pair.process, pair.at, Vec::new());
    assert_eq!(pair.outcome(), Err(OperationError::Length(0)));
}

/// Without an answer an operation is tried for its time, and then it is lost. A change is lost only
/// once no copy of it can act.
#[test]
fn an_operation_is_lost_when_its_time_is_over_and_not_before() {
    for changes in [false, true] {
        let mut pair = Pair::new();
        let read = Request::Read { address: pair.at, bytes: 8 };
        let request = if changes { pair.add() } else { read };
        pair.client.submit(pair.process, request);
        let began = pair.now;
        let mut last_life = 0;
        let ended = loop {
            while let Some(datagram) = pair.sent() {
                let opened = Envelope::open(&datagram).expect("it is sound");
                last_life = opened.envelope.clock.0;
                assert!(pair.now - began < GIVE_UP, "it is not tried after its time");
            }
            if let Some(event) = pair.client.poll_event() {
                break event.outcome;
            }
            let wake = pair.client.next_wake().expect("it waits for something").0;
            assert!(wake > pair.now, "it waits, and does not spin");
            pair.now = wake;
        };
        assert_eq!(ended, Err(OperationError::Lost));
        assert!(pair.now - began >= GIVE_UP, "{} of {GIVE_UP} ns", pair.now - began);
        // The node's clock is the client's here, except for the way.
        assert!(!changes || pair.now + 2 * WAY > last_life, "a copy may act still");
        assert!(pair.now - began < GIVE_UP + 300 * MS, "{} ns", pair.now - began);
        assert!(pair.client.counters().retries > 5);
    }
}

/// Results are acknowledged by the next request, or by a packet of their own after a while, each
/// once.
#[test]
fn each_result_is_acknowledged_once_and_in_time() {
    let mut pair = Pair::new();
    let add = pair.add();
    for _ in 0..40 {
        pair.client.submit(pair.process, add);
    }
    for _ in 0..40 {
        assert!(matches!(pair.outcome(), Ok(Completed::Word(_))));
    }
    let mut packets = 0;
    let began = pair.now;
    while let Some(wake) = pair.client.next_wake() {
        pair.now = pair.now.max(wake.0);
        assert!(pair.now - began <= 10 * RETRY_MIN, "nothing else is under way");
        while let Some(datagram) = pair.sent() {
            packets += requests_of(&datagram);
            pair.answer(&datagram);
        }
    }
    // Each packet has at most 16, beside the ones that went with requests.
    assert!((1..=3).contains(&packets), "{packets}");
    assert_eq!(pair.client.under_way(), 0);
}

/// The answer to a probe of a past epoch, or of a probe that was never sent, says nothing of the
/// path.
#[test]
fn a_node_of_another_life_ends_what_was_asked_of_the_one_before() {
    let mut pair = Pair::new();
    let add = pair.add();
    pair.client.submit(pair.process, add);
    let datagram = pair.sent().expect("a request");
    let node = Node::new(node_config(42), vec![0; (64 * PAGE) as usize]);
    pair.node = node.expect("a node can be so");
    let refusal = pair.answer(&datagram);
    pair.client.on_datagram(Ns(pair.now + WAY), &refusal);
    let event = pair.client.poll_event().expect("it is over");
    assert_eq!(event.outcome, Err(OperationError::Restarted(Epoch(42))));
    assert_eq!((pair.client.under_way(), pair.client.epoch()), (0, Epoch::UNKNOWN));
    pair.process = ProcessId(0);
    assert!(matches!(pair.run(Request::CreateProcess), Ok(Completed::Created(_))));
    assert_eq!(pair.client.epoch(), Epoch(42));
}
