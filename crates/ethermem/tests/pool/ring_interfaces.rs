//! `ring:` on interfaces that disappear and return, unchanged or changed.

use std::time::{Duration, Instant};

use ethermem::{Error, Pool};
use ethermem_clio::memory::PageSize;
use ethermem_node::NodeOptions;
use ethermem_udp::Published;
use ethermem_units::Bytes;
use ethermem_wire::clio::{FrameBody, Mac};

use crate::namespace::Namespace;
use crate::network::Served;
use crate::ring::{CLIENT, NODE, RW, Two, use_all, use_long_ones};
use crate::ring_faults::{frame, raw, to};

/// Longer than a node takes to notice that its interface was replaced.
const MEND: Duration = Duration::from_millis(1300);

fn renewed(published: &Published) -> u64 {
    published.lock().unwrap().server.rings_renewed
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A pool on an interface that has returned.
fn fresh(two: &Two) -> Pool {
    let began = Instant::now();
    loop {
        match two.open("c0", "&timeout_ms=100") {
            Ok(pool) => return pool,
            Err(error) => assert!(began.elapsed() < Duration::from_secs(20), "{error}"),
        }
    }
}

#[test]
fn an_interface_that_goes_down_and_comes_back_is_a_passing_condition() {
    let Some(two) = Two::new("interfaces that go down", 1500) else { return };
    let node = two.serve();
    let pool = two.open("c0", "&timeout_ms=150").unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    region.write(0, &[7; 100]).wait().unwrap();
    for (machine, interface) in [(&two.node, "n0"), (&two.client, "c0")] {
        machine.ip(&format!("link set {interface} down"));
        assert!(matches!(region.read(0, 100).wait(), Err(Error::NoAnswer { .. })), "{interface}");
        machine.ip(&format!("link set {interface} up"));
        assert_eq!(eventually(|| region.read(0, 100).wait()), Ok(vec![7; 100]), "{interface}");
    }
    assert_eq!(renewed(&node.published), 0);
}

/// Result of an operation once it is no longer lost.
fn eventually<T>(mut act: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    let began = Instant::now();
    loop {
        match act() {
            Err(Error::NoAnswer { .. }) if began.elapsed() < Duration::from_secs(20) => {}
            outcome => return outcome,
        }
    }
}

#[test]
fn an_interface_that_is_deleted_ends_its_pools_and_not_its_node() {
    let Some(two) = Two::new("interfaces that are deleted", 1500) else { return };
    let node = two.serve();
    let pool = two.open("c0", "&timeout_ms=300").unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    two.client.ip("link del c0");
    let gone = eventually(|| region.read(0, 100).wait());
    assert!(
        matches!(&gone, Err(Error::Refused { problem, .. }) if problem.contains("ENXIO")
        || problem.contains("No such device")),
        "{gone:?}"
    );
    two.connect(9000);
    use_all(&fresh(&two));
    until("the ring is renewed", || renewed(&node.published) >= 1);
    // The node has its port on the new interface, too.
    assert!(two.refused("n0").starts_with("ring n0: interface `n0`: port 7400: Address"));
}

#[test]
fn an_mtu_that_changes_changes_how_frames_are_cut() {
    let Some(two) = Two::new("MTUs that change", 9000) else { return };
    let node = two.serve();
    let pool = two.open("c0", "&timeout_ms=4000").unwrap();
    use_all(&pool);
    for (machine, interface) in [(&two.client, "c0"), (&two.node, "n0")] {
        machine.ip(&format!("link set {interface} mtu 1400"));
    }
    use_all(&pool);
    use_long_ones(&pool);
    use_all(&two.open("c0", "").unwrap());
    for (machine, interface) in [(&two.client, "c0"), (&two.node, "n0")] {
        machine.ip(&format!("link set {interface} mtu 9000"));
    }
    use_all(&pool);
    use_all(&two.open("c0", "").unwrap());
    assert_eq!(node.published.lock().unwrap().server.frames_dropped, 0);
}

/// Another node took the port before the first one's interface returned.
#[test]
fn a_port_that_another_node_has_by_now_stays_that_ones() {
    let Some(two) = Two::new("ports of new interfaces", 1500) else { return };
    let first = two.serve();
    two.node.ip("link del n0");
    two.client.connect("c0", &two.node, "x0", 1500);
    for (machine, words) in [
        (&two.node, format!("set x0 address {NODE}")),
        (&two.client, format!("set c0 address {CLIENT}")),
    ] {
        machine.ip(&format!("link {words}"));
    }
    let second = two.serve_on(&two.node, "x0");
    for words in ["set x0 down", "set x0 name n0", "set n0 up"] {
        two.node.ip(&format!("link {words}"));
    }
    std::thread::sleep(MEND);
    assert_eq!(renewed(&first.published), 0, "both would answer");
    use_all(&fresh(&two));
    drop(second);
    until("the port is free", || renewed(&first.published) == 1);
    use_all(&fresh(&two));
}

/// An interface with equal number, MTU and address, but without its listeners.
#[test]
fn an_interface_that_was_in_another_network_is_listened_to_again() {
    let Some(two) = Two::new("interfaces that move", 1500) else { return };
    let Some(other) = Namespace::new("interfaces that move") else { return };
    let node = two.serve();
    let pool = two.open("c0", "&timeout_ms=150").unwrap();
    let region = pool.thread().unwrap().alloc(4096, RW).wait().unwrap();
    region.write(0, &[7; 100]).wait().unwrap();
    for (round, away) in [(1, Duration::ZERO), (2, MEND)] {
        two.node.give("n0", &other);
        std::thread::sleep(away);
        other.give("n0", &two.node);
        two.node.ip("link set n0 up");
        assert_eq!(eventually(|| region.read(0, 100).wait()), Ok(vec![7; 100]), "{round}");
        until("the ring is renewed", || renewed(&node.published) == round);
    }
}

/// A node in clear may be reached only by the loopback, whatever interface has that name later.
#[test]
fn a_node_in_clear_does_not_follow_the_loopbacks_name_to_another_interface() {
    let Some(two) = Two::new("names of the loopback", 1500) else { return };
    let mut options = NodeOptions { page: PageSize::Kib4, ..NodeOptions::in_clear(Bytes(4 << 20)) };
    options.listen.ring = Some("lo".parse().unwrap());
    let node = two.node.enter(|| Served::serve(&options));
    for words in ["set lo down", "set lo name l0", "set n0 down", "set n0 name lo", "set lo up"] {
        two.node.ip(&format!("link {words}"));
    }
    std::thread::sleep(MEND);
    assert_eq!(renewed(&node.published), 0);
    let asked = two.client.enter(|| Pool::open("ring://c0?timeout_ms=100")).unwrap_err();
    assert_eq!(asked.to_string(), "ring://c0: no answer within 100 ms");
}

/// An interface on top of another one, such as macvlan or VLAN, keeps its frames to itself.
#[test]
fn frames_of_an_interface_upon_another_are_that_ones_alone() {
    let Some(two) = Two::new("interfaces upon others", 1500) else { return };
    let upper = Mac([2, 0, 0, 0, 0, 0xc]);
    two.node.ip(&format!("link add link n0 name m0 address {upper} type macvlan mode bridge"));
    two.node.ip("link set m0 up");
    let below = two.serve();
    let heard = two.client.enter(|| {
        let mut ring = raw("c0");
        ring.send(&frame(to(upper), FrameBody::Question, 0)[..60]).unwrap();
        ring.send(&frame(to(upper), FrameBody::Datagram, 100)).unwrap();
        std::thread::sleep(Duration::from_millis(300));
        ring.take().is_some()
    });
    assert!(!heard);
    assert_eq!(below.published.lock().unwrap().node.datagrams, 0);
    let above = two.serve_on(&two.node, "m0");
    for mac in [upper, NODE] {
        use_all(&two.open(&format!("c0/{mac}"), "").unwrap());
    }
    for node in [&below, &above] {
        assert_eq!(node.published.lock().unwrap().server.frames_dropped, 0);
    }
}
