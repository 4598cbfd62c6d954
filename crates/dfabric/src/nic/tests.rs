//! Which NIC a TxQ has: by depth, in order, after a loss and a return.

use ethermem_wire::dfabric::{DescriptorKind, Identity};

use super::*;

fn work(length: u32) -> Descriptor {
    Descriptor {
        kind: DescriptorKind::Send,
        reference: FabricAddress::default(),
        length,
        destination: Identity(1),
        source: Identity(2),
        subflow: 0,
        cookie: u64::from(length),
    }
}

fn pool(rates_gbps: &[u64], queues: u32) -> NicPool {
    let nic = |&gbps: &u64| NicConfig {
        rate: BitsPerSecond::from_gbps(gbps).unwrap(),
        tx_entries: 4,
        rx_entries: 2,
    };
    NicPool::new(&rates_gbps.iter().map(nic).collect::<Vec<_>>(), queues)
}

#[test]
fn queues_go_where_their_packets_are_sent_first() {
    // 4,000 B take 32 us at 1 Gb/s and 8 us at 4 Gb/s: the fast NIC takes four of five.
    let mut pool = pool(&[1, 4], 5);
    let nics: Vec<_> =
        (0..5).map(|queue| pool.post(TxQueue(queue), work(4000)).unwrap().0).collect();
    // Depths with the packet: 32 or 8; 32 or 16; 32 or 24; 32 or 32, where the one with fewer
    // queues wins; 64 or 32.
    assert_eq!(nics, [1, 1, 1, 0, 1]);
}

#[test]
fn a_queue_with_packets_under_way_keeps_its_nic_and_an_idle_one_moves() {
    let mut pool = pool(&[1, 1], 2);
    assert_eq!(pool.post(TxQueue(0), work(100)), Ok(NicId(0)));
    assert_eq!(pool.post(TxQueue(0), work(100)), Ok(NicId(0)), "behind its own packet");
    assert_eq!(pool.post(TxQueue(1), work(100)), Ok(NicId(1)));
    assert_eq!(pool.complete(NicId(1)), Some((work(100), TxQueue(1))));
    assert_eq!(pool.complete(NicId(0)).map(|done| done.1), Some(TxQueue(0)));
    assert_eq!(pool.post(TxQueue(1), work(100)), Ok(NicId(1)));
    assert_eq!(pool.complete(NicId(0)).map(|done| done.1), Some(TxQueue(0)));
    for _ in 0..3 {
        pool.post(TxQueue(1), work(100)).unwrap();
    }
    assert_eq!(pool.post(TxQueue(1), work(100)), Err(PostError::Full(NicId(1))));
    assert_eq!(pool.post(TxQueue(0), work(100)), Ok(NicId(0)));
    assert_eq!(pool.under_way(TxQueue(1)), 4);
}

#[test]
fn a_pinned_queue_keeps_its_nic_whatever_its_depth_until_the_nic_is_lost() {
    let mut pool = pool(&[1, 1], 2);
    pool.pin(TxQueue(0), NicId(1));
    pool.pin(TxQueue(1), NicId(1));
    for _ in 0..2 {
        assert_eq!(pool.post(TxQueue(0), work(4000)), Ok(NicId(1)));
        assert_eq!(pool.post(TxQueue(1), work(100)), Ok(NicId(1)));
    }
    pool.lose(NicId(1));
    assert_eq!(pool.post(TxQueue(1), work(100)), Ok(NicId(0)));
}

#[test]
fn a_lost_nic_gives_up_what_it_had_and_is_used_again_once_it_returns() {
    let mut pool = pool(&[1, 1], 2);
    pool.post(TxQueue(0), work(100)).unwrap();
    pool.post(TxQueue(0), work(101)).unwrap();
    assert!(pool.post_receive(NicId(0), FabricAddress::default()));
    pool.lose(NicId(0));
    assert_eq!((pool.complete(NicId(0)), pool.arrive(NicId(0))), (None, None));
    assert!(!pool.restore(NicId(0)), "it still has packets");
    let lost: Vec<_> = std::iter::from_fn(|| pool.poll_lost(NicId(0))).collect();
    assert_eq!(lost, [(work(100), TxQueue(0)), (work(101), TxQueue(0))]);
    assert_eq!(pool.poll_lost_buffer(NicId(0)), Some(FabricAddress::default()));
    assert_eq!(pool.post(TxQueue(0), work(100)), Ok(NicId(1)));
    assert!(pool.restore(NicId(0)));
    assert_eq!(pool.post(TxQueue(1), work(100)), Ok(NicId(0)));
    pool.lose(NicId(0));
    pool.lose(NicId(1));
    assert_eq!(pool.post(TxQueue(0), work(1)), Err(PostError::NoNic));
}

#[test]
fn a_packet_without_a_receive_buffer_is_dropped_and_counted() {
    let mut pool = pool(&[1], 1);
    let buffer = FabricAddress::new(4096).unwrap();
    assert!(pool.post_receive(NicId(0), buffer) && pool.wants(NicId(0)));
    assert!(pool.post_receive(NicId(0), buffer) && !pool.wants(NicId(0)));
    assert!(!pool.post_receive(NicId(0), buffer));
    let taken: Vec<_> = (0..3).map(|_| pool.arrive(NicId(0))).collect();
    assert_eq!(taken, [Some(buffer), Some(buffer), None]);
    assert_eq!(pool.tx_bytes_and_drops(NicId(0)), (0, 1));
}
