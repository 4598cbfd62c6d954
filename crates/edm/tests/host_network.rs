//! Hosts under random schedules: their guarantees hold whatever the switch and the links do.

mod network;
#[path = "../../units/tests/support/property.rs"]
mod property;

use ethermem_edm::{
    Address, Counters, EdmConfig, Event, FailReason, Host, NodeId, Op, Order, Request, RmwKind,
    RmwOperation, StatusCode, SubmitError, Token, WriteKind,
};
use ethermem_units::{Bytes, Ps};
use network::{Faults, Network, REGION_BYTES, pattern};
use proptest::prelude::*;

const NODES: u16 = 4;

/// One request of a run. It is small, so that it shrinks well.
#[derive(Clone, Copy, Debug)]
struct Ask {
    compute: u16,
    memory: u16,
    kind: u8,
    address: u16,
    bytes: u16,
    fence: bool,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let small = prop_oneof![4 => 1..=64_u16, 2 => 65..=300_u16, 1 => 301..=1_500_u16];
    let ask = (0..NODES, 1..NODES, 0..4_u8, any::<u16>(), small, any::<u8>()).prop_map(
        |(compute, ahead, kind, address, bytes, fence)| Ask {
            compute,
            // Half of all requests go to one neighbour, so that pairs fill up.
            memory: (compute + if ahead == 2 { 1 } else { ahead }) % NODES,
            kind,
            address,
            bytes,
            fence: fence < 25,
        },
    );
    prop::collection::vec(ask, 1..120)
}

fn config() -> impl Strategy<Value = EdmConfig> {
    let order = prop_oneof![Just(Order::Strict), Just(Order::Relaxed)];
    (1..=4_u8, 1..=4_u64, any::<bool>(), order).prop_map(|(x, chunk, batching, order)| EdmConfig {
        chunk: Bytes(chunk * 64),
        notifications_max: x,
        order,
        batching,
        read_timeout: Ps::from_ns(1_000_000_000),
        ..EdmConfig::default()
    })
}

impl Ask {
    /// The request of this ask, within the region of its compute node. The upper half of the
    /// address holds the token for the network's records.
    fn request(self, token: Token) -> Request {
        let bytes = u64::from(self.bytes);
        let (bytes, op) = match self.kind {
            0 => (bytes, Op::Read { bytes: Bytes(bytes) }),
            1 => (bytes, Op::Write { bytes: Bytes(bytes), kind: WriteKind::Posted }),
            2 => (bytes, Op::Write { bytes: Bytes(bytes), kind: WriteKind::Acknowledged }),
            _ => {
                let kind = RmwKind::ALL[usize::from(self.bytes) % 6];
                let operation = RmwOperation::new(kind, [bytes << 8 | 3, bytes]);
                (8, Op::ReadModifyWrite { operation })
            }
        };
        let mut address = u64::from(self.address) % (REGION_BYTES - bytes + 1);
        if self.kind == 3 {
            address &= !7;
        }
        let address = address + u64::from(self.compute) * REGION_BYTES;
        let address = Address(address | u64::from(token.0) << 32);
        Request { token, peer: NodeId::at(self.memory), address, op, fence: self.fence }
    }

    /// Applies the request to a plain memory; returns what a read must then return.
    fn apply(self, token: Token, memory: &mut [u8]) -> Vec<u8> {
        let request = self.request(token);
        let at = (request.address.0 & 0xffff_ffff) as usize;
        match request.op {
            Op::Read { bytes } => memory[at..at + bytes.0 as usize].to_vec(),
            Op::Write { bytes, .. } => {
                let data = (0..bytes.0).map(|offset| pattern(token, offset));
                memory[at..at + bytes.0 as usize].iter_mut().zip(data).for_each(|(b, d)| *b = d);
                Vec::new()
            }
            Op::ReadModifyWrite { operation } => {
                let word = &mut memory[at..at + 8];
                let before = word.to_vec();
                let old = word.iter().rev().fold(0, |old, &byte| old << 8 | u64::from(byte));
                let new = match operation {
                    RmwOperation::CompareAndSwap { expected, desired } => {
                        if old == expected {
                            desired
                        } else {
                            old
                        }
                    }
                    RmwOperation::FetchAndAdd(operand) => old.wrapping_add(operand),
                    RmwOperation::Swap(operand) => operand,
                    RmwOperation::And(operand) => old & operand,
                    RmwOperation::Or(operand) => old | operand,
                    RmwOperation::Xor(operand) => old ^ operand,
                };
                word.copy_from_slice(&new.to_le_bytes());
                before
            }
        }
    }
}

/// Submits all asks in order, at times that the schedule chooses, and runs until nothing more
/// happens.
fn run(network: &mut Network, asks: &[Ask], first_token: u32) {
    let mut waiting = asks.iter().zip(first_token..).peekable();
    loop {
        while waiting.peek().is_some() && network.rng.below(100) < 40 {
            let Some((&ask, token)) = waiting.peek().copied() else {
                break;
            };
            match network.submit(NodeId::at(ask.compute), ask.request(Token(token))) {
                Ok(()) => waiting.next(),
                Err(SubmitError::Full) => break,
                Err(error) => panic!("{error}"),
            };
        }
        if network.step() {
            continue;
        }
        // The network is quiet. With losses, some requests wait for lost messages until their
        // deadline.
        let deadline = network.hosts.iter().filter_map(Host::next_timeout).min();
        match deadline {
            Some(deadline) if network.faults.drop + network.faults.corrupt > 0 => {
                network.now = network.now.max(deadline);
            }
            _ if waiting.peek().is_none() => return,
            _ => {}
        }
        if network.is_stuck() {
            // Posted writes whose notification or grants were lost end only by a failure.
            network.fail_all();
        }
    }
}

fn assert_all_ended_well(network: &Network, asks: &[Ask], first_token: u32) {
    for (ask, token) in asks.iter().zip(first_token..) {
        let token = Token(token);
        let expected = match ask.kind {
            0 => Event::ReadDone { token },
            1 => Event::WriteSent { token },
            2 => Event::WriteApplied { token },
            _ => Event::RmwDone { token },
        };
        assert_eq!(network.records[&token].event, Some(expected), "{ask:?}");
    }
    for host in &network.hosts {
        assert_eq!(host.messages_in_use(), 0);
        assert_eq!(
            *host.counters(),
            Counters { batched: host.counters().batched, ..Counters::default() }
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..property::cases(96)
    })]

    /// Without faults every request succeeds. Every read returns what the earlier requests of its
    /// compute node left, and memory ends as they left it.
    #[test]
    fn pairs_see_their_own_order(
        asks in asks(), config in config(), messages_max in 4..64_usize, seed: u64,
    ) {
        let config = EdmConfig { order: Order::Strict, ..config };
        let mut network = Network::new(NODES, &config, messages_max, seed);
        run(&mut network, &asks, 0);
        assert_all_ended_well(&network, &asks, 0);
        let bytes = usize::from(NODES) * REGION_BYTES as usize;
        let mut reference = vec![vec![0; bytes]; usize::from(NODES)];
        for (ask, token) in asks.iter().zip(0..) {
            let expected = ask.apply(Token(token), &mut reference[usize::from(ask.memory)]);
            prop_assert_eq!(&network.records[&Token(token)].read, &expected, "{:?}", ask);
        }
        for (memory, reference) in network.memories.iter().zip(&reference) {
            prop_assert!(memory.as_bytes() == reference.as_slice());
        }
    }

    /// Under relaxed order every request succeeds and acts once. Between two nodes a fence acts
    /// after all earlier requests and before all later ones.
    #[test]
    fn fences_order_what_is_otherwise_free(
        asks in asks(), config in config(), messages_max in 4..64_usize, seed: u64,
    ) {
        let config = EdmConfig { order: Order::Relaxed, ..config };
        let mut network = Network::new(NODES, &config, messages_max, seed);
        run(&mut network, &asks, 0);
        assert_all_ended_well(&network, &asks, 0);
        for (fence, at) in asks.iter().zip(0..).filter(|(ask, _)| ask.fence) {
            let fenced = &network.records[&Token(at)];
            for (other, token) in asks.iter().zip(0..) {
                let same = (other.compute, other.memory) == (fence.compute, fence.memory);
                let other = &network.records[&Token(token)];
                if same && token < at {
                    prop_assert!(other.last_effect < fenced.first_effect, "{token} before {at}");
                } else if same && token > at {
                    prop_assert!(other.first_effect > fenced.last_effect, "{token} after {at}");
                }
            }
        }
        for (ask, token) in asks.iter().zip(0..).filter(|(ask, _)| [1, 2].contains(&ask.kind)) {
            prop_assert_eq!(network.records[&Token(token)].bytes_stored, u64::from(ask.bytes));
        }
    }

    /// With losses and duplicates every request still ends exactly once. Acknowledged writes were
    /// applied, and data reaches only the request that it belongs to. After a failure was declared
    /// and repaired, everything works as at the start.
    #[test]
    fn losses_and_repetitions_end_in_errors_not_in_wrong_data(
        asks in asks(), config in config(), seed: u64,
        drop in 0..20_u64, duplicate in 0..20_u64,
    ) {
        let config = EdmConfig { read_timeout: Ps(200_000), ..config };
        let mut network = Network::new(NODES, &config, 200, seed);
        network.faults = Faults { drop, duplicate, corrupt: 0 };
        run(&mut network, &asks, 0);
        network.fail_all();
        for (ask, token) in asks.iter().zip(0..) {
            let record = &network.records[&Token(token)];
            prop_assert!(record.served <= 1, "{:?} acted twice", ask);
            match record.event {
                None => prop_assert!(false, "{:?} never ended", ask),
                Some(Event::Failed { why, .. }) => prop_assert!(
                    matches!(
                        why,
                        FailReason::Timeout
                            | FailReason::Incomplete
                            | FailReason::LinkDown
                            | FailReason::Remote(StatusCode::Incomplete)
                    ),
                    "{:?}", why
                ),
                Some(Event::WriteApplied { .. }) => {
                    prop_assert_eq!(record.bytes_stored, u64::from(ask.bytes));
                }
                Some(_) => {}
            }
        }
        network.faults = Faults::default();
        run(&mut network, &asks, 1_000);
        for (ask, token) in asks.iter().zip(1_000..) {
            let event = network.records[&Token(token)].event;
            prop_assert!(event.is_some_and(|event| !matches!(event, Event::Failed { .. })
                || matches!(event, Event::Failed { why: FailReason::Timeout, .. })), "{ask:?}");
        }
    }

    /// Fields with arbitrary values are counted and dropped, or act as what they now say. No
    /// request ends twice, none is forgotten, and nothing panics.
    #[test]
    fn corrupted_fields_do_no_harm_to_the_state(
        asks in asks(), config in config(), seed: u64, corrupt in 1..30_u64,
    ) {
        let config = EdmConfig { read_timeout: Ps(200_000), ..config };
        let mut network = Network::new(NODES, &config, 200, seed);
        network.faults = Faults { drop: 2, duplicate: 5, corrupt };
        run(&mut network, &asks, 0);
        network.fail_all();
        for (token, record) in &network.records {
            prop_assert!(record.event.is_some(), "{:?} never ended", token);
        }
        for host in &network.hosts {
            prop_assert_eq!(host.messages_in_use(), 0);
        }
    }
}
