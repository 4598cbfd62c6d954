//! `udp:` over several interfaces of the client's machine: two namespaces with two to four links
//! between them, each a network of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use ethermem::{OpenError, Pool};

use crate::namespace::Namespace;
use crate::network::Served;
use crate::ring::{RW, Two, use_all, use_long_ones};

const HOST: &str = "udp://10.77.0.2:7400";
/// Reads in flight and bytes of each: more than one limited link answers at once.
const READS: u64 = 64;
const BYTES: u64 = 4096;

/// Two machines with `c0` to `n0` and so on, and a node that listens on all of its addresses.
fn linked(what: &str, links: usize) -> Option<(Two, Served)> {
    let two = Two::apart(what)?;
    (0..links).for_each(|link| join(&two, link));
    let mut options = two.options("n0");
    (options.listen.ring, options.listen.udp) = (None, Some("0.0.0.0:7400".parse().unwrap()));
    let served = two.node.enter(|| Served::serve(&options));
    Some((two, served))
}

fn join(two: &Two, link: usize) {
    two.client.connect(&format!("c{link}"), &two.node, &format!("n{link}"), 1500);
    two.client.ip(&format!("addr add 10.77.{link}.1/24 dev c{link}"));
    two.node.ip(&format!("addr add 10.77.{link}.2/24 dev n{link}"));
}

fn names(links: usize) -> String {
    (0..links).map(|link| format!("c{link}")).collect::<Vec<_>>().join(",")
}

fn limit(two: &Two, link: usize, rate: &str) {
    for (machine, interface) in [(&two.client, "c"), (&two.node, "n")] {
        let rate = format!("rate {rate} burst 8kb latency 20ms");
        machine.tc(&format!("qdisc add dev {interface}{link} root tbf {rate}"));
    }
}

/// Reads and compares until told to stop, with an addition each round, and returns the rounds.
fn load(pool: &Pool, stop: impl Fn(u64) -> bool) -> u64 {
    let thread = pool.thread().unwrap();
    let region = thread.alloc((READS + 1) * BYTES, RW).wait().unwrap();
    let data: Vec<u8> = (0..READS * BYTES).map(|at| (at * 31 + at / 4096) as u8).collect();
    region.write(0, &data).wait().unwrap();
    let counter = region.at(READS * BYTES);
    let mut rounds = 0;
    while !stop(rounds) {
        let added = thread.fetch_add(counter, 1);
        let reads: Vec<_> = (0..READS).map(|at| (at, region.read(at * BYTES, BYTES))).collect();
        for (at, read) in reads {
            let from = (at * BYTES) as usize;
            assert!(read.wait().unwrap() == data[from..][..BYTES as usize], "read {at}");
        }
        assert_eq!(added.wait().unwrap(), rounds, "each addition acts once");
        rounds += 1;
    }
    region.free().wait().unwrap();
    rounds
}

/// Octets that the node sent on a link while `act` ran.
fn answered(two: &Two, links: usize, act: impl FnOnce()) -> Vec<u64> {
    let sent = || (0..links).map(|link| two.node.sent(&format!("n{link}"))).collect::<Vec<_>>();
    let before = sent();
    act();
    sent().iter().zip(before).map(|(after, before)| after - before).collect()
}

#[test]
fn every_operation_goes_over_two_to_four_interfaces_and_each_carries_its_share() {
    for links in 2..=4 {
        let Some((two, _node)) = linked("pools over several interfaces", links) else { return };
        (0..links).for_each(|link| limit(&two, link, "50mbit"));
        let pool = two.open_url(HOST, &format!("&via={}", names(links))).unwrap();
        use_all(&pool);
        use_long_ones(&pool);
        let shares = answered(&two, links, || {
            // So many that a link that is read late beside other work makes up for it.
            load(&pool, |rounds| rounds == 60);
        });
        let all: u64 = shares.iter().sum();
        assert!(all > 60 * READS * BYTES, "{shares:?}");
        let least = all / links as u64 / 2;
        assert!(shares.iter().all(|&share| share > least), "{shares:?}");
        two.client.enter(|| pool.close()).unwrap();
    }
}

/// Runs a load while a link is changed and changed back, each after some time.
fn disturbed(two: &Two, pool: &Pool, change: impl FnOnce(), back: impl FnOnce()) {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loaded = scope.spawn(|| load(pool, |_| done.load(Ordering::Relaxed)));
        std::thread::sleep(Duration::from_millis(200));
        change();
        std::thread::sleep(Duration::from_millis(500));
        back();
        std::thread::sleep(Duration::from_millis(200));
        done.store(true, Ordering::Relaxed);
        assert!(loaded.join().unwrap() > 0);
    });
    // The link that returned carries its share: it is found within a quarter of a second.
    let began = Instant::now();
    loop {
        let shares = answered(two, 2, || {
            load(pool, |rounds| rounds == 10);
        });
        if shares[1] > shares[0] / 4 {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{shares:?}");
    }
}

#[test]
fn a_link_that_goes_and_returns_under_load_loses_no_operation() {
    let Some((two, _node)) = linked("a link that goes and returns", 2) else { return };
    (0..2).for_each(|link| limit(&two, link, "50mbit"));
    let pool = two.open_url(HOST, "&via=c0,c1").unwrap();
    // The far end goes down: nothing tells the client.
    let far = |words: &str| two.node.ip(words);
    disturbed(&two, &pool, || far("link set n1 down"), || far("link set n1 up"));
    // The client's own end goes down: the system refuses to send.
    let own = |words: &str| two.client.ip(words);
    disturbed(&two, &pool, || own("link set c1 down"), || own("link set c1 up"));
}

/// Threads of a pool run in the namespace of its sockets, so the whole test does.
#[test]
fn an_interface_that_is_deleted_and_made_again_is_used_again() {
    let Some((two, _node)) = linked("an interface that is made again", 2) else { return };
    (0..2).for_each(|link| limit(&two, link, "50mbit"));
    let url = format!("{HOST}?key={}&via=c0,c1", two.key_file().display());
    let remake = || {
        join(&two, 1);
        limit(&two, 1, "50mbit");
    };
    let inside = || {
        let pool = Pool::open(&url).unwrap();
        load(&pool, |rounds| rounds == 5);
        two.client.ip("link del c1");
        load(&pool, |rounds| rounds == 5);
        remake();
        let began = Instant::now();
        let carried = |two: &Two| two.node.sent("n1");
        while carried(&two) < 10 * BYTES {
            load(&pool, |rounds| rounds == 5);
            assert!(began.elapsed() < Duration::from_secs(30), "{}", carried(&two));
        }
        pool.close().unwrap();
    };
    two.client.enter(inside);
}

#[test]
fn an_interface_that_is_down_at_first_is_used_when_it_is_up() {
    let Some((two, _node)) = linked("an interface that is down at first", 2) else { return };
    (0..2).for_each(|link| limit(&two, link, "50mbit"));
    two.client.ip("link set c0 down");
    let pool = two.open_url(HOST, "&via=c0,c1").unwrap();
    use_all(&pool);
    let of_first = || {
        answered(&two, 1, || {
            load(&pool, |rounds| rounds == 3);
        })
    };
    assert!(of_first()[0] < BYTES, "nothing but what the kernel itself sends");
    two.client.ip("link set c0 up");
    let began = Instant::now();
    while of_first()[0] < 10 * BYTES {
        assert!(began.elapsed() < Duration::from_secs(30), "c0 stays unused");
    }
}

#[test]
fn interfaces_that_cannot_be_used_are_one_line_at_open() {
    let Some(two) = Two::apart("interfaces that cannot be used") else { return };
    let refused = |via: &str| {
        let error = two.open_url(HOST, &format!("&via={via}")).unwrap_err();
        assert!(matches!(error, OpenError::NotAllowed { .. } | OpenError::BadParameter { .. }));
        error.to_string()
    };
    let none = "parameter `via`: interface `c9`: this machine has none of that name";
    assert_eq!(refused("c9"), none);
    assert_eq!(refused("lo,c9"), none);
    assert_eq!(refused("lo,lo"), "parameter `via`: `lo,lo`: `lo` is given twice");
    let names = "must be names of interfaces with commas between";
    assert_eq!(refused(""), format!("parameter `via`: ``: {names}"));
    // All interfaces are down: the node does not answer.
    let Some(other) = Namespace::new("interfaces that cannot be used") else { return };
    two.client.connect("c0", &other, "n0", 1500);
    two.client.ip("link set c0 down");
    let silent = two.open_url(HOST, "&via=c0&timeout_ms=50").unwrap_err().to_string();
    assert!(silent.starts_with("10.77.0.2:7400: no answer within 50 ms: "), "{silent}");
}
