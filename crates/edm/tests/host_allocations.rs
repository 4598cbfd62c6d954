//! A host never allocates after construction: not in traffic, not at its limits, not in failure.

use ethermem_edm::{
    Address, EdmConfig, Grant, Host, HostConfig, NodeId, Op, Order, Outbound, Request,
    RmwOperation, Status, StatusCode, SubmitError, Token, WriteKind,
};
use ethermem_units::{Bytes, Ps};

const NODES: u16 = 8;

fn op(turn: u32) -> Op {
    match turn % 4 {
        0 => Op::Read { bytes: Bytes(600) },
        1 => Op::Write { bytes: Bytes(64), kind: WriteKind::Acknowledged },
        2 => Op::Write { bytes: Bytes(64), kind: WriteKind::Posted },
        _ => Op::ReadModifyWrite { operation: RmwOperation::FetchAndAdd(1) },
    }
}

/// Delivers what `node` transmits, and grants everything at once.
fn carry(hosts: &mut [Host], node: u16, now: Ps) {
    while let Some(outbound) = hosts[usize::from(node)].poll_outbound(now) {
        let peer = usize::from(outbound.peer().number());
        match outbound.sent_by(NodeId::at(node)) {
            Outbound::Notify(notified) => {
                let mut left = notified.bytes.0;
                while left > 0 {
                    let bytes = Bytes(left.min(256));
                    left -= bytes.0;
                    let grant = Grant { peer: NodeId::at(peer as u16), id: notified.id, bytes };
                    hosts[usize::from(node)].on_grant(now, grant);
                }
            }
            Outbound::Request(request) => {
                assert!(hosts[peer].on_request(now, request).is_some());
                let mut left = request.bytes.0.saturating_sub(256);
                while left > 0 {
                    let bytes = Bytes(left.min(256));
                    left -= bytes.0;
                    let grant = Grant { peer: NodeId::at(node), id: request.id, bytes };
                    hosts[peer].on_grant(now, grant);
                }
            }
            Outbound::Chunk { chunk, .. } => {
                assert!(hosts[peer].on_chunk(now, chunk).is_some());
                hosts[peer].on_written(now, &chunk, StatusCode::Ok);
            }
            Outbound::Status(status) => hosts[peer].on_status(now, status),
        }
    }
}

fn traffic(hosts: &mut [Host]) -> (u32, u32) {
    let (mut submitted, mut ended) = (0, 0);
    for round in 0..50_u32 {
        let now = Ps::from_ns(u64::from(round) * 1_000);
        for turn in 0..2_000_u32 {
            let (node, ahead) = ((turn % u32::from(NODES)) as u16, 1 + (turn / 64 % 3) as u16);
            let request = Request {
                token: Token(submitted),
                peer: NodeId::at((node + ahead) % NODES),
                address: Address(0),
                op: op(turn / 7),
                fence: turn % 31 == 0,
            };
            match hosts[usize::from(node)].submit(now, request) {
                Ok(()) => submitted += 1,
                Err(error) => assert_eq!(error, SubmitError::Full),
            }
        }
        if round % 5 == 4 {
            hosts[1].fail_peer(now, NodeId::at(2));
            hosts[2].fail_peer(now, NodeId::at(1));
            hosts[1].restore_peer(NodeId::at(2));
            hosts[2].restore_peer(NodeId::at(1));
        }
        for _ in 0..20 {
            (0..NODES).for_each(|node| carry(hosts, node, now));
        }
        for (node, host) in hosts.iter_mut().enumerate() {
            host.on_grant(
                now,
                Grant { peer: NodeId::at(9), id: Default::default(), bytes: Bytes(1) },
            );
            let peer = NodeId::at((node as u16 + 1) % NODES);
            let code = StatusCode::Ok;
            host.on_status(now, Status { peer, id: Default::default(), member: 0, code });
            host.on_timer(now);
            ended += std::iter::from_fn(|| host.poll_event()).count() as u32;
        }
    }
    let now = Ps::from_ns(50_000);
    for host in hosts {
        host.fail_link(now);
        ended += std::iter::from_fn(|| host.poll_event()).count() as u32;
    }
    (submitted, ended)
}

#[test]
fn nothing_allocates_after_construction() {
    for order in [Order::Pair, Order::Relaxed] {
        let edm = EdmConfig { order, read_timeout: Ps::from_ns(1_500), ..EdmConfig::default() };
        let host = |node| {
            Host::new(HostConfig {
                node: NodeId::at(node),
                nodes: NODES,
                edm: &edm,
                messages_max: 300,
            })
        };
        let mut hosts: Vec<_> = (0..NODES).map(host).collect();
        let mut counts = (0, 0);
        let allocations = allocation_counter::measure(|| counts = traffic(&mut hosts));
        assert_eq!(allocations.count_total, 0, "{order:?}");
        assert_eq!(counts.0, counts.1, "{order:?}: all that was submitted ended");
        assert!(counts.0 > 50_000, "{order:?}: {counts:?}");
    }
}
