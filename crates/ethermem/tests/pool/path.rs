//! Paths with a smaller MTU than the interfaces at their ends: switches that silently drop longer
//! frames, and routers that report them.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ethermem_udp::NodePlace;
use ethermem_wire::clio::{ProcessId, Request};

use crate::namespace::Namespace;
use crate::network::Served;
use crate::ring::{Two, use_all};

const ENDS: u32 = 9000;
const MIDDLE: u32 = 1500;
const NODES: [&str; 2] = ["192.0.2.2:7400", "[2001:db8::2]:7400"];

/// Two machines with a third between them, which is not yet a bridge or a router.
fn joined(what: &str) -> Option<(Two, Namespace)> {
    let (two, middle) = (Two::apart(what)?, Namespace::new(what)?);
    two.client.connect("c0", &middle, "b0", ENDS);
    two.node.connect("n0", &middle, "b1", ENDS);
    two.address();
    Some((two, middle))
}

fn serve(two: &Two) -> Served {
    let mut options = two.options("n0");
    options.listen.udp = Some("[::]:7400".parse().unwrap());
    two.node.enter(|| Served::serve(&options))
}

/// The datagram length in bytes that the transport finds for the path.
fn found(two: &Two, node: NodePlace) -> usize {
    let mut driver = two.driver(node);
    driver.client().submit(ProcessId(0), Request::Hello);
    driver.send().unwrap();
    let began = Instant::now();
    while driver.client().facts().is_none() || driver.client().searches_path() {
        driver.turn().unwrap();
        assert!(began.elapsed() < Duration::from_secs(60), "the search ends");
    }
    driver.client().datagram_bytes()
}

/// True if the length is all that the MTU leaves, to within 8. The interfaces of these tests carry
/// the four octets of a VLAN tag beyond the MTU, and pieces of `ring:` have 8 more in front.
fn is_whole(bytes: usize, mtu: u32, headers: usize) -> bool {
    let most = mtu as usize - headers;
    (most - 7..=most + 12).contains(&bytes)
}

#[test]
fn a_switch_that_drops_long_frames_is_found_out_and_nothing_is_lost() {
    let Some((two, middle)) = joined("a switch of a short MTU") else { return };
    two.client.ip("addr add 192.0.2.1/24 dev c0");
    two.node.ip("addr add 192.0.2.2/24 dev n0");
    two.client.ip("addr add 2001:db8::1/64 dev c0 nodad");
    two.node.ip("addr add 2001:db8::2/64 dev n0 nodad");
    middle.ip("link add both type bridge");
    for words in ["set b0 master both", "set b1 master both", "set both up"] {
        middle.ip(&format!("link {words}"));
    }
    let _node = serve(&two);
    let ways = NODES.map(|node| (node.parse::<SocketAddr>().unwrap(), format!("udp://{node}")));
    let ring = NodePlace::Ring("c0".parse().unwrap());
    let mut ways: Vec<_> = ways.map(|(node, url)| (NodePlace::Udp(node), url)).into();
    ways.push((ring, "ring://c0".to_owned()));
    for (mtu, interfaces) in [(ENDS, "whole"), (MIDDLE, "short")] {
        middle.ip(&format!("link set b0 mtu {mtu}"));
        middle.ip(&format!("link set b1 mtu {mtu}"));
        for ((node, url), headers) in ways.iter().zip([28, 48, 32]) {
            let bytes = found(&two, node.clone());
            assert!(is_whole(bytes, mtu, headers), "{url}, {interfaces}: {bytes}");
            use_all(&two.open_url(url, "").unwrap());
        }
    }
    // A length given by the user is taken as true.
    let pool = two.open_url(&ways[0].1, "&datagram_bytes=8972&timeout_ms=300").unwrap();
    let region = pool.thread().unwrap().alloc(8000, crate::ring::RW).wait().unwrap();
    let written = region.write(0, &[1; 8000]).wait();
    let silent = matches!(written, Err(ethermem::Error::NoAnswer { waited_ms: 300, .. }));
    assert!(silent, "{written:?}");
}

#[test]
fn a_router_that_says_what_it_carries_is_heard() {
    let Some((two, middle)) = joined("a router of a short MTU") else { return };
    two.client.ip("addr add 198.51.100.1/24 dev c0");
    two.node.ip("addr add 192.0.2.2/24 dev n0");
    middle.ip("addr add 198.51.100.9/24 dev b0");
    middle.ip("addr add 192.0.2.9/24 dev b1");
    two.client.ip("route add default via 198.51.100.9");
    two.node.ip("route add default via 192.0.2.9");
    middle.enter(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).unwrap();
    for machine in [(&middle, "b1"), (&two.node, "n0")] {
        machine.0.ip(&format!("link set {} mtu {MIDDLE}", machine.1));
    }
    let _node = serve(&two);
    let node: SocketAddr = NODES[0].parse().unwrap();
    assert_eq!(found(&two, NodePlace::Udp(node)), MIDDLE as usize - 28);
    use_all(&two.open_url(&format!("udp://{node}"), "").unwrap());
}
