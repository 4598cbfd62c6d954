//! The requests that a node remembers, and for how long.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::{Answer, Client, KEEP, LIFETIME, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::Address;
use ethermem_clio::node::{Busy, NodeConfig, Quota};
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{AcknowledgedIds, ClioStatus, Permissions, Reply, Request, TenantId};

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

/// An offload that adds one to the word at the given address, and returns its former value.
struct Count;

impl Offload for Count {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let at = u64::from_le_bytes(arguments.try_into().expect("it is an address"));
        let before = memory.modify(Address(at), RmwOperation::FetchAndAdd(1))?;
        Ok(vec![before as u8; 10])
    }
}

/// A forgotten entry is still in the table, in a place before the valid one.
#[test]
fn a_number_that_was_forgotten_may_be_used_again() {
    let mut node = node_of(NodeConfig { recent_requests: 8, ..config(8) });
    node.register("count", Arc::new(Count));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 1);
    let later = KEEP + 10;
    client.last = 1;
    let arguments = at.to_le_bytes();
    let count = Request::Offload { name: "count", arguments: &arguments };
    let datagram = client.datagram(later, count, 0);
    let first = deliver(&mut node, later, &datagram);
    assert!(matches!(first, Some(Answer::Bytes(_))), "{first:?}");
    assert_eq!(deliver(&mut node, later + 1, &datagram), first, "a copy gets the same");
    // The acknowledgement also applies to the valid entry.
    let number = client.last;
    let acknowledging = client.datagram(later + 2, Request::KeepAlive, number);
    deliver(&mut node, later + 2, &acknowledging);
    assert_eq!(deliver(&mut node, later + 3, &datagram), first, "its copies are not dead yet");
}

#[test]
fn a_copy_of_what_was_done_is_answered_whatever_the_rate_is() {
    let quota = Quota { requests_per_s: 4, ..Quota::UNLIMITED };
    let mut node = node_of(NodeConfig { tenants: vec![(TenantId(1), quota)], ..config(8) });
    node.register("count", Arc::new(Count));
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 1);
    let add = Request::Modify { address: at, operation: RmwOperation::FetchAndAdd(1) };
    let arguments = at.to_le_bytes();
    let count = Request::Offload { name: "count", arguments: &arguments };
    let datagrams = [add, count].map(|body| client.datagram(0, body, 0));
    let first = datagrams.each_ref().map(|datagram| deliver(&mut node, 0, datagram));
    assert_eq!(first[0], Some(Answer::Other(Reply::Word(0))));
    // The answers were lost, and the client retries.
    let second = datagrams.each_ref().map(|datagram| deliver(&mut node, 1, datagram));
    assert_eq!((first, node.counters().over_rate), (second, 0));
    let over = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Rate as u64));
    assert_eq!(client.ask(&mut node, 1, add), over);
    assert_eq!(node.counters().over_rate, 1);
}

#[test]
fn there_is_no_room_to_forget() {
    let tenants = vec![(TenantId(1), Quota::UNLIMITED)];
    let mut node = node_of(NodeConfig { tenants, ..config(8) });
    let mut client = Client::with_process(&mut node, 0, 100, 1);
    let at = allocate(&mut node, 0, &mut client, 2);
    let mut made = Vec::new();
    let busy = Answer::Other(Reply::Refused(ClioStatus::Busy, Busy::Recent as u64));
    // Two of the 64 places are taken: some set is full before all are.
    let full = (0..64_u64).find(|turn| {
        let body = Request::Write { address: at + turn * 8, data: &[1; 8] };
        let answer = client.ask(&mut node, 10, body);
        made.push(client.last);
        answer == busy
    });
    assert!(full.is_some_and(|count| count > 32), "{full:?}");
    // Reads go on, and change nothing.
    let read = client.ask(&mut node, 10, Request::Read { address: at, bytes: 8 });
    assert_eq!(read, Answer::Bytes(vec![1; 8]));
    let octets: Vec<u8> = made.iter().flat_map(|number| number.to_le_bytes()).collect();
    let ids = AcknowledgedIds::new(&octets).expect("whole numbers");
    let acknowledge = client.datagram(10, Request::Acknowledge(ids), 0);
    assert_eq!(deliver(&mut node, 10, &acknowledge), None, "nobody waits for an answer");
    let write = Request::Write { address: at, data: &[2; 8] };
    let after = 11 + LIFETIME;
    assert!((0..40).all(|_| client.ask(&mut node, after, write) == Answer::Other(Reply::Done)));
    // Without acknowledgements, places come free when no client retries any more.
    let after = after + KEEP + 1;
    assert!((0..40).all(|_| client.ask(&mut node, after, write) == Answer::Other(Reply::Done)));
}
