//! Nodes, memory nodes and a switch, block by block. Reads, writes and atomics of all sizes share
//! the links with Ethernet frames, and are checked against a model of each memory.

use ethermem_edm::port::{BlockSwitch, EGRESS_BLOCKS_MAX};
use ethermem_edm::{
    Address, Arbitration, EdmConfig, Event, NodeId, Op, Order, Request, RmwOperation, Token,
    WriteKind,
};
use ethermem_units::Bytes;

use crate::ethernet::frame;
use crate::links::Network;
use crate::rng::Rng;

const NODES: u16 = 5;
/// Number of nodes of the incast: all but the first write to the first and read from it.
const MANY: u16 = 24;
/// Size of each compute node's own part of each memory.
const REGION: u64 = 8_192;
const MEMORY: usize = REGION as usize * NODES as usize;

/// The contents of one compute node's part of one memory, by its requests in the order of
/// submission.
struct Model {
    memories: Vec<Vec<u8>>,
}

impl Model {
    /// Applies a request; returns what it reads.
    fn apply(&mut self, request: &Request, data: &[u8]) -> Vec<u8> {
        let memory = &mut self.memories[usize::from(request.peer.number())];
        let at = request.address.0 as usize;
        match request.op {
            Op::Read { bytes } => memory[at..at + bytes.0 as usize].to_vec(),
            Op::Write { .. } => {
                memory[at..at + data.len()].copy_from_slice(data);
                Vec::new()
            }
            Op::ReadModifyWrite { operation } => {
                let word = memory[at..at + 8].to_vec();
                let old = u64::from_le_bytes(word.as_slice().try_into().expect("eight bytes"));
                memory[at..at + 8].copy_from_slice(&operation.apply(old).to_le_bytes());
                word
            }
        }
    }
}

fn random_request(rng: &mut Rng, token: Token, node: u16) -> (Request, Vec<u8>) {
    let peer = NodeId::at((node + 1 + rng.below(u64::from(NODES) - 1) as u16) % NODES);
    let most = if rng.percent(10) { 5_000 } else { 100 };
    let bytes = 1 + rng.below(most);
    let base = u64::from(node) * REGION;
    let address = Address(base + rng.below(REGION - bytes + 1));
    let (address, op) = match rng.below(10) {
        0..4 => (address, Op::Read { bytes: Bytes(bytes) }),
        4..8 => {
            let kind = if rng.percent(50) { WriteKind::Posted } else { WriteKind::Acknowledged };
            (address, Op::Write { bytes: Bytes(bytes), kind })
        }
        _ => {
            let address = Address(base + 8 * rng.below(REGION / 8));
            (address, Op::ReadModifyWrite { operation: RmwOperation::FetchAndAdd(rng.next()) })
        }
    };
    let data = match op {
        Op::Write { bytes, .. } => rng.bytes(bytes.0 as usize),
        _ => Vec::new(),
    };
    (Request { token, peer, address, op, fence: false }, data)
}

/// Runs `messages` requests in all, with frames on every link if `frames`; checks everything
/// against the model.
fn run(seed: u64, switches: u8, messages: u32, frames: bool, edm: &EdmConfig) -> Network {
    let mut rng = Rng(seed);
    let mut network = Network::new(NODES, switches, MEMORY, edm);
    let mut model = Model { memories: vec![vec![0; MEMORY]; usize::from(NODES)] };
    let mut expected = Vec::new();
    let mut sent_frames: Vec<Vec<Vec<u8>>> = vec![Vec::new(); network.host_macs.len() * 2];
    let mut submitted = 0;
    let mut last_progress = 0;
    for step in 0_u64.. {
        if submitted < messages && rng.percent(20) {
            let node = rng.below(u64::from(NODES)) as u16;
            let token = Token(submitted);
            let (request, data) = random_request(&mut rng, token, node);
            if network.submit(NodeId::at(node), request, data.clone()) {
                expected.push((node, request, model.apply(&request, &data)));
                submitted += 1;
                last_progress = step;
            }
        }
        if frames && submitted < messages {
            let links = network.host_macs.len();
            let side = rng.below(2 * links as u64) as usize;
            let macs = [&mut network.host_macs, &mut network.switch_macs];
            let mac = &mut macs.into_iter().flatten().nth(side).expect("a side of a link");
            if mac.encoder.is_idle() {
                let bytes = 64 + rng.below(600) as usize;
                let frame = frame(&mut rng, bytes);
                mac.encoder.send(&frame);
                sent_frames[side].push(frame);
            }
        }
        let before = network.events.len();
        network.step();
        if network.events.len() > before {
            last_progress = step;
        }
        if step > last_progress + 20_000 {
            break;
        }
        if submitted == messages && network.events.len() == messages as usize {
            // Posted writes and frames may still be in flight.
            (0..5_000).for_each(|_| network.step());
            break;
        }
    }
    let hang: Vec<&Request> = (expected.iter().map(|(_, request, _)| request))
        .filter(|request| !network.events.contains_key(&request.token))
        .collect();
    assert!(hang.is_empty() && submitted == messages, "hang, seed {seed}: {hang:?}");
    for (node, request, read) in &expected {
        let (event, _) = network.events[&request.token];
        assert!(!matches!(event, Event::Failed { .. }), "{event:?} of {request:?}, seed {seed}");
        let found = network.data[usize::from(*node)].reads.get(&request.token);
        let found = found.map_or(&[][..], Vec::as_slice);
        assert!(found == read.as_slice(), "{request:?} read something else, seed {seed}");
    }
    for (node, memory) in model.memories.iter().enumerate() {
        let found = network.hosts[node].memory().as_bytes();
        assert!(found == memory.as_slice(), "memory of node {node}, seed {seed}");
    }
    let links = network.host_macs.len();
    for link in 0..links {
        let up = &network.switch_macs[link].received;
        assert!(*up == sent_frames[link], "frames up link {link}, seed {seed}");
        let down = &network.host_macs[link].received;
        assert!(*down == sent_frames[links + link], "frames down link {link}, seed {seed}");
    }
    network
}

#[test]
fn ten_thousand_messages_are_what_a_model_says() {
    let edm = EdmConfig { batching: false, order: Order::Strict, ..EdmConfig::default() };
    let network = run(1, 1, 10_000, false, &edm);
    let counters = network.switches[0].counters();
    assert_eq!(*counters, Default::default());
}

#[test]
fn memory_and_frames_share_every_link() {
    for (seed, arbitration) in [(2, Arbitration::Fair), (3, Arbitration::Strict)] {
        let edm = EdmConfig { arbitration, ..EdmConfig::default() };
        let network = run(seed, 1, 2_000, true, &edm);
        assert_eq!(*network.switches[0].counters(), Default::default());
        let frames: usize = network.host_macs.iter().map(|mac| mac.received.len()).sum();
        assert!(frames > 100, "{frames} frames");
    }
}

#[test]
fn two_switches_do_everything_once() {
    let network = run(4, 2, 1_000, true, &EdmConfig::default());
    let again: u64 = (network.hosts.iter())
        .map(|host| {
            let counters = host.host().counters();
            counters.requests_again + counters.chunks_again
        })
        .sum();
    assert!(again > 500, "{again} second copies");
}

#[test]
fn an_incast_stays_within_the_egress_buffer() {
    let edm = EdmConfig::default();
    let mut rng = Rng(5);
    let mut network = Network::new(MANY, 1, 65_536, &edm);
    let mut submitted = 0;
    for slot in 0..60_000 {
        // Every node has a backlog of reads and writes, and every uplink a backlog of frames.
        for node in (1..MANY).filter(|_| slot < 40_000) {
            let mac = &mut network.host_macs[usize::from(node)];
            if mac.encoder.is_idle() {
                let frame = frame(&mut rng, 1_000);
                mac.encoder.send(&frame);
            }
            if rng.percent(2) {
                let bytes = Bytes(1 + rng.below(2_000));
                let write = Op::Write { bytes, kind: WriteKind::Acknowledged };
                let op = if rng.percent(50) { write } else { Op::Read { bytes } };
                let (token, address) = (Token(submitted), Address(rng.below(60_000)));
                let request = Request { token, peer: NodeId::at(0), address, op, fence: false };
                let data = rng.bytes(bytes.0 as usize);
                submitted += u32::from(network.submit(NodeId::at(node), request, data));
            }
        }
        network.step();
    }
    // Both directions carry at most 960 KB, in messages of 1,000 B on average.
    assert!(network.events.len() > 500, "{} of {submitted}", network.events.len());
    let most = network.switches[0].egress_blocks_max();
    assert!(most < EGRESS_BLOCKS_MAX / 2, "{most} blocks");
}

/// Above 65,535 B a demand is stated in units of 64 B, so its last grant may be for more than is
/// left. The cases leave all but one byte of a unit over, in a chunk of its own or not.
#[test]
fn messages_whose_demand_is_rounded_up_end_and_leave_nothing_open() {
    const SIZES: [u64; 8] = [65_535, 65_536, 65_537, 65_599, 65_600, 70_001, 100_353, 131_073];
    for (chunk, switches) in [(256, 1), (200, 1), (1_024, 2)] {
        let edm = EdmConfig { chunk: Bytes(chunk), ..EdmConfig::default() };
        let mut network = Network::new(2, switches, 1 << 18, &edm);
        let mut rng = Rng(6);
        for (n, bytes) in SIZES.into_iter().enumerate() {
            let bytes = Bytes(bytes);
            let data = rng.bytes(bytes.0 as usize);
            let ops = [
                Op::Write { bytes, kind: WriteKind::Posted },
                Op::Write { bytes, kind: WriteKind::Acknowledged },
                Op::Read { bytes },
            ];
            for (op, token) in ops.into_iter().zip(3 * n as u32..) {
                let (token, address) = (Token(token), Address(64));
                let request = Request { token, peer: NodeId::at(1), address, op, fence: false };
                let data = if matches!(op, Op::Read { .. }) { Vec::new() } else { data.clone() };
                assert!(network.submit(NodeId::at(0), request, data));
                (0..40_000).for_each(|_| network.step());
                let event = network.events.get(&token).map(|(event, _)| *event);
                let done = event.is_some_and(|event| !matches!(event, Event::Failed { .. }));
                assert!(done, "{op:?}, chunks of {chunk} B: {event:?}");
                let open: u64 = network.switches.iter().map(BlockSwitch::circuits_open).sum();
                assert_eq!(open, 0, "circuits open after {op:?}, chunks of {chunk} B");
            }
            let written = &network.hosts[1].memory().as_bytes()[64..][..data.len()];
            assert!(written == data, "{bytes:?} written");
            assert!(network.data[0].reads[&Token(3 * n as u32 + 2)] == data, "{bytes:?} read");
        }
        assert_eq!(*network.switches[0].counters(), Default::default());
    }
}
