//! A rack end to end: programs send references through real rings, to their rack and by NICs; nodes
//! and NICs die and return; some entries are hostile. At the end the accounts close. A failure
//! prints the seed; `PROPTEST_CASES=2000 cargo test -p ethermem-dfabric --test rack` runs more.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

use ethermem_dfabric::address::Node;
use ethermem_dfabric::nic::{MemoryDevice, NicConfig, NicId, ReceiveSpread};
use ethermem_dfabric::poller::PollMode;
use ethermem_dfabric::pool::{MemoryPool, PoolConfig, PoolError, Preference, Protection};
use ethermem_dfabric::ring::{Consumer, Producer, PushError, RingMemory};
use ethermem_dfabric::switch_node::{Action, Lost, Refusal, SwitchConfig, SwitchNode};
use ethermem_placement::NodeId;
use ethermem_units::{BitsPerSecond, Bytes};
use ethermem_wire::dfabric::{Descriptor, DescriptorKind, FabricAddress, Identity};
use proptest::prelude::*;
use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const NODES: u16 = 3;
const SN: Node = Node(NODES);
const QUEUES: u16 = 2;
const ENTRIES: usize = 4;
const NICS: u16 = 2;
/// Cookies of forged entries are above this one, whatever bit of them is wrong.
const FORGED: u64 = 1 << 60;
const FAR: Identity = Identity(0x0a01_0001);

fn identity(node: Node) -> Identity {
    Identity(0x0a00_0000 + u32::from(node.0))
}

/// A TxQ or an RxQ, with both of its ends.
struct Queue {
    words: Vec<AtomicU64>,
    producer: Producer,
    consumer: Consumer,
}

impl Queue {
    fn new() -> Queue {
        let words = (0..ENTRIES * 4 + 1).map(|_| AtomicU64::new(0)).collect();
        Queue { words, producer: Producer::default(), consumer: Consumer::default() }
    }

    fn push(&mut self, words: [u64; 4]) -> bool {
        let memory = RingMemory::new(&self.words).unwrap();
        match self.producer.push(&memory, words) {
            Ok(()) => true,
            Err(PushError::Full) => false,
            Err(PushError::Fault(fault)) => panic!("{fault:?}"),
        }
    }

    fn pop(&mut self) -> Option<[u64; 4]> {
        self.consumer.pop(&RingMemory::new(&self.words).unwrap())
    }
}

struct World {
    random: Xoshiro256StarStar,
    pool: MemoryPool,
    switch: SwitchNode,
    spread: ReceiveSpread,
    tx: Vec<Queue>,
    rx: Vec<Queue>,
    /// Buffers of programs, by node.
    own: Vec<Vec<FabricAddress>>,
    /// By TxQ and destination: the cookies in their order.
    sent: BTreeMap<(u32, Identity), Vec<u64>>,
    cookie: u64,
    is_up: [bool; NICS as usize],
    completions: Vec<Descriptor>,
    arrived: u64,
}

impl World {
    fn new(seed: u64, mode: PollMode) -> World {
        World::with_references(seed, mode, 4096)
    }

    fn with_references(seed: u64, mode: PollMode, holds_max: u32) -> World {
        let config = PoolConfig {
            nodes_max: NODES + 1,
            class_bytes: vec![4096, 1 << 20],
            holds_max,
            skbs_max: 64,
            regions_max: 32,
            sections_kept: 0,
            buffers_low: 2,
            protection: Protection::Buffer,
        };
        let mut pool = MemoryPool::new(&config).unwrap();
        (0..3).for_each(|device| pool.add_device(NodeId(device), 16).unwrap());
        let switch = SwitchConfig {
            node: SN,
            nodes: NODES + 1,
            queues: QUEUES,
            rx_entries: ENTRIES as u32,
            mode,
            loads_max: 64,
        };
        let rate = BitsPerSecond::from_gbps(1).unwrap();
        let nic = NicConfig { rate, tx_entries: 3, rx_entries: 4 };
        let mut switch = SwitchNode::new(switch, &[nic; NICS as usize]);
        switch.add_remote(FAR);
        pool.join(SN, 16, &[]).unwrap();
        for node in (0..NODES).map(Node) {
            pool.join(node, 8, &[NodeId(0)]).unwrap();
            switch.join(node, identity(node));
        }
        let devices = [1, 2].map(|device| MemoryDevice { device: NodeId(device), bandwidth: rate });
        let queues = usize::from((NODES + 1) * QUEUES);
        World {
            random: Xoshiro256StarStar::seed_from_u64(seed),
            pool,
            switch,
            spread: ReceiveSpread::new(&devices),
            tx: (0..queues).map(|_| Queue::new()).collect(),
            rx: (0..queues).map(|_| Queue::new()).collect(),
            own: vec![Vec::new(); usize::from(NODES)],
            sent: BTreeMap::new(),
            cookie: 0,
            is_up: [true; NICS as usize],
            completions: Vec::new(),
            arrived: 0,
        }
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.next_u64() % bound
    }

    fn node(&mut self) -> Node {
        Node(self.below(u64::from(NODES)) as u16)
    }

    /// A program takes a Buffer.
    fn alloc(&mut self, node: Node) {
        let mut got = self.pool.alloc_shared_buffer(node, Bytes(1500), Preference::Near);
        if let Err(PoolError::NoBuffer { class, .. }) = got
            && self.pool.grant(node, class, Preference::Near).is_ok()
        {
            got = self.pool.alloc_shared_buffer(node, Bytes(1500), Preference::Near);
        }
        if let Ok(buffer) = got {
            self.own[usize::from(node.0)].push(buffer);
        }
    }

    /// A program sends a Buffer: the descriptor goes to the head of a TxQ.
    fn send(&mut self, node: Node) {
        let Some(buffer) = self.own[usize::from(node.0)].pop() else { return };
        let index = self.below(u64::from(QUEUES)) as u16;
        let destination = match self.below(5) {
            0 => FAR,
            1 => Identity(99),
            _ => identity(self.node()),
        };
        let queue = self.switch.queue(node, index);
        self.cookie += 1;
        let descriptor = Descriptor {
            kind: DescriptorKind::Transfer,
            reference: buffer,
            length: 1500,
            destination,
            source: identity(node),
            subflow: index,
            cookie: self.cookie,
        };
        if self.tx[queue as usize].push(descriptor.words()) {
            self.sent.entry((queue, destination)).or_default().push(self.cookie);
        } else {
            self.own[usize::from(node.0)].push(buffer);
        }
    }

    /// A program writes what it likes into its TxQ.
    fn attack(&mut self, node: Node) {
        let other = self.node();
        let theirs = self.own[usize::from(other.0)].last().copied().unwrap_or_default();
        let length = [0, 1, 1500, 4096, 4097, 2 << 20, u32::MAX][self.below(7) as usize];
        let source = identity(if self.below(2) == 0 { node } else { other });
        let (destination, subflow, cookie) = (identity(self.node()), 7, u64::MAX);
        let kind = DescriptorKind::Transfer;
        let forged =
            Descriptor { kind, reference: theirs, length, destination, source, subflow, cookie };
        let mut words = forged.words();
        if self.below(3) == 0 {
            words[self.below(4) as usize] ^= 1 << self.below(64);
        }
        // Its own reference with right words would be a transfer like any other.
        if other != node || Descriptor::parse(&words).is_err() {
            let queue = self.switch.queue(node, 0);
            self.tx[queue as usize].push(words);
        }
    }

    fn act(&mut self, action: Action) {
        match action {
            Action::Idle | Action::Waits | Action::Dropped { .. } => {}
            Action::ToRx { node, queue, descriptor, .. } => {
                let (at, length) = (descriptor.reference, u64::from(descriptor.length));
                assert!(self.pool.check_access(node, at, length).is_ok());
                assert!(self.rx[queue as usize].push(descriptor.words()), "an RxQ overflows");
            }
            Action::ToNic { work, .. } => assert_eq!(work.kind, DescriptorKind::Send),
            Action::Unreachable { node, descriptor } => {
                let at = descriptor.reference;
                if self.pool.references(node, at) > 0 && descriptor.cookie < FORGED {
                    self.pool.release(node, at).unwrap();
                }
            }
            Action::Refused { .. } => {}
        }
    }

    fn poll(&mut self) {
        while let Some(action) = self.switch.retry(&mut self.pool) {
            self.act(action);
        }
        for _ in 0..self.below(6) {
            let Some(queue) = self.switch.poll() else { break };
            let words = self.tx[queue as usize].pop();
            let action = self.switch.on_tail(&mut self.pool, queue, words);
            self.act(action);
        }
    }

    /// A node serves its interrupt: what has come is in the order of its TxQ.
    fn receive(&mut self, node: Node) {
        let queue = self.switch.queue(node, self.random.next_u32() as u16);
        let Some(words) = self.rx[queue as usize].pop() else { return };
        let descriptor = Descriptor::parse(&words).unwrap();
        self.switch.on_consumed(queue);
        let Descriptor { reference, length, source, cookie, destination, .. } = descriptor;
        assert_eq!(destination, identity(node));
        // A forged entry may name a Buffer of its own node by chance.
        if source != FAR && cookie < FORGED {
            self.in_order(source, queue, destination, cookie);
        }
        let Ok(skb) = self.pool.build_shared_skb(node, reference, length) else {
            assert_eq!(self.pool.references(node, reference), 0, "it was lost with its device");
            return;
        };
        self.arrived += 1;
        let freed = self.pool.kfree_shared_skb(node, skb).unwrap().unwrap();
        assert!(freed.flush);
    }

    fn in_order(&mut self, source: Identity, queue: u32, to: Identity, cookie: u64) {
        let from = Node((source.0 - 0x0a00_0000) as u16);
        let tx = self.switch.queue(from, (queue % u32::from(QUEUES)) as u16);
        let sent = self.sent.get_mut(&(tx, to)).unwrap();
        let at = sent.iter().position(|sent| *sent == cookie);
        let at = at.unwrap_or_else(|| panic!("{cookie} came twice or out of order"));
        // Those before it were refused, or died with a node.
        sent.drain(..=at);
    }

    /// A NIC sends its first packet, receives one, gets a receive buffer.
    fn nic(&mut self) {
        let nic = NicId(self.below(u64::from(NICS)) as u16);
        self.switch.on_sent(&mut self.pool, nic);
        let filled = self.switch.fill_receive(&mut self.pool, &mut self.spread, nic, 4096);
        if let Err(PoolError::NoBuffer { class, .. }) = filled {
            let _ = self.pool.grant(SN, class, Preference::Near);
        }
        if self.below(2) == 0
            && let Some(buffer) = self.switch.nics_mut().arrive(nic)
        {
            let destination = if self.below(6) == 0 { FAR } else { identity(self.node()) };
            self.completions.push(Descriptor {
                kind: DescriptorKind::Received,
                reference: buffer,
                length: 1000,
                destination,
                source: FAR,
                subflow: self.random.next_u32() as u16,
                cookie: 0,
            });
        }
        let words = self.completions.first().map(Descriptor::words);
        if let Some(words) = words {
            let action = self.switch.on_completion(&mut self.pool, &words);
            if action != Action::Waits {
                self.completions.remove(0);
            }
            self.act(action);
        }
    }

    fn nic_changes(&mut self) {
        let nic = NicId(self.below(u64::from(NICS)) as u16);
        let at = usize::from(nic.0);
        if self.is_up[at] {
            self.switch.lose_nic(nic);
            while let Some(lost) = self.switch.poll_lost(&mut self.pool, nic) {
                let (Lost::Packet { freed, .. } | Lost::Receive { freed, .. }) = lost;
                assert!(freed.is_some_and(|freed| freed.is_free), "{lost:?}");
            }
        } else {
            assert!(self.switch.nics_mut().restore(nic));
        }
        self.is_up[at] = !self.is_up[at];
    }

    /// A node dies with what is in its queues and its programs, and comes back empty.
    fn die(&mut self, node: Node) {
        self.switch.node_died(&mut self.pool, node).unwrap();
        self.own[usize::from(node.0)].clear();
        for index in 0..QUEUES {
            let queue = self.switch.queue(node, index);
            self.tx[queue as usize] = Queue::new();
            self.rx[queue as usize] = Queue::new();
        }
        while self.pool.take_orphan().is_some() {}
        self.pool.join(node, 8, &[NodeId(0)]).unwrap();
        self.switch.join(node, identity(node));
    }

    /// A device is lost with what it had, and another one takes its place.
    fn lose_memory(&mut self) {
        let device = NodeId(self.below(3) as u16);
        self.switch.device_lost(&mut self.pool, device).unwrap();
        let pool = &self.pool;
        for (node, own) in (0..).zip(&mut self.own) {
            own.retain(|buffer| pool.references(Node(node), *buffer) > 0);
        }
        self.completions.retain(|done| pool.references(SN, done.reference) > 0);
        self.pool.add_device(device, 16).unwrap();
    }

    fn step(&mut self) {
        let node = self.node();
        match self.below(64) {
            0..=15 => self.alloc(node),
            16..=28 => self.send(node),
            29..=31 => self.attack(node),
            32..=44 => self.poll(),
            45..=56 => self.receive(node),
            57..=61 => self.nic(),
            62 if self.below(4) == 0 => self.nic_changes(),
            63 if self.below(4) == 0 => self.die(node),
            63 if self.below(8) == 0 => self.lose_memory(),
            _ => {}
        }
    }

    /// All stops; every reference comes back.
    fn end(mut self) {
        self.pool.check();
        for node in (0..NODES).map(Node) {
            self.switch.node_died(&mut self.pool, node).unwrap();
        }
        for nic in (0..NICS).map(NicId) {
            while self.switch.on_sent(&mut self.pool, nic).is_some() {}
            self.switch.lose_nic(nic);
            while self.switch.poll_lost(&mut self.pool, nic).is_some() {}
        }
        for completion in std::mem::take(&mut self.completions) {
            let dropped = self.switch.on_completion(&mut self.pool, &completion.words());
            assert!(matches!(dropped, Action::Dropped { freed: Some(_) }), "{dropped:?}");
        }
        let accounts = self.pool.accounts();
        assert_eq!((accounts.references, accounts.held_bytes, accounts.skbs), (0, 0, 0));
        while self.pool.take_orphan().is_some() {}
        while let Some(section) = self.pool.surplus(SN) {
            self.pool.give_back(SN, section).unwrap();
        }
        self.pool.check();
        assert_eq!(self.pool.accounts().granted_bytes, 0);
    }
}

proptest! {
    #[test]
    fn references_arrive_once_in_order_and_all_come_back(
        seed in any::<u64>(),
        is_in_turn in any::<bool>(),
    ) {
        let mode = if is_in_turn { PollMode::InTurn } else { PollMode::Concurrent };
        let mut world = World::new(seed, mode);
        for _ in 0..3_000 {
            world.step();
        }
        let counters = world.switch.counters();
        prop_assert!(world.arrived > 50, "{} arrived: {counters:?}", world.arrived);
        prop_assert!(counters.refused > 0 && counters.inter_rack > 0, "{counters:?}");
        world.end();
    }
}

/// A node whose descriptor waits for room dies and joins again, more often than there are queues:
/// each time it is forgotten, and the last one goes on when there is room.
#[test]
fn what_waits_dies_with_its_node_and_leaves_no_trace() {
    let mut world = World::new(1, PollMode::Concurrent);
    let (from, to) = (Node(0), Node(1));
    let reload = |world: &mut World| {
        world.alloc(from);
        let reference = world.own[0].pop().unwrap();
        let descriptor = Descriptor {
            kind: DescriptorKind::Transfer,
            reference,
            length: 100,
            destination: identity(to),
            source: identity(from),
            subflow: 0,
            cookie: 1,
        };
        while let Some(queue) = world.switch.poll() {
            if queue == 0 {
                return world.switch.on_tail(&mut world.pool, queue, Some(descriptor.words()));
            }
            world.switch.on_tail(&mut world.pool, queue, None);
        }
        panic!("TxQ 0 is polled")
    };
    for _ in 0..ENTRIES {
        assert!(matches!(reload(&mut world), Action::ToRx { .. }));
    }
    for _ in 0..20 {
        assert_eq!(reload(&mut world), Action::Waits);
        world.switch.node_died(&mut world.pool, from).unwrap();
        world.pool.join(from, 8, &[]).unwrap();
        world.switch.join(from, identity(from));
    }
    assert_eq!(reload(&mut world), Action::Waits);
    assert_eq!(world.switch.retry(&mut world.pool), None, "there is no room yet");
    world.switch.on_consumed(world.switch.queue(to, 0));
    let action = world.switch.retry(&mut world.pool);
    assert!(matches!(action, Some(Action::ToRx { .. })), "{action:?}");
    assert_eq!(world.pool.references_of(to).count(), ENTRIES + 1);
    world.pool.check();
}

/// A node cannot speak for another one, send by a NIC what it does not hold, or use another kind of
/// entry: each is refused with its reason, and no reference moves.
#[test]
fn forged_entries_are_refused_with_their_reasons() {
    let mut world = World::new(1, PollMode::InTurn);
    (0..2).for_each(|node| world.alloc(Node(node)));
    let [own, theirs] = [0, 1].map(|node| world.own[node][0]);
    let right = Descriptor {
        kind: DescriptorKind::Transfer,
        reference: own,
        length: 4096,
        destination: identity(Node(2)),
        source: identity(Node(0)),
        subflow: 0,
        cookie: 0,
    };
    let longer = PoolError::Crosses { address: own.number(), length: 4097, bytes: 4096 };
    let not_held = PoolError::NotHeld { node: 0, address: theirs.number() };
    let kind = DescriptorKind::Send;
    let spoofed = identity(Node(1));
    let forged = [
        (Descriptor { source: spoofed, ..right }, Refusal::Source(spoofed)),
        (Descriptor { kind, ..right }, Refusal::Kind(kind)),
        (Descriptor { length: 4097, ..right }, Refusal::Reference(longer)),
        (Descriptor { reference: theirs, ..right }, Refusal::Reference(not_held)),
        (Descriptor { reference: theirs, destination: FAR, ..right }, Refusal::Reference(not_held)),
    ];
    let before = world.pool.accounts();
    for (descriptor, refusal) in forged {
        loop {
            let queue = world.switch.poll().unwrap();
            let words = (queue == 0).then(|| descriptor.words());
            let action = world.switch.on_tail(&mut world.pool, queue, words);
            if queue == 0 {
                assert_eq!(action, Action::Refused { node: Node(0), refusal });
                break;
            }
        }
    }
    assert_eq!((world.pool.accounts(), world.switch.counters().refused), (before, 5));
    let nic = (0..NICS).map(|nic| world.switch.nics().tx_bytes_and_drops(NicId(nic)).0);
    assert_eq!(nic.sum::<u64>(), 0);
}

/// A receiver that serves its interrupt seldom: its RxQ is full most of the time, and still every
/// descriptor arrives, in order ("zero packet loss within the rack", 6.2).
#[test]
fn a_full_queue_drops_nothing() {
    let mut world = World::new(1, PollMode::Concurrent);
    let (from, to) = (Node(0), Node(1));
    let (mut sent, mut came) = (0, Vec::new());
    for turn in 0..4_000 {
        world.alloc(from);
        if let Some(reference) = world.own[0].pop() {
            let (destination, source) = (identity(to), identity(from));
            let kind = DescriptorKind::Transfer;
            let (length, subflow, cookie) = (100, 0, sent);
            let entry =
                Descriptor { kind, reference, length, destination, source, subflow, cookie };
            match world.tx[0].push(entry.words()) {
                true => sent += 1,
                false => world.own[0].push(reference),
            }
        }
        world.poll();
        if turn % 5 == 0 || turn > 3_900 {
            let queue = world.switch.queue(to, 0);
            let Some(words) = world.rx[queue as usize].pop() else { continue };
            world.switch.on_consumed(queue);
            let descriptor = Descriptor::parse(&words).unwrap();
            world.pool.release(to, descriptor.reference).unwrap();
            came.push(descriptor.cookie);
        }
    }
    let waits = world.switch.counters().waits;
    assert!(waits > 500 && came.len() > 700, "{waits} {}", came.len());
    assert_eq!(came, (0..came.len() as u64).collect::<Vec<_>>());
    // What has not come is in the two queues, or waits between them.
    assert!(sent - came.len() as u64 <= 2 * ENTRIES as u64 + 1, "{sent} {}", came.len());
}

#[test]
fn a_pool_without_references_drops_nothing() {
    const BUFFERS: u64 = 3;
    // Each Buffer has one reference of its sender, which it keeps, and one is left for receivers.
    let mut world = World::with_references(1, PollMode::Concurrent, BUFFERS as u32 + 1);
    let (from, to) = (Node(0), Node(1));
    for cookie in 0..BUFFERS {
        world.alloc(from);
        let reference = world.own[0].pop().unwrap();
        world.pool.retain(from, reference).unwrap();
        let (destination, source) = (identity(to), identity(from));
        let kind = DescriptorKind::Transfer;
        let (length, subflow) = (100, 0);
        let entry = Descriptor { kind, reference, length, destination, source, subflow, cookie };
        assert!(world.tx[0].push(entry.words()));
    }
    let queue = world.switch.queue(to, 0);
    for cookie in 0..BUFFERS {
        (0..20).for_each(|_| world.poll());
        assert!(!world.pool.has_reference());
        let words = world.rx[queue as usize].pop().expect("one is passed");
        world.switch.on_consumed(queue);
        let descriptor = Descriptor::parse(&words).unwrap();
        assert_eq!(descriptor.cookie, cookie);
        assert!(world.switch.retry(&mut world.pool).is_none(), "its receiver holds it");
        world.pool.release(to, descriptor.reference).unwrap();
        if let Some(action) = world.switch.retry(&mut world.pool) {
            world.act(action);
        }
    }
    let counters = world.switch.counters();
    assert_eq!((counters.intra_rack, counters.refused), (BUFFERS, 0));
    assert!(counters.waits >= BUFFERS - 1, "{counters:?}");
}
