//! Limits of operations at a node: all tenants share its time and its memory.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;
use std::task::Poll;

use client::{Answer, Client, LEASE, LIFETIME, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::Address;
use ethermem_clio::node::{Busy, NodeConfig};
use ethermem_clio::offload::{
    Chase, Comparison, ENDED_FAILED, ENDED_RESULT, Filter, NodeMemory, Offload, OffloadError,
    OffloadLimits, Sliced,
};
use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{
    ClioStatus, ENVELOPE_BYTES, OPCODES, Permissions, Reply, Request, RequestId, RequestPacket,
    ResponsePacket,
};

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

fn chase(at: u64, elements_max: u32) -> Chase {
    Chase {
        start: Address(at),
        next_offset: 0,
        key_offset: 8,
        value_offset: 0,
        value_bytes: 0,
        elements_max,
        key: vec![1],
    }
}

/// A datagram with this many requests.
fn many(client: &mut Client, body: Request<'_>, requests: u64) -> Vec<u8> {
    let mut octets = vec![0; 65_507];
    client.envelope.clock = Ns(LIFETIME);
    let mut end = client.envelope.emit(&mut octets).expect("there is room");
    for _ in 0..requests {
        client.last += 1;
        let (process, request) = (client.process, RequestId(client.last));
        let acknowledged = RequestId::NONE;
        let packet = RequestPacket { attempt: 0, process, request, acknowledged, body };
        end += packet.emit(&mut octets[end..]).expect("there is room");
    }
    let length = client.envelope.seal(&mut octets, end).expect("there is room");
    octets.truncate(length);
    octets
}

/// The filter would find as many bytes as the region has.
#[test]
fn a_filter_takes_no_more_memory_than_an_answer_has() {
    const PAGES: u64 = 512;
    let mut node = node_of(config(PAGES));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, PAGES);
    let filter = Filter {
        start: Address(at),
        record_bytes: 256,
        records: (PAGES * PAGE / 256) as u32,
        field_offset: 0,
        comparison: Comparison::Equal,
        operand: 0,
    };
    let arguments = filter.encode();
    let asked = Request::Offload { name: "filter", arguments: &arguments };
    let datagram = client.datagram(1, asked, 0);
    let mut answer = None;
    let measured = allocation_counter::measure(|| answer = deliver(&mut node, 1, &datagram));
    let Some(Answer::Bytes(line)) = answer else { panic!("it says why: {answer:?}") };
    assert_eq!(line, [&[ENDED_FAILED], &b"a result of more than 1400 B"[..]].concat());
    assert!(measured.bytes_max < 1 << 14, "{} B", measured.bytes_max);
}

/// An element that is its own successor, and a datagram full of chases along it.
#[test]
fn all_operations_of_a_datagram_take_no_longer_than_one() {
    const CHASES: u64 = 40;
    let mut node = node_of(config(16));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 1);
    client.ask(&mut node, 0, Request::Write { address: at, data: &at.to_le_bytes() });
    let arguments = chase(at, u32::MAX).encode();
    let ask = Request::Offload { name: "chase", arguments: &arguments };
    let datagram = many(&mut client, ask, CHASES);
    let slices = node.counters().offload_slices;
    let mut answer = vec![0; 65_507];
    let length = node.on_datagram(Ns(1), &datagram, &mut answer);
    assert_eq!(node.counters().offload_slices, slices + 1, "the others wait");
    let answers: Vec<_> = ResponsePacket::packets(&answer[ENVELOPE_BYTES..length - 4])
        .map(|packet| packet.expect("it can be read").reply)
        .collect();
    let waits = |busy| Reply::Refused(ClioStatus::Busy, busy as u64);
    let running = answers.iter().filter(|&&answer| answer == waits(Busy::Running));
    let refused = answers.iter().filter(|&&answer| answer == waits(Busy::Runs));
    assert_eq!((running.count(), refused.count()), (16, 24));
    // Each chase ends, in slices between which other requests are served.
    while node.runs_wait() {
        node.tend(Ns(2), 0);
        let read = client.ask(&mut node, 3, Request::Read { address: at, bytes: 8 });
        assert_eq!(read, Answer::Bytes(at.to_le_bytes().to_vec()));
    }
    assert!((64 * 16..80 * 16).contains(&(node.counters().offload_slices - slices)));
    client.last = 3;
    let Answer::Bytes(line) = client.ask(&mut node, 4, ask) else { panic!("it says why") };
    assert!(line[1..].starts_with(b"more than 1048576 accesses"), "{}", line.escape_ascii());
}

/// A chain that is longer than a slice, and many short chains in one datagram.
#[test]
fn a_long_chase_ends_in_slices_and_short_ones_at_once() {
    const ELEMENTS: u64 = 20_000;
    let mut node = node_of(NodeConfig { recent_requests: 1 << 14, ..config(256) });
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 100);
    let elements = (1..=ELEMENTS).flat_map(|next| [at + next % ELEMENTS * 16, next]);
    let octets: Vec<u8> = elements.flat_map(u64::to_le_bytes).collect();
    for (index, data) in octets.chunks(1024).enumerate() {
        let write = Request::Write { address: at + 1024 * index as u64, data };
        assert_eq!(client.ask(&mut node, 1, write), Answer::Other(Reply::Done));
        node.tend(Ns(1), PAGE);
    }
    let found = |element: u64| [&[ENDED_RESULT][..], &(at + element * 16).to_le_bytes()].concat();
    let arguments = Chase { key: ELEMENTS.to_le_bytes().to_vec(), ..chase(at, u32::MAX) }.encode();
    let ask = Request::Offload { name: "chase", arguments: &arguments };
    let datagram = client.datagram(2, ask, 0);
    let running = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Running as u64));
    assert_eq!(deliver(&mut node, 2, &datagram), Some(running));
    while node.runs_wait() {
        node.tend(Ns(3), 0);
    }
    let answer = Some(Answer::Bytes(found(ELEMENTS - 1)));
    let executed = node.counters().executed;
    assert_eq!(deliver(&mut node, 4, &datagram), answer);
    assert_eq!(deliver(&mut node, 5, &datagram), answer, "its result is kept");
    assert_eq!(node.counters().executed, executed);
    let arguments = Chase { key: 10_u64.to_le_bytes().to_vec(), ..chase(at, 10) }.encode();
    let short = Request::Offload { name: "chase", arguments: &arguments };
    let datagram = many(&mut client, short, 500);
    let mut answer = vec![0; 65_507];
    let length = node.on_datagram(Ns(6), &datagram, &mut answer);
    let done = Reply::Bytes(&found(9));
    let packets = ResponsePacket::packets(&answer[ENVELOPE_BYTES..length - 4]);
    assert_eq!(packets.filter(|p| p.is_ok_and(|packet| packet.reply == done)).count(), 500);
}

/// Adds one to a word in each slice, without an end.
struct Adding(Address);

impl Sliced for Adding {
    fn step(&mut self, memory: &mut NodeMemory<'_>) -> Poll<Result<Vec<u8>, OffloadError>> {
        memory.modify(self.0, RmwOperation::FetchAndAdd(1))?;
        Poll::Pending
    }
}

struct Add;

impl Offload for Add {
    fn run(&self, _: &mut NodeMemory<'_>, _: &[u8]) -> Result<Vec<u8>, OffloadError> {
        unreachable!("it is begun")
    }

    fn begin(
        &self,
        _: &OffloadLimits,
        arguments: &[u8],
    ) -> Option<Result<Box<dyn Sliced>, OffloadError>> {
        let at = u64::from_le_bytes(arguments.try_into().expect("it is an address"));
        Some(Ok(Box::new(Adding(Address(at)))))
    }
}

/// Many processes are in the table, so that the dead one is not removed at once.
#[test]
fn nothing_acts_for_a_process_whose_lease_is_over() {
    let mut node =
        node_of(NodeConfig { processes_max: 1000, recent_requests: 1 << 14, ..config(16) });
    node.register("add", Arc::new(Add));
    let mut heir = Client::with_process(&mut node, 0, 200, 1);
    let sender = |number: u64| 1000 + number;
    let mut others: Vec<Client> =
        (0..400).map(|number| Client::with_process(&mut node, 0, sender(number), 1)).collect();
    let mut dead = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut heir, 1);
    let (with, permissions) = (dead.process, Permissions::READ_WRITE);
    heir.ask(&mut node, 0, Request::Share { address: at, at: 0, with, permissions });
    let (lock, data) = (Request::Lock { address: at, holder: 1 }, at + 64);
    assert_eq!(dead.ask(&mut node, 0, lock), Answer::Other(Reply::Done));
    let arguments = data.to_le_bytes();
    let asked = Request::Offload { name: "add", arguments: &arguments };
    let running = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Running as u64));
    assert_eq!(dead.ask(&mut node, 0, asked), running);
    node.tend(Ns(1), 0);
    for client in others.iter_mut().chain([&mut heir]) {
        client.ask(&mut node, LEASE / 2, Request::KeepAlive);
    }
    let over = LEASE + 1;
    assert_eq!(heir.ask(&mut node, over, lock), Answer::Other(Reply::OwnerDied));
    for _ in 0..50 {
        node.tend(Ns(over), 0);
    }
    let read = Request::Read { address: data, bytes: 8 };
    let twice = Answer::Bytes(2_u64.to_le_bytes().to_vec());
    assert_eq!(heir.ask(&mut node, over, read), twice, "who holds the lock alone changes it");
    assert!(!node.runs_wait());
}

#[test]
fn what_was_done_is_counted_and_what_found_no_room_is_not() {
    let mut node = node_of(config(8));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 1);
    let arguments = chase(at, 1).encode();
    client.ask(&mut node, 0, Request::Offload { name: "chase", arguments: &arguments });
    let place = OPCODES.iter().position(|row| row.name == "offload").expect("there is one");
    let (_, used) = node.tenant_uses().next().expect("there is a tenant");
    assert_eq!(used.operations[place], 1);
    let before = node.counters();
    let full = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Processes as u64));
    while client.ask(&mut node, 0, Request::CreateProcess) != full {}
    let made = node.processes() as u64 - 1;
    assert_eq!((node.counters().executed - before.executed, node.counters().busy), (made, 1));
}
