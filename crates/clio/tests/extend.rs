//! What operations at a node may take: its time and its memory are for all tenants.

#[path = "support/client.rs"]
mod client;

use client::{Answer, Client, PAGE, VecNode, config, deliver, node_of};
use ethermem_clio::Address;
use ethermem_clio::offload::{Comparison, ENDED_FAILED, Filter};
use ethermem_wire::clio::{Permissions, Reply, Request};

fn allocate(node: &mut VecNode, now: u64, client: &mut Client, pages: u64) -> u64 {
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: pages * PAGE, at: 0, permissions };
    match client.ask(node, now, body) {
        Answer::Other(Reply::Address(address)) => address,
        other => panic!("no memory: {other:?}"),
    }
}

/// All that a filter finds would be as much as the region has.
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
