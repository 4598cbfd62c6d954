//! The window of a port. Granted blocks that have not passed hold back the next grant; blocks that
//! will never pass do not.

use ethermem_edm::sched::SchedulerConfig;
use ethermem_edm::{EdmConfig, Emission, MessageId, NodeId, Notification, Switch};
use ethermem_units::{Bytes, Ps};

const SLOT: Ps = Ps(640);
/// Number of blocks of a chunk of 256 B.
const CHUNK: u32 = 34;

/// A switch whose ports may have `chunks` whole chunks outstanding.
fn switch(chunks: u32) -> Switch {
    let edm = EdmConfig { egress_window_blocks: Some(CHUNK * chunks), ..EdmConfig::default() };
    Switch::new(SchedulerConfig::new(4, &edm, Ps(330), SLOT))
}

fn node(number: u16) -> NodeId {
    NodeId::at(number)
}

fn notify(switch: &mut Switch, from: u16, to: u16, bytes: u64) {
    let notification =
        Notification { peer: node(to), id: MessageId(from as u8), bytes: Bytes(bytes), members: 1 };
    switch.on_notification(Ps::ZERO, node(from), notification).expect("room");
}

/// The grants until only an input can cause another: (source, destination).
fn grants(switch: &mut Switch, now: &mut Ps) -> Vec<(u16, u16)> {
    let mut given = Vec::new();
    while let Some(wake) = switch.next_wake() {
        *now = wake.max(*now);
        switch.step(*now, |_, emission| match emission {
            Emission::Grant { to, grant } => given.push((to.number(), grant.peer.number())),
            Emission::Release { .. } => panic!("no requests here"),
        });
    }
    given
}

#[test]
fn a_destination_is_granted_as_much_as_has_departed() {
    let (mut switch, mut now) = (switch(2), Ps::ZERO);
    for source in 1..4 {
        notify(&mut switch, source, 0, 512);
    }
    assert_eq!(grants(&mut switch, &mut now).len(), 2);
    assert!(switch.is_full(node(0)));
    assert_eq!((switch.poll_full(), switch.poll_full()), (Some(node(0)), None));
    // All blocks but one of a chunk are too few, and their arrival alone is not enough.
    assert_eq!(switch.on_chunk(now, node(1), Bytes(256)), Some(node(0)));
    switch.on_departed(node(0), CHUNK - 1);
    assert_eq!(grants(&mut switch, &mut now).len(), 0);
    switch.on_departed(node(0), 1);
    assert!(!switch.is_full(node(0)), "a wake-up is due");
    assert_eq!(grants(&mut switch, &mut now).len(), 1);
}

#[test]
fn a_source_is_granted_as_much_as_has_come_from_it() {
    let (mut switch, mut now) = (switch(2), Ps::ZERO);
    for destination in 1..4 {
        notify(&mut switch, 0, destination, 256);
    }
    let first = grants(&mut switch, &mut now);
    assert_eq!(first.len(), 2);
    assert_eq!(switch.on_chunk(now, node(0), Bytes(200)), Some(node(first[0].1)));
    assert_eq!(grants(&mut switch, &mut now).len(), 0, "56 B are to come");
    assert_eq!(switch.on_chunk(now, node(0), Bytes(56)), Some(node(first[0].1)));
    assert_eq!(grants(&mut switch, &mut now).len(), 1);
    // The rest of the message is abandoned: no more of it will arrive.
    switch.on_unused_grant(node(0));
    switch.on_unused_grant(node(0));
    assert_eq!(switch.scheduler().outstanding_blocks().0, 0);
}

#[test]
fn the_framing_of_a_batch_counts_until_it_departs() {
    let (mut switch, mut now) = (switch(2), Ps::ZERO);
    for source in 1..4 {
        notify(&mut switch, source, 0, 256);
    }
    let first = grants(&mut switch, &mut now)[0].0;
    for _ in 0..32 {
        assert_eq!(switch.on_chunk(now, node(first), Bytes(8)), Some(node(0)));
    }
    // 32 chunks of 3 blocks are 96, not 34.
    assert_eq!(switch.scheduler().outstanding_blocks(), (CHUNK.into(), (96 + CHUNK).into()));
    switch.on_departed(node(0), 95);
    assert_eq!(grants(&mut switch, &mut now).len(), 0);
    switch.on_departed(node(0), 1);
    assert_eq!(grants(&mut switch, &mut now).len(), 1);
}

#[test]
fn what_a_failed_source_was_granted_does_not_hold_back_its_destination() {
    let (mut switch, mut now) = (switch(2), Ps::ZERO);
    notify(&mut switch, 1, 0, 4_000);
    assert_eq!(grants(&mut switch, &mut now), [(1, 0); 2]);
    assert_eq!(switch.on_chunk(now, node(1), Bytes(100)), Some(node(0)));
    notify(&mut switch, 2, 0, 256);
    assert_eq!(grants(&mut switch, &mut now), []);
    switch.fail_port(node(1), |_| {});
    // 100 B are at the egress: 13 blocks and two of framing. The other 21 blocks will not come.
    assert_eq!(switch.scheduler().outstanding_blocks(), (0, 15));
    assert_eq!(grants(&mut switch, &mut now), [(2, 0)]);
}

#[test]
fn a_failed_destination_has_its_whole_window_when_it_is_back() {
    let (mut switch, mut now) = (switch(2), Ps::ZERO);
    notify(&mut switch, 1, 0, 4_000);
    assert_eq!(grants(&mut switch, &mut now).len(), 2);
    assert_eq!(switch.on_chunk(now, node(1), Bytes(256)), Some(node(0)));
    switch.fail_port(node(0), |_| {});
    // A late chunk is dropped; it was still outstanding at its source.
    assert_eq!(switch.on_chunk(now, node(1), Bytes(256)), None);
    assert_eq!(switch.scheduler().outstanding_blocks(), (0, 0));
    switch.restore_port(node(0), |_| {});
    switch.on_heard(node(1), node(0), |_| {});
    notify(&mut switch, 1, 0, 4_000);
    assert_eq!(grants(&mut switch, &mut now), [(1, 0); 2]);
}
