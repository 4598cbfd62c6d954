//! The data path allocates nothing once it is built: Buffers, queues, NICs, streams, cache.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::atomic::AtomicU64;

use ethermem_dfabric::address::Node;
use ethermem_dfabric::cache::{CacheConfig, DramCache, Lookup};
use ethermem_dfabric::nic::{MemoryDevice, NicConfig, NicId, ReceiveSpread};
use ethermem_dfabric::poller::PollMode;
use ethermem_dfabric::pool::{MemoryPool, PoolConfig, Preference};
use ethermem_dfabric::ring::{Consumer, Producer, RingMemory};
use ethermem_dfabric::stream::{Receiver, RoundTrips, Sender, SenderConfig, Spread};
use ethermem_dfabric::switch_node::{Action, SwitchConfig, SwitchNode};
use ethermem_placement::NodeId;
use ethermem_units::{BitsPerSecond, Bytes, Ps};
use ethermem_wire::dfabric::{Descriptor, DescriptorKind, Identity, Segment};

const SN: Node = Node(2);
const FAR: Identity = Identity(99);

struct Rack {
    pool: MemoryPool,
    switch: SwitchNode,
    spread: ReceiveSpread,
    cache: DramCache,
    words: Vec<AtomicU64>,
    producer: Producer,
    consumer: Consumer,
}

fn rack() -> Rack {
    let mut pool = MemoryPool::new(&PoolConfig::published()).unwrap();
    pool.add_device(NodeId(0), 16).unwrap();
    for node in 0..3 {
        pool.join(Node(node), 8, &[NodeId(0)]).unwrap();
        let class = pool.class_of(Bytes(4096)).unwrap();
        pool.grant(Node(node), class, Preference::Near).unwrap();
    }
    let config = SwitchConfig {
        node: SN,
        nodes: 3,
        queues: 1,
        rx_entries: 8,
        mode: PollMode::Concurrent,
        loads_max: 64,
    };
    let rate = BitsPerSecond::from_gbps(1).unwrap();
    let nic = NicConfig { rate, tx_entries: 8, rx_entries: 8 };
    let mut switch = SwitchNode::new(config, &[nic; 2]);
    (0..2).for_each(|node| switch.join(Node(node), Identity(u32::from(node))));
    switch.add_remote(FAR);
    let mut cache = DramCache::new(CacheConfig {
        capacity_bytes: 1 << 20,
        ways: 4,
        line_bytes: 4096,
        filter_bytes: 256,
        fetches_max: 8,
    })
    .unwrap();
    (0..3).for_each(|region| cache.add_region(ethermem_dfabric::RegionId(region), 4096).unwrap());
    let device = MemoryDevice { device: NodeId(0), bandwidth: rate };
    let words = (0..8 * 4 + 1).map(|_| AtomicU64::new(0)).collect();
    let (producer, consumer) = (Producer::default(), Consumer::default());
    Rack { pool, switch, spread: ReceiveSpread::new(&[device]), cache, words, producer, consumer }
}

/// Sends one Buffer of node 0 to node 1 or to the other rack, and everything that follows.
fn send(rack: &mut Rack, turn: u64) -> u32 {
    let Rack { pool, switch, cache, .. } = rack;
    let buffer = pool.alloc_shared_buffer(Node(0), Bytes(4096), Preference::Near).unwrap();
    let destination = if turn.is_multiple_of(3) { FAR } else { Identity(1) };
    let sent = Descriptor {
        kind: DescriptorKind::Transfer,
        reference: buffer,
        length: 4096,
        destination,
        source: Identity(0),
        subflow: 0,
        cookie: turn,
    };
    let memory = RingMemory::new(&rack.words).unwrap();
    rack.producer.push(&memory, sent.words()).unwrap();
    let mut arrived = 0;
    while let Some(queue) = switch.poll() {
        let words = (queue == 0).then(|| rack.consumer.pop(&memory)).flatten();
        let action = switch.on_tail(pool, queue, words);
        if words.is_none() && queue > 0 {
            break;
        }
        match action {
            Action::ToRx { node, queue, descriptor, flush } => {
                flush.into_iter().for_each(|(_, buffer)| cache.flush(buffer));
                switch.on_consumed(queue);
                let skb = pool.build_shared_skb(node, descriptor.reference, 4096).unwrap();
                if let Lookup::Miss { fetch, .. } = cache.load(descriptor.reference, 4096) {
                    assert!(cache.filled(fetch));
                }
                let freed = pool.kfree_shared_skb(node, skb).unwrap().unwrap();
                cache.flush(freed.buffer);
                arrived += 1;
            }
            Action::ToNic { nic, .. } => {
                switch.on_sent(pool, nic).unwrap();
                arrived += 1;
            }
            _ => {}
        }
    }
    arrived
}

fn receive(rack: &mut Rack, turn: u64) {
    let Rack { pool, switch, spread, .. } = rack;
    let nic = NicId((turn % 2) as u16);
    if turn.is_multiple_of(50) {
        switch.lose_nic(nic);
        while switch.poll_lost(pool, nic).is_some() {}
        assert!(switch.nics_mut().restore(nic));
    }
    assert!(switch.fill_receive(pool, spread, nic, 4096).unwrap());
    let reference = switch.nics_mut().arrive(nic).unwrap();
    let (destination, source) = (Identity(1), FAR);
    let kind = DescriptorKind::Received;
    let done =
        Descriptor { kind, reference, length: 1, destination, source, subflow: 0, cookie: 0 };
    let Action::ToRx { node, queue, descriptor, .. } = switch.on_completion(pool, &done.words())
    else {
        panic!("a packet for node 1")
    };
    switch.on_consumed(queue);
    pool.release(node, descriptor.reference).unwrap();
    spread.release(NodeId(0), 4096);
}

fn stream(
    (sender, trips): (&mut Sender, &mut RoundTrips),
    receiver: &mut Receiver,
    turn: u64,
) -> u32 {
    let now = Ps(turn * 100);
    let _ = sender.push(ethermem_wire::dfabric::FabricAddress::default(), 100, false);
    if turn.is_multiple_of(100) {
        sender.lose_path(1);
        sender.restore_path(1);
    }
    sender.on_timer(now, trips);
    while let Some(sent) = sender.poll_transmit(now, trips) {
        let (destination, source) = (Identity(1), Identity(0));
        let segment = Segment {
            destination,
            source,
            stream: 0,
            subflow: sent.subflow,
            number: sent.number,
            length: sent.length,
            is_last: false,
        };
        if turn.is_multiple_of(7) {
            continue;
        }
        receiver.on_segment(&segment, sent.data);
        sender.on_ack(&receiver.acknowledge(&segment), now, trips).unwrap();
    }
    while sender.poll_acked().is_some() {}
    std::iter::from_fn(|| receiver.poll_delivery()).count() as u32
}

#[test]
fn nothing_allocates_on_the_data_path() {
    let mut rack = rack();
    let config =
        SenderConfig { window: 64, subflows: 4, subflow_bytes: 1000, spread: Spread::Least };
    let mut sender = Sender::new(config, 0).unwrap();
    let mut trips = RoundTrips::new(Ps(1000));
    let mut receiver = Receiver::new(64, 0).unwrap();
    let (mut arrived, mut delivered) = (0, 0);
    let mut run = |turns: std::ops::Range<u64>| {
        for turn in turns {
            arrived += send(&mut rack, turn);
            receive(&mut rack, turn);
            delivered += stream((&mut sender, &mut trips), &mut receiver, turn);
        }
    };
    // A node's first reference to a Region makes its part of the table.
    run(0..100);
    let allocations = allocation_counter::measure(|| run(100..5_000));
    assert_eq!(allocations.count_total, 0);
    assert!(arrived > 4_990 && delivered > 4_500, "{arrived} {delivered}");
    rack.pool.check();
    assert!(rack.cache.counters().misses > 3_000, "{:?}", rack.cache.counters());
}
