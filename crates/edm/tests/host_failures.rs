//! How hosts treat late, duplicate, lost and excess messages: one case at a time, by hand.

#[path = "support/two_hosts.rs"]
mod two_hosts;

use ethermem_edm::{
    Chunk, EdmConfig, Event, FailReason, Grant, Host, HostConfig, MESSAGE_BYTES_MAX, MemoryRequest,
    MessageId, NodeId, Notification, Op, Order, Outbound, Request, RmwOperation, Status,
    StatusCode, SubmitError, Token, WriteKind,
};
use ethermem_units::{Bytes, Ps};
use two_hosts::{COMPUTE, MEMORY, chunk, host, notification, read, request, write};

fn failed(token: u32, why: FailReason) -> Option<Event> {
    Some(Event::Failed { token: Token(token), why })
}

#[test]
fn a_late_response_is_dropped_and_only_then_is_its_id_free() {
    let edm = EdmConfig { notifications_max: 1, ..EdmConfig::default() };
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    compute.submit(Ps(0), read(1, 64)).unwrap();
    compute.submit(Ps(500), read(2, 64)).unwrap();
    let first = request(compute.poll_outbound(Ps(500)));
    let deadline = Ps::ZERO + edm.read_timeout;
    assert_eq!(compute.next_timeout(), Some(deadline));
    compute.on_timer(Ps(deadline.0 - 1));
    assert_eq!(compute.poll_event(), None);
    compute.on_timer(deadline);
    let why = FailReason::Timeout;
    assert_eq!(compute.poll_event(), Some(Event::Failed { token: Token(1), why }));
    assert_eq!(compute.next_timeout(), Some(deadline + Ps(500)));
    assert_eq!(compute.poll_outbound(deadline), None, "its place is still taken");

    assert!(memory.on_request(deadline, MemoryRequest { peer: COMPUTE, ..first }).is_some());
    let late = Chunk { peer: MEMORY, ..chunk(memory.poll_outbound(deadline)) };
    assert_eq!(compute.on_chunk(deadline, late), None);
    assert_eq!(compute.counters().chunk_late, 1);
    let second = request(compute.poll_outbound(deadline));
    assert_ne!(second.id, first.id);
    assert_eq!(compute.on_chunk(deadline, late), None, "a second copy finds no message either");
    assert_eq!(compute.counters().chunk_unknown, 1);
    assert_eq!(compute.poll_event(), None);
}

#[test]
fn a_request_that_timed_out_before_it_left_never_leaves() {
    let edm = EdmConfig::default();
    let mut compute = host(COMPUTE, &edm);
    for token in 0..5 {
        compute.submit(Ps(0), read(token, 64)).unwrap();
    }
    compute.on_timer(edm.read_timeout);
    for token in 0..5 {
        assert_eq!(compute.poll_event().map(Event::token), Some(Token(token)));
    }
    assert_eq!(compute.poll_outbound(edm.read_timeout), None);
    assert_eq!(compute.messages_in_use(), 0);
}

#[test]
fn requests_that_cannot_be_served_are_refused_with_a_reason() {
    let edm = EdmConfig::default();
    let mut compute = Host::new(HostConfig { node: COMPUTE, nodes: 2, edm: &edm, messages_max: 1 });
    let mut refused = |request| compute.submit(Ps(0), request).unwrap_err();
    assert_eq!(refused(Request { peer: COMPUTE, ..read(1, 8) }), SubmitError::BadPeer);
    assert_eq!(refused(Request { peer: NodeId::at(2), ..read(1, 8) }), SubmitError::BadPeer);
    assert_eq!(refused(read(1, 0)), SubmitError::BadLength);
    assert_eq!(refused(read(1, MESSAGE_BYTES_MAX.0 + 1)), SubmitError::BadLength);
    compute.submit(Ps(0), read(1, MESSAGE_BYTES_MAX.0)).unwrap();
    assert_eq!(compute.submit(Ps(0), read(2, 8)), Err(SubmitError::Full));
    compute.fail_peer(Ps(0), MEMORY);
    assert_eq!(compute.submit(Ps(0), read(2, 8)), Err(SubmitError::LinkDown));
    let why = FailReason::PeerDown;
    assert_eq!(compute.poll_event(), Some(Event::Failed { token: Token(1), why }));
    compute.restore_peer(MEMORY);
    compute.submit(Ps(0), read(2, 8)).unwrap();
    compute.fail_link(Ps(0));
    let why = FailReason::LinkDown;
    assert_eq!(compute.poll_event(), Some(Event::Failed { token: Token(2), why }));
    assert_eq!(compute.submit(Ps(0), read(3, 8)), Err(SubmitError::LinkDown));
    assert_eq!(compute.poll_outbound(Ps(0)), None);
    compute.restore_link();
    compute.submit(Ps(0), read(3, 8)).unwrap();
    request(compute.poll_outbound(Ps(0)));
}

#[test]
fn a_request_that_arrives_twice_acts_once() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    let op = Op::ReadModifyWrite { operation: RmwOperation::FetchAndAdd(1) };
    for round in 0..40 {
        compute.submit(Ps(0), Request { op, ..read(round, 1) }).unwrap();
        let sent = MemoryRequest { peer: COMPUTE, ..request(compute.poll_outbound(Ps(0))) };
        assert!(memory.on_request(Ps(0), sent).is_some(), "round {round}");
        assert_eq!(memory.on_request(Ps(0), sent), None, "while it is answered");
        let data = Chunk { peer: MEMORY, ..chunk(memory.poll_outbound(Ps(0))) };
        assert_eq!(memory.on_request(Ps(0), sent), None, "after it was answered");
        assert!(compute.on_chunk(Ps(0), data).is_some());
        assert_eq!(compute.on_chunk(Ps(0), data), None, "a response that arrives twice");
    }
    assert_eq!(memory.counters().request_duplicate, 80);
    assert_eq!(compute.counters().chunk_unknown, 40);
}

#[test]
fn a_write_whose_chunk_was_lost_is_answered_as_incomplete() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    compute.submit(Ps(0), write(1, 600, WriteKind::Acknowledged)).unwrap();
    let Notification { peer, id, .. } = notification(compute.poll_outbound(Ps(0)));
    for (bytes, arrives) in [(256, true), (256, false), (88, true)] {
        compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(bytes) });
        let data = Chunk { peer: COMPUTE, ..chunk(compute.poll_outbound(Ps(0))) };
        if arrives {
            assert_eq!(memory.on_chunk(Ps(0), data).is_some(), data.offset == Bytes(0));
        }
    }
    let Some(Outbound::Status(answer)) = memory.poll_outbound(Ps(0)) else { panic!("a status") };
    assert_eq!(answer.code, StatusCode::Incomplete);
    compute.on_status(Ps(0), Status { peer: MEMORY, ..answer });
    assert_eq!(compute.poll_event(), failed(1, FailReason::Remote(StatusCode::Incomplete)));
    assert_eq!(compute.messages_in_use(), 0);
}

#[test]
fn a_response_whose_chunk_was_lost_ends_with_its_last_one() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    compute.submit(Ps(0), read(1, 300)).unwrap();
    let sent = MemoryRequest { peer: COMPUTE, ..request(compute.poll_outbound(Ps(0))) };
    assert!(memory.on_request(Ps(0), sent).is_some());
    chunk(memory.poll_outbound(Ps(0)));
    memory.on_grant(Ps(0), Grant { peer: COMPUTE, id: sent.id, bytes: Bytes(44) });
    let last = Chunk { peer: MEMORY, ..chunk(memory.poll_outbound(Ps(0))) };
    assert_eq!(compute.on_chunk(Ps(0), last), None);
    assert_eq!(compute.poll_event(), failed(1, FailReason::Incomplete));
    assert_eq!(compute.messages_in_use(), 0);
}

#[test]
fn a_refused_read_is_answered_once_its_demand_is_used_up() {
    let edm = EdmConfig::default();
    let (mut compute, mut memory) = (host(COMPUTE, &edm), host(MEMORY, &edm));
    compute.submit(Ps(0), read(1, 300)).unwrap();
    let sent = MemoryRequest { peer: COMPUTE, ..request(compute.poll_outbound(Ps(0))) };
    assert!(memory.on_request(Ps(0), sent).is_some());
    memory.refuse(COMPUTE, sent.id, StatusCode::BadAddress);
    assert_eq!(memory.poll_outbound(Ps(0)), None, "the switch still has 44 B to grant");
    memory.on_grant(Ps(0), Grant { peer: COMPUTE, id: sent.id, bytes: Bytes(44) });
    let Some(Outbound::Status(answer)) = memory.poll_outbound(Ps(0)) else { panic!("a status") };
    compute.on_status(Ps(0), Status { peer: MEMORY, ..answer });
    assert_eq!(compute.poll_event(), failed(1, FailReason::Remote(StatusCode::BadAddress)));
}

#[test]
fn grants_that_nothing_asked_for_are_counted_and_dropped() {
    let edm = EdmConfig::default();
    let mut compute = host(COMPUTE, &edm);
    compute.submit(Ps(0), write(1, 100, WriteKind::Posted)).unwrap();
    let ids = (0..=u8::MAX).map(MessageId);
    let early = |id| Grant { peer: MEMORY, id, bytes: Bytes(1) };
    ids.clone().for_each(|id| compute.on_grant(Ps(0), early(id)));
    assert_eq!(compute.counters().grant_unknown, 256, "the notification has not left");
    let Notification { peer, id, .. } = notification(compute.poll_outbound(Ps(0)));
    for bytes in [0, 101, u64::MAX] {
        compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(bytes) });
    }
    assert_eq!(compute.counters().grant_excess, 3);
    for peer in [COMPUTE, NodeId::at(4), NodeId::at(NodeId::COUNT - 1)] {
        compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(1) });
    }
    assert_eq!(compute.counters().peer_unknown, 3);
    assert_eq!(compute.poll_outbound(Ps(0)), None);
    compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(100) });
    assert!(chunk(compute.poll_outbound(Ps(0))).last);
}

#[test]
fn more_grants_than_can_be_kept_end_their_write_and_no_other() {
    let edm = EdmConfig::default();
    let mut compute = host(COMPUTE, &edm);
    compute.submit(Ps(0), write(1, 10_000, WriteKind::Posted)).unwrap();
    let Notification { peer, id, .. } = notification(compute.poll_outbound(Ps(0)));
    let mut granted = 0;
    while compute.poll_event().is_none() {
        compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(1) });
        granted += 1;
        assert!(granted < 10_000, "the grant queue has no bound");
    }
    assert_eq!(compute.counters().grant_overflow, 1);
    assert_eq!(compute.poll_outbound(Ps(0)), None, "its buffer is the caller's again");
    for _ in granted..10_000 {
        compute.on_grant(Ps(0), Grant { peer, id, bytes: Bytes(1) });
        assert_eq!(compute.poll_outbound(Ps(0)), None);
    }
    assert_eq!(compute.messages_in_use(), 0);
    compute.submit(Ps(0), write(2, 8, WriteKind::Posted)).unwrap();
    notification(compute.poll_outbound(Ps(0)));
}

#[test]
fn what_follows_a_fence_that_timed_out_still_follows_what_came_before_it() {
    let edm = EdmConfig { order: Order::Relaxed, notifications_max: 2, ..EdmConfig::default() };
    for followed in [false, true] {
        let mut compute = host(COMPUTE, &edm);
        let fence = Request { fence: true, ..read(2, 8) };
        compute.submit(Ps(0), write(1, 64, WriteKind::Posted)).unwrap();
        compute.submit(Ps(0), fence).unwrap();
        if followed {
            compute.submit(Ps(1), write(3, 64, WriteKind::Posted)).unwrap();
        }
        compute.on_timer(edm.read_timeout);
        assert_eq!(compute.poll_event(), failed(2, FailReason::Timeout));
        if !followed {
            compute.submit(edm.read_timeout, write(3, 64, WriteKind::Posted)).unwrap();
        }
        let Notification { peer, id, .. } = notification(compute.poll_outbound(edm.read_timeout));
        assert_eq!(compute.poll_outbound(edm.read_timeout), None, "{followed}");
        compute.on_grant(edm.read_timeout, Grant { peer, id, bytes: Bytes(64) });
        assert!(chunk(compute.poll_outbound(edm.read_timeout)).last);
        notification(compute.poll_outbound(edm.read_timeout));
    }
}

#[test]
fn a_failed_peer_takes_only_its_own_with_it() {
    let edm = EdmConfig::default();
    let mut compute = host(COMPUTE, &edm);
    let elsewhere = |token| Request { peer: NodeId::at(2), ..read(token, 64) };
    for token in 0..20 {
        compute.submit(Ps(0), write(token, 64, WriteKind::Acknowledged)).unwrap();
        compute.submit(Ps(0), elsewhere(100 + token)).unwrap();
    }
    let first = notification(compute.poll_outbound(Ps(0)));
    compute.on_grant(Ps(0), Grant { peer: MEMORY, id: first.id, bytes: Bytes(64) });
    compute.fail_peer(Ps(1), MEMORY);
    let mut ended: Vec<_> = std::iter::from_fn(|| compute.poll_event()).collect();
    ended.sort_by_key(|event| event.token());
    let expected: Vec<_> = (0..20).filter_map(|t| failed(t, FailReason::PeerDown)).collect();
    assert_eq!(ended, expected);
    for _ in 0..3 {
        assert_eq!(request(compute.poll_outbound(Ps(1))).peer, NodeId::at(2));
    }
    assert_eq!(compute.poll_outbound(Ps(1)), None);
    assert_eq!(compute.messages_in_use(), 20);
}
