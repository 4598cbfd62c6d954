//! Two mirrored switches: anything dies at any moment. Every request ends once, whatever two nodes
//! still have a path for succeeds, no acknowledged write is lost, no atomic acts twice, nobody
//! waits for a deadline unless a switch died without a sign.

mod blocks;
mod mirrored;

use std::collections::BTreeSet;

use blocks::Rng;
use ethermem_edm::{
    Ack, Address, EdmConfig, Event, FailReason, NodeId, Op, Request, RmwOpcode, Token,
};
use ethermem_units::{Bytes, Ps};
use mirrored::{Kill, Network};
use proptest::prelude::*;

const NODES: u16 = 4;
/// Each compute node's own part of each memory, and before these the counters.
const REGION: u64 = 1_024;
const COUNTERS: u64 = 4;
const MEMORY: usize = (COUNTERS * 8 + REGION * NODES as u64) as usize;
const TIMEOUT: Ps = Ps::from_ns(100_000);
const REQUESTS: u32 = 48;

/// A request as it was submitted.
struct Submitted {
    node: NodeId,
    request: Request,
    data: Vec<u8>,
    at: Ps,
}

fn random_request(rng: &mut Rng, token: Token, node: NodeId) -> (Request, Vec<u8>) {
    let peer = NodeId(((u64::from(node.0) + 1 + rng.below(u64::from(NODES) - 1)) % 4) as u16);
    let base = COUNTERS * 8 + u64::from(node.0) * REGION;
    let most = if rng.percent(30) { REGION } else { 64 };
    let bytes = 1 + rng.below(most);
    let address = Address(base + rng.below(REGION - bytes + 1));
    let (address, op) = match rng.below(10) {
        0..4 => (address, Op::Read { bytes: Bytes(bytes) }),
        4..8 => {
            let ack = if rng.percent(20) { Ack::Posted } else { Ack::Applied };
            (address, Op::Write { bytes: Bytes(bytes), ack })
        }
        _ => {
            let opcode = RmwOpcode::FetchAndAdd;
            let address = Address(8 * rng.below(COUNTERS));
            (address, Op::ReadModifyWrite { opcode, operands: [1, 0] })
        }
    };
    let data = match op {
        Op::Write { bytes, .. } => rng.bytes(bytes.0 as usize),
        _ => Vec::new(),
    };
    (Request { token, peer, address, op, fence: false }, data)
}

/// What a byte of memory may be: what was written last for certain, or anything after a write that
/// ended with an error.
type Byte = Option<u8>;

/// Replays what one compute node asked of one memory node, in the order of submission, and holds
/// every read and the final memory to it.
fn check_pair(network: &Network, submitted: &[Submitted], node: NodeId, peer: NodeId, what: &str) {
    let mut model: Vec<Byte> = vec![Some(0); MEMORY];
    let mine = submitted.iter().filter(|s| s.node == node && s.request.peer == peer);
    for Submitted { request, data, .. } in mine {
        let Request { token, address: Address(address), op, .. } = *request;
        let event = network.events.get(&token).map(|&(event, _)| event);
        let range = |bytes: Bytes| address as usize..(address + bytes.0) as usize;
        match (op, event) {
            (Op::Read { bytes }, Some(Event::ReadDone { .. })) => {
                let read = &network.reads[&token];
                assert_eq!(read.len() as u64, bytes.0, "{what}");
                for (at, &known) in model[range(bytes)].iter().enumerate() {
                    assert!(known.is_none_or(|known| known == read[at]), "{token:?} {at}: {what}");
                }
            }
            (
                Op::Write { bytes, .. },
                Some(Event::WriteApplied { .. } | Event::WriteSent { .. }),
            ) => {
                let written = data.iter().map(|&byte| Some(byte));
                model[range(bytes)].iter_mut().zip(written).for_each(|(b, new)| *b = new);
            }
            (Op::Write { bytes, .. }, _) => model[range(bytes)].fill(None),
            _ => {}
        }
    }
    let memory = network.memories[usize::from(peer.0)].as_bytes();
    let region = COUNTERS as usize * 8 + usize::from(node.0) * REGION as usize;
    for at in region..region + REGION as usize {
        let known = model[at].is_none_or(|known| known == memory[at]);
        assert!(known, "byte {at} of {peer:?}: an acknowledged write is lost: {what}");
    }
}

/// Counts what fetch-and-adds did: each result once, and as many as the counter says.
fn check_counters(network: &Network, submitted: &[Submitted], what: &str) {
    for peer in 0..NODES {
        for counter in 0..COUNTERS {
            let mut results = BTreeSet::new();
            let mut unknown = 0;
            let adds = submitted.iter().filter(|s| {
                s.request.peer == NodeId(peer)
                    && s.request.address == Address(8 * counter)
                    && matches!(s.request.op, Op::ReadModifyWrite { .. })
            });
            for add in adds {
                match network.events.get(&add.request.token) {
                    Some((Event::RmwDone { .. }, _)) => {
                        let word = network.reads[&add.request.token].as_slice();
                        let word = u64::from_le_bytes(word.try_into().expect("eight bytes"));
                        assert!(results.insert(word), "two adds saw {word}: {what}");
                    }
                    _ => unknown += 1,
                }
            }
            let memory = network.memories[usize::from(peer)].as_bytes();
            let word = &memory[8 * counter as usize..][..8];
            let executed = u64::from_le_bytes(word.try_into().expect("eight bytes"));
            let certain = results.len() as u64;
            assert!((certain..=certain + unknown).contains(&executed), "{executed} adds: {what}");
            assert!(results.last().is_none_or(|&last| last < executed), "{what}");
        }
    }
}

/// Whether two nodes have a switch that both reach.
fn has_path(kills: &[Kill], a: NodeId, b: NodeId) -> bool {
    let alive = |node| !kills.contains(&Kill::Node(node));
    let reaches = |switch, node| !kills.contains(&Kill::Link(switch, node));
    let works = |switch| {
        !kills.contains(&Kill::Switch(switch)) && !kills.contains(&Kill::SilentSwitch(switch))
    };
    let path = |switch| works(switch) && reaches(switch, a) && reaches(switch, b);
    alive(a) && alive(b) && (path(0) || path(1))
}

fn run(seed: u64, kills: &[(u64, Kill)]) {
    let what = format!("seed {seed}, {kills:?}");
    let mut rng = Rng(seed);
    let edm = EdmConfig { read_timeout: TIMEOUT, ..EdmConfig::default() };
    let mut network = Network::new(NODES, MEMORY, &edm, || Ps(640 * rng.below(200)));
    for &(when, kill) in kills {
        network.kill_at(Ps::from_ns(when), kill);
    }
    let mut submitted: Vec<Submitted> = Vec::new();
    for token in 0..REQUESTS {
        let node = NodeId(rng.below(u64::from(NODES)) as u16);
        let dead = kills
            .iter()
            .any(|&(at, kill)| kill == Kill::Node(node) && Ps::from_ns(at) <= network.now);
        let (request, data) = random_request(&mut rng, Token(token), node);
        if !dead && network.submit(node, request, data.clone()) {
            submitted.push(Submitted { node, request, data, at: network.now });
        }
        if rng.percent(40) {
            let pause = Ps(640 * rng.below(400));
            network.run(network.now + pause);
        }
    }
    network.run(network.now + TIMEOUT * 3);

    let kills: Vec<Kill> = kills.iter().map(|&(_, kill)| kill).collect();
    let silent = kills.iter().any(|kill| matches!(kill, Kill::SilentSwitch(_)));
    for Submitted { node, request, at, .. } in &submitted {
        let Some(&(event, end)) = network.events.get(&request.token) else {
            assert!(kills.contains(&Kill::Node(*node)), "{request:?} hangs: {what}");
            continue;
        };
        if has_path(&kills, *node, request.peer) {
            let failed = matches!(event, Event::Failed { .. });
            assert!(!failed, "{event:?} of {request:?} though there is a path: {what}");
            let at_once = end.0 - at.0 < TIMEOUT.0 / 2;
            assert!(at_once || silent, "{request:?} took {} ns: {what}", (end.0 - at.0) / 1000);
        } else {
            // A failed path or peer is told; only what gives no sign runs into its deadline.
            let null = matches!(event, Event::Failed { why: FailReason::Timeout, .. });
            assert!(!null || silent, "{request:?} waited for its deadline: {what}");
        }
    }
    for node in (0..NODES).map(NodeId) {
        for peer in (0..NODES).map(NodeId).filter(|&peer| peer != node) {
            check_pair(&network, &submitted, node, peer, &what);
        }
    }
    check_counters(&network, &submitted, &what);
}

fn kill() -> impl Strategy<Value = Kill> {
    let switch = 0..2_u8;
    let node = (0..NODES).prop_map(NodeId);
    prop_oneof![
        switch.clone().prop_map(Kill::Switch),
        switch.clone().prop_map(Kill::SilentSwitch),
        (switch, node.clone()).prop_map(|(switch, node)| Kill::Link(switch, node)),
        node.prop_map(Kill::Node),
    ]
}

#[test]
fn with_everything_alive_each_request_succeeds_and_acts_once() {
    for seed in 0..100 {
        run(seed, &[]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn one_thing_dies(seed: u64, when in 0_u64..4_000, kill in kill()) {
        run(seed, &[(when, kill)]);
    }

    #[test]
    fn two_things_die(
        seed: u64,
        kills in prop::collection::vec((0_u64..4_000, kill()), 2),
    ) {
        run(seed, &kills);
    }
}
