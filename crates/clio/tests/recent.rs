//! What a node remembers of requests, and for how long.

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::{Answer, Client, KEEP, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::Address;
use ethermem_clio::node::NodeConfig;
use ethermem_clio::offload::{NodeMemory, Offload, OffloadError};
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{Permissions, Reply, Request};

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

/// Adds one to the word at the address that is asked for, and gives what it was.
struct Count;

impl Offload for Count {
    fn run(&self, memory: &mut NodeMemory<'_>, arguments: &[u8]) -> Result<Vec<u8>, OffloadError> {
        let at = u64::from_le_bytes(arguments.try_into().expect("it is an address"));
        let before = memory.modify(Address(at), RmwOperation::FetchAndAdd(1))?;
        Ok(vec![before as u8; 10])
    }
}

/// What was forgotten still stands in the table, in a place before the one that counts.
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
    // The acknowledgement is of the one that counts, too.
    let number = client.last;
    let acknowledging = client.datagram(later + 2, Request::KeepAlive, number);
    deliver(&mut node, later + 2, &acknowledging);
    assert_eq!(deliver(&mut node, later + 3, &datagram), first, "its copies are not dead yet");
}
