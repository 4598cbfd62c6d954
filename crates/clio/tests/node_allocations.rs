//! The fast path allocates nothing: not in traffic, not at its limits.

#[path = "support/client.rs"]
mod client;

use client::{Client, PAGE, config, node_of};
use ethermem_units::Ns;
use ethermem_wire::RmwOperation;
use ethermem_wire::clio::{Permissions, Request};

/// Datagrams of every fast-path request, sealed again for each use.
#[test]
fn a_million_operations_allocate_nothing() {
    const PAGES: u64 = 64;
    const OPERATIONS: u64 = 1_000_000;
    let mut node = node_of(config(PAGES));
    let mut client = Client::with_process(&mut node, 0, 1, 1);
    let permissions = Permissions::READ_WRITE;
    let body = Request::Allocate { bytes: PAGES / 2 * PAGE, at: 0, permissions };
    let client::Answer::Other(ethermem_wire::clio::Reply::Address(at)) =
        client.ask(&mut node, 0, body)
    else {
        panic!("half of it is free");
    };
    let operation = RmwOperation::FetchAndAdd(1);
    let bodies = [
        Request::Read { address: at + PAGE - 100, bytes: 1400 },
        Request::Write { address: at + 7 * PAGE - 5, data: &[7; 64] },
        Request::Modify { address: at + 8, operation },
        Request::TestAndSet { address: at + 16 },
        Request::Lock { address: at + 24, holder: 1 },
        Request::Lock { address: at + 24, holder: 2 },
        Request::Unlock { address: at + 24, holder: 1 },
        Request::Fence,
        Request::KeepAlive,
        Request::Hello,
        Request::Read { address: 1, bytes: 9 },
    ];
    let (mut datagram, mut answer) = ([0; 1500], [0; 1500]);
    let mut executed = 0;
    let counted = allocation_counter::measure(|| {
        for turn in 0..OPERATIONS {
            // A page is touched for the first time now and then; the buffer has one, and pages are
            // prepared between.
            let now = Ns(1 + turn * 100);
            let packet = ethermem_wire::clio::RequestPacket {
                attempt: 0,
                process: client.process,
                request: ethermem_wire::clio::RequestId(1000 + turn),
                acknowledged: ethermem_wire::clio::RequestId(999 + turn),
                body: bodies[(turn % 11) as usize],
            };
            client.envelope.clock = Ns(now.0 + 100);
            let front = client.envelope.emit(&mut datagram).expect("there is room");
            let end = front + packet.emit(&mut datagram[front..]).expect("there is room");
            let length = client.envelope.seal(&mut datagram, end).expect("there is room");
            let answered = node.on_datagram(now, &datagram[..length], &mut answer);
            assert!(answered > 0);
            node.tend(now, 64);
        }
        executed = node.counters().executed;
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    // All requests are executed except accesses to unmapped memory and greetings.
    assert!(executed > OPERATIONS / 11 * 9, "{:?}", node.counters());
}
