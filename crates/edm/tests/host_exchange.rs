//! Two hosts driven by hand. The test acts as the switch and compares every message on the way.

#[path = "support/two_hosts.rs"]
mod two_hosts;

use ethermem_edm::{
    Action, Address, Chunk, ChunkKind, EdmConfig, Event, FailReason, Grant, MemoryRequest, NodeId,
    Notification, Op, Order, Outbound, Request, RmwKind, RmwOperation, Status, StatusCode, Token,
    WriteKind,
};
use ethermem_units::{Bytes, Ps};
use two_hosts::{COMPUTE, MEMORY, chunk, host, notification, read, request, write};

fn status(outbound: Option<Outbound>) -> Status {
    match outbound {
        Some(Outbound::Status(status)) => status,
        other => panic!("a status, not {other:?}"),
    }
}

fn grant(notification: &Notification, bytes: u64) -> Grant {
    Grant { peer: notification.peer, id: notification.id, bytes: Bytes(bytes) }
}

#[test]
fn a_read_of_three_chunks_is_granted_once_by_its_request_and_twice_by_the_switch() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    compute.submit(Ps(0), read(7, 600)).unwrap();
    let sent = request(compute.poll_outbound(Ps(0)));
    assert_eq!((sent.peer, sent.bytes, sent.modify), (MEMORY, Bytes(600), None));
    assert_eq!(compute.poll_outbound(Ps(0)), None);

    let arrived = MemoryRequest { peer: COMPUTE, ..sent };
    assert_eq!(memory.on_request(Ps(10), arrived), Some(Action::Serve(arrived)));
    let mut offset = 0;
    for (bytes, last) in [(256, false), (256, false), (88, true)] {
        if offset > 0 {
            assert_eq!(memory.poll_outbound(Ps(10)), None, "nothing without a grant");
            memory.on_grant(Ps(10), Grant { peer: COMPUTE, id: sent.id, bytes: Bytes(bytes) });
        }
        let data = chunk(memory.poll_outbound(Ps(10)));
        assert_eq!((data.offset, data.bytes, data.last), (Bytes(offset), Bytes(bytes), last));
        assert_eq!(data.address, Address(0x1000 + offset));
        assert_eq!(compute.poll_event(), None);
        let action = compute.on_chunk(Ps(20), Chunk { peer: MEMORY, ..data });
        let (offset_was, bytes) = (Bytes(offset), Bytes(bytes));
        assert_eq!(action, Some(Action::Deliver { token: Token(7), offset: offset_was, bytes }));
        offset += bytes.0;
    }
    assert_eq!(compute.poll_event(), Some(Event::ReadDone { token: Token(7) }));
    assert_eq!(compute.poll_event(), None);
    assert_eq!(compute.messages_in_use(), 0);
    assert_eq!(compute.next_timeout(), None);
    assert_eq!((*compute.counters(), *memory.counters()), Default::default());
}

#[test]
fn a_write_waits_for_its_grants_and_ends_when_it_is_handed_over_or_applied() {
    let edm = EdmConfig::default();
    for kind in [WriteKind::Posted, WriteKind::Acknowledged] {
        let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
        compute.submit(Ps(0), write(3, 300, kind)).unwrap();
        let notified = notification(compute.poll_outbound(Ps(0)));
        assert_eq!((notified.bytes, notified.members), (Bytes(300), 1));
        for (bytes, offset, last) in [(256, 0, false), (44, 256, true)] {
            assert_eq!(compute.poll_outbound(Ps(1)), None, "nothing without a grant");
            compute.on_grant(Ps(1), grant(&notified, bytes));
            let data = Chunk { peer: COMPUTE, ..chunk(compute.poll_outbound(Ps(1))) };
            assert_eq!((data.kind, data.member), (ChunkKind::of_write(kind), 0));
            assert_eq!((data.offset, data.last), (Bytes(offset), last));
            assert_eq!(memory.on_chunk(Ps(2), data), Some(Action::Store(data)));
            memory.on_written(Ps(2), &data, StatusCode::Ok);
        }
        if kind == WriteKind::Acknowledged {
            assert_eq!(compute.poll_event(), None);
            let answer = status(memory.poll_outbound(Ps(3)));
            compute.on_status(Ps(4), Status { peer: MEMORY, ..answer });
            assert_eq!(compute.poll_event(), Some(Event::WriteApplied { token: Token(3) }));
        } else {
            assert_eq!(compute.poll_event(), Some(Event::WriteSent { token: Token(3) }));
        }
        assert_eq!(memory.poll_outbound(Ps(4)), None);
        assert_eq!(compute.messages_in_use(), 0);
        assert_eq!((*compute.counters(), *memory.counters()), Default::default());
    }
}

#[test]
fn a_read_behind_a_write_to_its_bytes_waits_for_the_last_chunk_unless_relaxed() {
    for order in [Order::Pair, Order::Strict, Order::Relaxed] {
        let edm = EdmConfig { order, ..EdmConfig::default() };
        let mut compute = host(COMPUTE, &edm);
        compute.submit(Ps(0), write(1, 300, WriteKind::Posted)).unwrap();
        compute.submit(Ps(0), read(2, 8)).unwrap();
        compute.submit(Ps(0), write(3, 8, WriteKind::Posted)).unwrap();
        let notified = notification(compute.poll_outbound(Ps(0)));
        if order == Order::Relaxed {
            request(compute.poll_outbound(Ps(0)));
            notification(compute.poll_outbound(Ps(0)));
            continue;
        }
        assert_eq!(compute.poll_outbound(Ps(0)), None);
        compute.on_grant(Ps(1), grant(&notified, 256));
        assert_eq!(chunk(compute.poll_outbound(Ps(1))).bytes, Bytes(256));
        assert_eq!(compute.poll_outbound(Ps(1)), None);
        compute.on_grant(Ps(2), grant(&notified, 44));
        assert!(chunk(compute.poll_outbound(Ps(2))).last);
        // The write behind the read need not wait: the scheduler releases the read first.
        request(compute.poll_outbound(Ps(2)));
        notification(compute.poll_outbound(Ps(2)));
    }
}

#[test]
fn a_read_passes_a_write_to_other_bytes_unless_the_order_is_strict() {
    for (order, passes) in [(Order::Pair, true), (Order::Strict, false)] {
        let edm = EdmConfig { order, ..EdmConfig::default() };
        let mut compute = host(COMPUTE, &edm);
        let elsewhere =
            |request: Request, address| Request { address: Address(address), ..request };
        compute.submit(Ps(0), elsewhere(write(1, 64, WriteKind::Posted), 1_000)).unwrap();
        // The reads hit the byte before the write's first, and the byte after its last.
        for (token, address) in [(2, 999), (3, 1_064)] {
            compute.submit(Ps(0), elsewhere(read(token, 1), address)).unwrap();
        }
        compute.submit(Ps(0), elsewhere(read(4, 1), 1_063)).unwrap();
        notification(compute.poll_outbound(Ps(0)));
        for _ in 0..2 {
            assert_eq!(compute.poll_outbound(Ps(0)).is_some(), passes, "{order:?}");
        }
        assert_eq!(compute.poll_outbound(Ps(0)), None, "{order:?}");
    }
}

#[test]
fn at_most_x_are_active_and_those_that_wait_share_a_notification() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    for token in 0..7 {
        compute.submit(Ps(0), write(token, 64, WriteKind::Acknowledged)).unwrap();
    }
    compute.submit(Ps(0), write(7, 257, WriteKind::Posted)).unwrap();
    let first: Vec<_> = (0..3).map(|_| notification(compute.poll_outbound(Ps(0)))).collect();
    assert_eq!(compute.poll_outbound(Ps(0)), None);
    assert_eq!(compute.notifications_active(MEMORY), 3);
    compute.on_grant(Ps(1), grant(&first[0], 64));
    assert!(chunk(compute.poll_outbound(Ps(1))).last);
    // Four small writes wait; the fifth is larger than a chunk.
    let mega = notification(compute.poll_outbound(Ps(1)));
    assert_eq!((mega.bytes, mega.members), (Bytes(256), 4));
    assert_eq!(compute.counters().batched, 3);
    // Grants that end within a member are split at the member's border and at their own.
    compute.on_grant(Ps(2), grant(&mega, 100));
    compute.on_grant(Ps(2), grant(&mega, 156));
    let mut sent = Vec::new();
    for _ in 0..5 {
        let (data, token) = match compute.poll_outbound(Ps(2)) {
            Some(Outbound::Chunk { chunk, token }) => (chunk, token),
            other => panic!("a chunk, not {other:?}"),
        };
        let member = data.member;
        sent.push((token, member, data.offset.0, data.bytes.0, data.last));
        let data = Chunk { peer: COMPUTE, ..data };
        assert_eq!(memory.on_chunk(Ps(3), data), Some(Action::Store(data)));
        memory.on_written(Ps(3), &data, StatusCode::Ok);
    }
    let of = |token, member, offset, bytes, last| (Some(Token(token)), member, offset, bytes, last);
    assert_eq!(
        sent,
        [
            of(3, 0, 0, 64, true),
            of(4, 1, 0, 36, false),
            of(4, 1, 36, 28, true),
            of(5, 2, 0, 64, true),
            of(6, 3, 0, 64, true),
        ]
    );
    for token in 3..7 {
        let answer = status(memory.poll_outbound(Ps(4)));
        compute.on_status(Ps(5), Status { peer: MEMORY, ..answer });
        assert_eq!(compute.poll_event(), Some(Event::WriteApplied { token: Token(token) }));
    }
    assert_eq!(notification(compute.poll_outbound(Ps(5))).bytes, Bytes(257));
}

#[test]
fn reads_beyond_x_wait() {
    let edm = EdmConfig { notifications_max: 2, ..EdmConfig::default() };
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    for token in 0..3 {
        compute.submit(Ps(0), read(token, 64)).unwrap();
    }
    let first = request(compute.poll_outbound(Ps(0)));
    let second = request(compute.poll_outbound(Ps(0)));
    assert_ne!(first.id, second.id);
    assert_eq!(compute.poll_outbound(Ps(0)), None);
    assert!(memory.on_request(Ps(1), MemoryRequest { peer: COMPUTE, ..first }).is_some());
    let data = chunk(memory.poll_outbound(Ps(1)));
    assert!(compute.on_chunk(Ps(2), Chunk { peer: MEMORY, ..data }).is_some());
    let third = request(compute.poll_outbound(Ps(2)));
    assert!(third.id != first.id && third.id != second.id);
}

#[test]
fn an_atomic_carries_its_operands_and_a_refusal_ends_it() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    let op = Op::ReadModifyWrite { operation: RmwOperation::new(RmwKind::CompareAndSwap, [5, 6]) };
    for code in [None, Some(StatusCode::Misaligned)] {
        compute.submit(Ps(0), Request { op, ..read(1, 1) }).unwrap();
        let sent = MemoryRequest { peer: COMPUTE, ..request(compute.poll_outbound(Ps(0))) };
        let modify = sent.modify.unwrap();
        assert_eq!(
            (modify.opcode, modify.operands),
            (RmwKind::CompareAndSwap.opcode().into(), [5, 6])
        );
        assert_eq!(memory.on_request(Ps(0), sent), Some(Action::Serve(sent)));
        if let Some(code) = code {
            memory.refuse(COMPUTE, sent.id, code);
            let answer = status(memory.poll_outbound(Ps(0)));
            compute.on_status(Ps(0), Status { peer: MEMORY, ..answer });
            let why = FailReason::Remote(code);
            assert_eq!(compute.poll_event(), Some(Event::Failed { token: Token(1), why }));
        } else {
            let data = chunk(memory.poll_outbound(Ps(0)));
            assert_eq!((data.bytes, data.last), (Bytes(8), true));
            assert!(compute.on_chunk(Ps(0), Chunk { peer: MEMORY, ..data }).is_some());
            assert_eq!(compute.poll_event(), Some(Event::RmwDone { token: Token(1) }));
        }
    }
    assert_eq!(compute.messages_in_use(), 0);
}

#[test]
fn control_leaves_before_data_of_the_same_instant_and_after_older_data() {
    let edm = EdmConfig::default();
    let mut compute = host(COMPUTE, &edm);
    compute.submit(Ps(0), write(1, 64, WriteKind::Posted)).unwrap();
    compute.submit(Ps(0), write(2, 64, WriteKind::Posted)).unwrap();
    let first = notification(compute.poll_outbound(Ps(0)));
    let second = notification(compute.poll_outbound(Ps(0)));
    let elsewhere = |token| Request { peer: NodeId::at(2), ..read(token, 8) };
    compute.on_grant(Ps(5), grant(&first, 64));
    compute.submit(Ps(5), elsewhere(3)).unwrap();
    compute.on_grant(Ps(5), grant(&second, 64));
    compute.submit(Ps(6), elsewhere(4)).unwrap();
    assert_eq!(request(compute.poll_outbound(Ps(9))).peer, NodeId::at(2));
    assert_eq!(chunk(compute.poll_outbound(Ps(9))).id, first.id);
    assert_eq!(chunk(compute.poll_outbound(Ps(9))).id, second.id);
    assert_eq!(request(compute.poll_outbound(Ps(9))).peer, NodeId::at(2));
    assert!(!compute.has_outbound());
}
